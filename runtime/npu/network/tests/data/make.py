#!/usr/bin/env python3
"""Makes small.frontend.json and small.schedule.json: a network of every operation, of two images.

Some layers are split along rows, two of them so that the later part has padding below; one sum has a
ReLU, and its operands in the frontend's order, the other neither; weights come by L2 or straight from DRAM in turn; one result is stored,
and loaded again. Nothing in L2 is used twice, so that the plan is easy to follow.
"""

import json
from pathlib import Path

BATCH, L2 = 2, 64 * 1024
BYTES = {"int8": 1, "float16": 2}


def padded(channels, dtype):
    step = 8 // BYTES[dtype]
    return -(-channels // step) * step


def volume(lower, upper, dtype):
    n, c, h, w = [high - low + 1 for low, high in zip(lower, upper)]
    return n * padded(c, dtype) * h * w * BYTES[dtype]


class Layer:
    """What a layer computes; rows of the result at which its workloads begin."""

    def __init__(self, name, operation, reads, shape, dtype="int8", cuts=(0,), **more):
        self.name, self.operation, self.reads, self.cuts = name, operation, reads, list(cuts)
        self.shape, self.dtype, self.more = [BATCH, *shape], dtype, more

    def window(self):
        one = [1, 1]
        kernel = self.more.get("kernel_size") or self.more.get("pool_size") or one
        return kernel, self.more.get("stride", one), self.more.get("padding", [0] * 4)


def pre(*constants):
    keys = ["requan_scale_a", "requan_zp_a", "requan_scale_b", "requan_zp_b"]
    return dict(zip(keys, constants))


def post(scale, zero):
    return {"mul_k": scale, "sum_b": zero, "carry_sel": "round", "sumsub_mode": "add"}


def conv(kernel, stride, padding, relu, **quant):
    quant = {"input_scale1": 0.02, "round_type": "round", **quant}
    quant["input_zero_point1"] = float(quant.pop("zero"))
    activation = {"activation_type": "relu" if relu else None, "activation_attr": None}
    if kernel is None:
        return {"quant_info": quant, **activation}
    sizes = {"kernel_size": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 4}
    return {"quant_info": quant, **activation, **sizes}


def pool(kernel, stride, padding, **modules):
    sizes = {"pool_size": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 4}
    return {"module_list": modules, "ceil_mode": 0, **sizes}


out = {"output_scale": 50.0, "output_zero_point": -128.0}
add = {"tensor_mode": 0, "tensor1_lut": [1, 1, 1]}
RELU = {"relu_group": {}}
LAYERS = [
    Layer("Quantize_0", "quantize", ["input1"], [3, 10, 10],
          module_list={"pre_cal": pre(1, 0), "post_cal": post(52.5, -14.0)}),
    Layer("Conv_1", "conv2d", ["Quantize_0"], [16, 5, 5], cuts=(0, 3),
          **conv(3, 2, 1, True, zero=14, **out)),
    Layer("Conv_2", "conv2d", ["Conv_1"], [24, 5, 5], cuts=(0, 3),
          **conv(3, 1, 1, False, zero=128, output_scale=30.0, output_zero_point=5.0)),
    Layer("Conv_3", "conv2d", ["Conv_2"], [16, 5, 5], "float16", cuts=(0, 2, 4),
          **conv(1, 1, 0, False, zero=-5)),
    Layer("Dequantize_4", "quantize", ["Conv_1"], [16, 5, 5], "float16",
          module_list={"pre_cal": pre(0.02, 2.56), "post_cal": post(1, 0)}),
    Layer("Add_5", "element_wise_add", ["Conv_3", "Dequantize_4"], [16, 5, 5], cuts=(0, 3),
          module_list={"pre_cal": pre(1, 0, 1, 0), "post_cal": post(30.25, -20.0)}, **add),
    Layer("Add_6", "element_wise_add", ["Conv_1", "Add_5"], [16, 5, 5],
          module_list={"pre_cal": pre(0.02, 2.56, 0.0331, 0.662), **RELU,
                       "post_cal": post(31.5, -128.0)}, **add),
    Layer("MaxPool_7", "max_pool2d", ["Add_6"], [16, 3, 3], cuts=(0, 2),
          **pool(3, 2, 1, pre_cal=pre(0.03175, 4.064), post_cal=post(33.0, -120.0))),
    Layer("AveragePool_8", "avg_pool2d", ["MaxPool_7"], [16, 1, 1],
          **pool(3, 1, 0, pre_cal=pre(0.0303, 3.636), fp32_mul_group={"mul_group_k_scalar": 1 / 9},
                 post_cal=post(36.5, -128.0))),
    Layer("Gemm_9", "dense", ["AveragePool_8"], [10, 1, 1], "float16",
          **conv(None, 1, 0, False, zero=128)),
]
INPUT = Layer("input1", "input", [], [3, 10, 10], "float16")
BY_NAME = {layer.name: layer for layer in [INPUT, *LAYERS]}
# The sum whose operands the schedule has as the frontend has them.
AS_READ = "Add_6"
# Results that DRAM takes in, and of these the one that a layer loads again.
STORED, AGAIN = ["Conv_1", "Add_5", "Gemm_9"], ("Conv_1", "Add_6")


def is_product(layer):
    return layer.operation in ("conv2d", "dense")


def weight_shape(layer):
    return [layer.shape[1], BY_NAME[layer.reads[0]].shape[1], *layer.window()[0]]


def frontend():
    all_layers = {}
    for index, layer in enumerate(LAYERS):
        inputs = [BY_NAME[name] for name in layer.reads]
        shapes, dtypes, reads = [i.shape for i in inputs], [i.dtype for i in inputs], list(layer.reads)
        if is_product(layer):
            shapes, dtypes = [*shapes, weight_shape(layer)], [*dtypes, "int8"]
            reads.append(f"constant_{index}")
        readers = [other.name for other in LAYERS if layer.name in other.reads]
        all_layers[layer.name] = {
            "layer_index": index, "name": layer.name, "operation": layer.operation, "device": "npu",
            "file_list": {}, "previous_layer": reads, "next_layer": readers, "input_shape": shapes,
            "output_shape": [layer.shape], "input_dtype": dtypes, "output_dtype": [layer.dtype],
            **({} if is_product(layer) else {"tensor0_lut": [1, 1, 1]}), **layer.more,
        }
    return all_layers


class Plan:
    """The schedule while it is made."""

    def __init__(self):
        self.transfers = self.tensors = self.address = self.wl0_address = 0
        self.ins, self.outs, self.workloads = [], [], []
        self.touched = []  # What DRAM loads and stores touch, in their order.
        self.resident = {}  # Tensors of layers in L2 that are read.
        self.parts = {}  # By layer: lower, upper, transfer, workload.
        self.reader = {}  # By layer: transfer and tensor of what is loaded again.
        self.pending = []  # Results that the next workload sends.

    def transfer(self):
        self.transfers += 1
        return self.transfers - 1

    def tensor(self, kind, lower, upper, dtype, size, **more):
        bits = 8 * BYTES[dtype]
        tensor = {"address": self.address, "align": 64 // bits, "bitwidth": bits, "lower": lower,
                  "size": size, "tensor_id": self.tensors, "type": kind, "upper": upper, **more}
        self.address += -(-size // 64) * 64
        self.tensors += 1
        return tensor

    def whole(self, layer):
        """The tensor of a layer's result that is read; its sources follow as it is made."""
        if layer.name not in self.resident:
            upper = [size - 1 for size in layer.shape]
            size = volume([0] * 4, upper, layer.dtype)
            self.resident[layer.name] = self.tensor(
                "ifmap", [0] * 4, upper, layer.dtype, size, source=[], transfer_id=[])
        return self.resident[layer.name]

    def load(self, name, reader, related):
        """What DRAM gives out of a tensor, whole."""
        layer = BY_NAME[name]
        transfer, upper = self.transfer(), [size - 1 for size in layer.shape]
        size = volume([0] * 4, upper, layer.dtype)
        target = {"core_id": 0, "layer_name": reader.name, "type": "core", "workload_id": len(self.workloads)}
        self.outs.append({"destination": [target], "lower": [0] * 4, "related_ifmap": related, "size": size,
                          "transfer_id": transfer, "type": "fmap", "upper": upper})
        source = {"core_id": -1, "layer_name": name, "lower": [0] * 4, "size": size,
                  "transfer_id": transfer, "type": "DRAM", "upper": upper}
        tensor = self.tensor("ifmap", [0] * 4, upper, layer.dtype, size, source=[source], transfer_id=[transfer])
        self.touched.append(tensor)
        return tensor

    def operand(self, layer, name):
        """The tensor that a layer reads."""
        key = (name, layer.name)
        if name == "input1" or key == AGAIN:
            if key not in self.reader:
                makers = [part[2] for part in self.parts.get(name, [])]
                self.reader[key] = self.load(name, layer, makers)
                for block in self.ins:
                    if block["transfer_id"] in makers:
                        block["related_ofmap"] = [self.reader[key]["transfer_id"][0]]
            return self.reader[key]
        return self.whole(BY_NAME[name])

    def run(self, layer, number):
        rows = [*layer.cuts, layer.shape[2]]
        lower = [0, 0, rows[number], 0]
        upper = [BATCH - 1, layer.shape[1] - 1, rows[number + 1] - 1, layer.shape[3] - 1]
        index = len(self.workloads)
        send, self.pending = self.pending, []
        self.touched += send
        operands = [self.operand(layer, name) for name in layer.reads]
        read, padding = windows(layer, lower, upper)
        workload = {"buffer": [], "ifmap": [], "layer_name": layer.name,
                    "layer_type": "pe" if is_product(layer) else "vp", "operands": operands, "send": send,
                    "ring_buffer_info": [[0, L2]], "tile_padding_tblr": padding, "time": 100 + 10 * index,
                    "wl0_buffer": None, "workload": [lower, upper], "workload_id": index}
        # Published schedules have the operands of a sum in the other order than frontend files.
        for operand, name in list(zip(operands, layer.reads))[:: 1 if layer.name == AS_READ else -1]:
            box = [[read[0][0], 0, *read[0][2:]], [read[1][0], BY_NAME[name].shape[1] - 1, *read[1][2:]]]
            over = [source["transfer_id"] for source in operand["source"] if overlaps(source, box)]
            workload["ifmap"].append({
                "align": operand["align"], "bitwidth": operand["bitwidth"], "lower": box[0], "upper": box[1],
                "size": volume(*box, BY_NAME[name].dtype), "transfer_id": over})
        self.weigh(layer, number, workload)
        self.tile(layer, workload, read, padding)
        self.give(layer, workload, lower, upper)
        self.workloads.append(workload)

    def weigh(self, layer, number, workload):
        if not is_product(layer):
            return
        k, c, r, s = weight_shape(layer)
        row = padded(c, "int8") * r * s + 32
        upper = [0, k - 1, c - 1, r * s - 1]
        by_l2 = LAYERS.index(layer) % 2 == 1
        if number == 0:
            transfer = self.transfer()
            target = {"core_id": 0, "layer_name": layer.name, "type": "core", "workload_id": len(self.workloads)}
            self.outs.append({"destination": [target], "lower": [0] * 4, "related_ifmap": [], "size": k * row,
                              "transfer_id": transfer, "type": "weight", "upper": upper})
            units = -(-(row - 32) // 32) * 32 + 32
            wl0 = {"address": self.wl0_address, "align": 8, "bitwidth": 8, "layer_name": layer.name,
                   "transfer_id": [transfer]}
            layer.tensor = None
            if by_l2:
                source = {"core_id": -1, "layer_name": layer.name, "lower": [0] * 4, "size": k * row,
                          "transfer_id": transfer, "type": "DRAM", "upper": upper}
                layer.tensor = self.tensor("weight", [0] * 4, upper, "int8", k * row, layer_name=layer.name,
                                           source=[source], transfer_id=[transfer])
                self.touched.append(layer.tensor)
                wl0 |= {"size": 2 * units, "source": "CORE", "tensor_order": None}
            else:
                wl0 |= {"lower": [0] * 4, "upper": upper, "size": units, "source": "DDR"}
                self.touched.append(wl0)
            self.wl0_address += wl0["size"]
            layer.wl0, layer.weights = wl0, {
                "lower": [0] * 4, "size": k * row, "transfer_id": [transfer], "upper": upper}
        workload["weight"], workload["wl0_buffer"] = layer.weights, [layer.wl0]
        if layer.tensor:
            workload["operands"] = [*workload["operands"], layer.tensor]

    def tile(self, layer, workload, read, padding):
        lower, upper = workload["workload"]
        operand = BY_NAME[layer.reads[0]]
        tiles = {}
        # Of products along output channels, by eight; of vectors along images.
        axis, step = (1, 8) if is_product(layer) else (0, 1)
        for number, first in enumerate(range(lower[axis], upper[axis] + 1, step)):
            low, high = list(lower), list(upper)
            low[axis], high[axis] = first, min(first + step - 1, upper[axis])
            into = [[0, 0, *read[0][2:]], [BATCH - 1, operand.shape[1] - 1, *read[1][2:]]]
            if axis == 0:
                into[0][0] = into[1][0] = first
            tile = {"ifmap_lower": into[0], "ifmap_upper": into[1], "ofmap_lower": low, "ofmap_upper": high,
                    "single_tile_time_pred": 100.5, "tile_padding_tblr": padding}
            if is_product(layer):
                tile |= {"act_mini_tile": [1, 1, 8, 8], "ci_cut_num": 1, "cut_mode": "KH", "loop_order": "KNHW",
                         "layer_name": layer.name, "mtc0_mtk0": [1, 1], "out_mini_tile": [1, 8, 2, 2]}
            elif len(layer.reads) > 1:
                tile |= {"ifmap_lower2": into[0], "ifmap_upper2": into[1]}
            tiles[f"tile_num_{number}"] = tile
        workload["tile_info"] = tiles

    def give(self, layer, workload, lower, upper):
        index, transfer = workload["workload_id"], self.transfer()
        size = volume(lower, upper, layer.dtype)
        relative = [high - low for low, high in zip(lower, upper)]
        self.parts.setdefault(layer.name, []).append((lower, upper, transfer, index))
        workload["ofmap_size"] = size
        workload["ofmap"] = [{"destination": [], "lower": [0] * 4, "size": size, "transfer_id": transfer,
                              "upper": relative}]
        if any(layer.name in other.reads and AGAIN != (layer.name, other.name) for other in LAYERS):
            whole = self.whole(layer)
            whole["source"].append({"core_id": 0, "layer_name": layer.name, "lower": lower, "size": size,
                                    "transfer_id": transfer, "type": "core", "upper": upper})
            whole["transfer_id"].append(transfer)
            workload["operands"] = [*workload["operands"], whole]
        if layer.name in STORED:
            self.ins.append({"core_id": 0, "layer_name": layer.name, "lower": lower, "transfer_id": transfer,
                             "upper": upper, "workload_id": index})
            workload["ofmap"][0]["destination"].append({"core_id": -1, "type": "DRAM"})
            kept = self.tensor("ofmap", [0] * 4, relative, layer.dtype, size, layer_name=layer.name)
            self.pending.append(kept)
            workload["operands"] = [*workload["operands"], kept]

    def finish(self):
        for layer in LAYERS:
            for number in range(len(layer.cuts)):
                self.run(layer, number)
        self.touched += self.pending
        orders = {id(tensor): order for order, tensor in enumerate(self.touched)}
        uses = {}
        for workload in self.workloads:
            for tensor in [*workload["operands"], *workload["send"]]:
                first, _ = uses.get(id(tensor), (workload["workload_id"], None))
                uses[id(tensor)] = (first, workload["workload_id"])
        tensors = {id(t): t for w in self.workloads for t in [*w["operands"], *w["send"]]}
        for workload in self.workloads:
            index = workload["workload_id"]
            for row in workload["wl0_buffer"] or []:
                row.setdefault("tensor_order", orders.get(id(row)))
            for key, tensor in tensors.items():
                first, last = uses[key]
                if not first <= index <= last:
                    continue
                snapshot = dict(tensor, tensor_order=orders.get(key, len(self.touched)))
                if tensor["type"] == "ofmap":
                    snapshot["start_send"] = index > first or index + 1 == len(self.workloads)
                else:
                    snapshot["newly_added"] = index == first
                if tensor["type"] == "ifmap" and any(tensor is own for own in workload["operands"]):
                    reads = [ids for ifmap in workload["ifmap"] for ids in ifmap["transfer_id"]]
                    if set(reads) & set(tensor["transfer_id"]) and workload["ofmap"][0]["transfer_id"] not in tensor["transfer_id"]:
                        snapshot["cur_wl_ifmap"] = True
                        for part in self.workloads[:index]:
                            given = part["ofmap"][0]
                            if given["transfer_id"] in tensor["transfer_id"]:
                                given["destination"].append(
                                    {"core_id": 0, "type": "core", "workload_id": index})
                workload["buffer"].append(snapshot)
            del workload["operands"], workload["send"]
        return {"-1": {"in": self.ins, "out": self.outs}, "0": self.workloads, "buffersize": L2,
                "top_batch_cut": 1, "xlen": 1, "ylen": 1}


def windows(layer, lower, upper):
    """The box of the first operand that windows read, and what of padding they reach."""
    kernel, stride, padding = layer.window()
    source = BY_NAME[layer.reads[0]].shape
    low, high, reached = [0, 0], [BATCH - 1, source[1] - 1], []
    for axis in range(2):
        first = lower[2 + axis] * stride[axis] - padding[2 * axis]
        last = upper[2 + axis] * stride[axis] - padding[2 * axis] + kernel[axis] - 1
        low.append(max(first, 0))
        high.append(min(last, source[2 + axis] - 1))
        reached += [max(-first, 0), max(last - source[2 + axis] + 1, 0)]
    return [low, high], reached


def overlaps(source, box):
    return all(source["lower"][i] <= box[1][i] and box[0][i] <= source["upper"][i] for i in range(4))


def main():
    folder = Path(__file__).parent
    for name, value in [("frontend", frontend()), ("schedule", Plan().finish())]:
        (folder / f"small.{name}.json").write_text(json.dumps(value, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
