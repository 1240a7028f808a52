"""The NPU's layers as ONNX: DequantizeLinear, an operator in float32, QuantizeLinear."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F = np.float32
TYPES = {"int8": TensorProto.INT8, "float16": TensorProto.FLOAT16}


class Twin:
    """One layer as an ONNX model."""

    def __init__(self, layer, weights):
        self.layer, self.nodes, self.constants = layer, [], []
        count = 2 if layer["operation"] == "element_wise_add" else 1
        self.inputs = [
            helper.make_tensor_value_info(f"x{i}", TYPES[layer["input_dtype"][i]], layer["input_shape"][i])
            for i in range(count)
        ]
        value = self.product(weights) if weights else self.vector()
        self.finish(value)
        output = TYPES[layer["output_dtype"][0]]
        outputs = [helper.make_tensor_value_info("y", output, layer["output_shape"][0])]
        graph = helper.make_graph(self.nodes, "layer", self.inputs, outputs, self.constants)
        opset = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        options = onnxruntime.SessionOptions()
        # The model is computed as written: nothing is fused into integer kernels.
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        bytes_of = model.SerializeToString()
        self.session = onnxruntime.InferenceSession(bytes_of, options, providers=providers)

    def run(self, operands):
        return self.session.run(None, {f"x{i}": value for i, value in enumerate(operands)})[0]

    def constant(self, value, dtype=F):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, kind, operands, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, operands, [name], **attributes))
        return name

    def dequantise(self, operand, scale, zero):
        if self.layer["input_dtype"][operand] == "float16":
            assert (scale, zero) == (1, 0), "operands of float16 are read as they are"
            return self.node("Cast", [f"x{operand}"], to=TensorProto.FLOAT)
        point = round(zero)
        assert abs(point - zero) < 1e-2, f"{zero} is not a zero point"
        constants = [self.constant(scale), self.constant(point, np.int8)]
        return self.node("DequantizeLinear", [f"x{operand}", *constants])

    def pads(self):
        top, bottom, left, right = self.layer.get("padding", [0] * 4)
        return [top, left, bottom, right]

    def product(self, weights):
        info = self.layer["quant_info"]
        scale, zero = info["input_scale1"], info["input_zero_point1"]
        value = self.dequantise(0, scale, -zero)
        factors = weights.scale.astype(np.float64) / scale
        filled = [self.constant(factors), self.constant(np.zeros(len(factors)), np.int8)]
        kernel = self.node(
            "DequantizeLinear", [self.constant(weights.values, np.int8), *filled], axis=0
        )
        # Zero points are in the bias of the NPU, and in the operand here.
        sums = weights.values.astype(np.float64).sum(axis=(1, 2, 3))
        bias = self.constant(weights.bias - weights.scale.astype(np.float64) * zero * sums)
        stride = self.layer.get("stride", [1, 1])
        value = self.node("Conv", [value, kernel, bias], strides=stride, pads=self.pads())
        return self.node("Relu", [value]) if self.layer["activation_type"] == "relu" else value

    def vector(self):
        modules = self.layer["module_list"]
        pre = modules["pre_cal"]
        scales = [(pre["requan_scale_a"], pre["requan_zp_a"])]
        if len(self.inputs) > 1:
            scales.append((pre["requan_scale_b"], pre["requan_zp_b"]))
        values = [self.dequantise(i, k, -b / k) for i, (k, b) in enumerate(scales)]
        kind = self.layer["operation"]
        if kind == "element_wise_add":
            value = self.node("Add", values)
            return self.node("Relu", [value]) if "relu_group" in modules else value
        if kind == "quantize":
            return values[0]
        windows = {"kernel_shape": self.layer["pool_size"], "strides": self.layer["stride"]}
        windows["pads"] = self.pads()
        if kind == "max_pool2d":
            return self.node("MaxPool", values, **windows)
        return self.node("AveragePool", values, count_include_pad=1, **windows)

    def finish(self, value):
        layer = self.layer
        if layer["output_dtype"][0] == "float16":
            self.nodes.append(helper.make_node("Cast", [value], ["y"], to=TensorProto.FLOAT16))
            return
        if "module_list" in layer:
            post = layer["module_list"]["post_cal"]
            scale, zero = post["mul_k"], post["sum_b"]
        else:
            info = layer["quant_info"]
            scale, zero = info["output_scale"], info["output_zero_point"]
        assert zero == round(zero), f"{zero} is not a zero point"
        constants = [self.constant(1 / scale), self.constant(round(zero), np.int8)]
        self.nodes.append(helper.make_node("QuantizeLinear", [value, *constants], ["y"]))


def steps(expected, found):
    """Differences in steps; for float16, in units of the largest value's last place."""
    difference = np.abs(expected.astype(np.float64) - found.astype(np.float64))
    if expected.dtype == np.float16:
        difference = np.floor(difference / np.spacing(np.abs(expected).max()).astype(np.float64))
    return difference


def compare(layers, operands_of, inputs, weights, values):
    """Prints the differences; returns whether all are at most one step on the same operands."""
    chain, off, count, most, worst = dict(inputs), 0, 0, 0, None
    for layer in layers:
        twin = Twin(layer, weights.get(layer["name"]))
        names = operands_of(layer)
        expected = values[layer["name"]]
        differences = steps(expected, twin.run([{**inputs, **values}[name] for name in names]))
        count, off = count + expected.size, off + np.count_nonzero(differences)
        if differences.max() > most:
            most, worst = differences.max(), layer["name"]
        chain[layer["name"]] = twin.run([chain[name] for name in names])
    print(f"same operands: {off} of {count} values differ, by at most {most:.0f}: {worst}")
    last = layers[-1]["name"]
    differences = steps(values[last], chain[last])
    share = np.count_nonzero(differences) / differences.size
    print(f"end to end: of {last} {100 * share:.1f} % differ, by at most {differences.max():.0f}")
    if values[last].dtype == np.float16:
        both = [one.astype(np.float64).ravel() for one in (values[last], chain[last])]
        error = np.sqrt(np.mean((both[0] - both[1]) ** 2) / np.mean(both[0] ** 2))
        print(f"end to end: relative error {error:.2e}, correlation {np.corrcoef(*both)[0, 1]:.6f}")
    return most <= 1
