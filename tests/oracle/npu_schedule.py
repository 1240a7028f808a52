#!/usr/bin/env python3
"""Evaluates the layers of a schedule of several cores with numpy, on random values.

    npu_schedule.py SCHEDULE.json[.gz] --folder DIR [--seed N] [--windows WINDOWS.json]

Into DIR go inputs.npz, weights.npz and expected.npz (the result of every layer), with the keys of
`irc simulate`. Layers are evaluated on whole tensors, in the order of what they read, knowing nothing
of cores, transfers and addresses: a program agrees when every workload reads the bytes that the
schedule says it does.

Schedules of dialects B and C have no constants of quantisation. Those of the programs are neutral:
a product is `scale sum + bias`, and a sum that of its operands, rounded and clamped to int8; a pooling
is the greatest value; other layers give what they read. Nor do they say how windows move: kernels, strides and padding `{"LAYER": [[K, S, P], [K, S, P]]}` along rows and columns are either
those of WINDOWS.json, which must explain what every workload reads, or the most even that do.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path

import numpy as np

F = np.float32


def extents(box):
    return [np.array(box["lower"]), np.array(box["upper"])]


class Layer:
    """All workloads of a layer."""

    def __init__(self, workloads, blocks, windows):
        first = workloads[0]
        self.kind = first.get("layer_type")
        self.boxes = [[np.array(end) for end in workload["workload"]] for workload in workloads]
        self.reads = [extents(workload["ifmap"]) for workload in workloads]
        self.shape = 1 + np.max([upper for _, upper in self.boxes], axis=0)
        self.input = 1 + np.max([upper for _, upper in self.reads], axis=0)
        self.sources = set()
        for workload in workloads:
            for resident in workload["buffer"]:
                if resident["type"] == "ifmap" and resident.get("workload_id") == workload["workload_id"]:
                    for source in resident["source"]:
                        offset = source["channel"][0] - source["lower"][1]
                        self.sources.add((source.get("layer_name", ""), int(offset)))
        self.kernel, self.spans, self.given = None, {}, windows
        weight = first.get("weight")
        if weight:
            low, high = np.ravel([weight["lower"], weight["upper"]])
            transfer = np.ravel(weight["transfer_id"])[0]
            self.kernel = blocks[transfer] // 8 // ((high - low + 1) * self.input[1])

    def weight_shape(self):
        return int(self.shape[1]), int(self.input[1]), int(self.kernel)

    def explains(self, axis, kernel, stride, padding):
        """Whether windows are consistent with the reads of every workload."""
        size = int(self.input[axis])
        if axis not in self.spans:
            pairs = zip(self.boxes, self.reads)
            self.spans[axis] = {tuple(int(end[axis]) for end in (*box, *read)) for box, read in pairs}
        return all(max(first * stride - padding, 0) == low
                   and min(last * stride - padding + kernel, size) == high + 1
                   for first, last, low, high in self.spans[axis])

    def axis_windows(self, axis):
        """By kernel, the stride and padding consistent with the reads of every workload, most even first."""
        size, made = int(self.input[axis]), int(self.shape[axis])
        found = {}
        for kernel in [*range(1, min(size, 16) + 1), *([size] if size > 16 else [])]:
            for stride in range(1, 9):
                for padding in range(kernel if kernel <= 16 else 1):
                    if self.explains(axis, kernel, stride, padding):
                        # Equal padding on both sides is preferred.
                        over = abs(size + 2 * padding - kernel - (made - 1) * stride)
                        best = (over, stride, padding)
                        found[kernel] = min(found.get(kernel, best), best)
        return found

    def windows(self):
        """Kernel, stride and padding along rows and along columns."""
        if self.given:
            if not all(self.explains(axis, *self.given[axis - 2]) for axis in (2, 3)):
                sys.exit(f"windows {self.given} are not consistent with the reads of workloads")
            return self.given
        h, w = self.axis_windows(2), self.axis_windows(3)
        pairs = [(r, s) for r in h for s in w if self.kernel in (None, r * s)]
        if not pairs:
            sys.exit("no windows are consistent with the reads of a layer's workloads")
        r, s = min(pairs, key=lambda pair: (pair[0] != pair[1], h[pair[0]][0] + w[pair[1]][0], pair))
        return (r, *h[r][1:]), (s, *w[s][1:])


def windows_of(image, layer, outside):
    """[N, C, R, S, H, W] windows of [N, C, H, W], padded as needed."""
    axes = layer.windows()
    spread = [(0, 0), (0, 0)]
    for axis, (kernel, stride, padding) in zip((2, 3), axes):
        reach = (int(layer.shape[axis]) - 1) * stride - padding + kernel
        spread.append((padding, max(reach - image.shape[axis], 0)))
    image = np.pad(image, spread, constant_values=outside)
    view = np.lib.stride_tricks.sliding_window_view(image, [axis[0] for axis in axes], axis=(2, 3))
    view = view[:, :, :: axes[0][1], :: axes[1][1]]
    return view[:, :, : layer.shape[2], : layer.shape[3]].transpose(0, 1, 4, 5, 2, 3)


def to_int8(value):
    return np.clip(np.rint(value), -128, 127).astype(np.int8)


def operand(layer, values):
    """The input of a layer: the channels of its sources concatenated, or added for sums."""
    whole = np.zeros([layer.shape[0], *layer.input[1:]], F)
    for name, offset in sorted(layer.sources):
        source = values[name][:, :, : layer.input[2], : layer.input[3]]
        whole[:, offset : offset + source.shape[1]] += source[:, : whole.shape[1] - offset]
    return whole


def evaluate_layer(layer, values, weights):
    whole = operand(layer, values)
    if layer.kind in ("conv2d", "fc"):
        weight, scale, bias = weights
        view = windows_of(whole, layer, 0)
        n, c, r, s, h, w = view.shape
        columns = view.transpose(0, 4, 5, 1, 2, 3).reshape(n * h * w, c * r * s).astype(np.float64)
        sums = columns @ weight.reshape(len(weight), -1).T.astype(np.float64)
        value = sums.astype(np.int32).astype(F) * scale + bias
        return to_int8(value.reshape(n, h, w, -1).transpose(0, 3, 1, 2))
    if layer.kind == "pool":
        return to_int8(windows_of(whole, layer, F(-np.inf)).max(axis=(2, 3)))
    return to_int8(whole)


def draw(layer, random):
    k, c, kernel = layer.weight_shape()
    weight = random.integers(-127, 128, (k, c, kernel), np.int8)
    scale = (60 / (73 * 60 * np.sqrt(c * kernel)) * random.uniform(0.5, 1.5, k)).astype(F)
    return weight, scale, random.uniform(-30, 30, k).astype(F)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("schedule", type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--windows", type=Path)
    arguments = parser.parse_args()
    windows = json.loads(arguments.windows.read_text()) if arguments.windows else {}
    data = arguments.schedule.read_bytes()
    schedule = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    random = np.random.default_rng(arguments.seed)
    groups = schedule["DRAM"].values() if "DRAM" in schedule else [schedule["-1"]]
    blocks = {block["transfer_id"]: block["size"] for group in groups for block in group["out"]}
    by_layer = {}
    for key in schedule:
        for workload in schedule[key] if key.isdigit() else []:
            by_layer.setdefault(workload["layer_name"], []).append(workload)
    layers = {name: Layer(workloads, blocks, windows.get(name)) for name, workloads in by_layer.items()}
    inputs, values = {}, {}
    for name, layer in layers.items():
        for source, offset in sorted(layer.sources):
            if source not in layers:
                shape = [int(layer.shape[0]), *(int(size) for size in layer.input[1:])]
                known = inputs[source].shape if source in inputs else shape
                shape = [max(a, b) for a, b in zip(shape, known)]
                inputs[source] = random.integers(-100, 101, shape, np.int8)
    values |= inputs
    weights = {name: draw(layer, random) for name, layer in layers.items() if layer.kernel}
    waiting = dict(layers)
    while waiting:
        ready = [name for name in waiting if all(source in values for source, _ in waiting[name].sources)]
        if not ready:
            sys.exit("layers form a cycle")
        for name in ready:
            values[name] = evaluate_layer(waiting.pop(name), values, weights.get(name))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for name, own in weights.items():
        arrays |= {f"{name}.{part}": array for part, array in zip(("weight", "scale", "bias"), own)}
    np.savez(arguments.folder / "inputs.npz", **inputs)
    np.savez(arguments.folder / "weights.npz", **arrays)
    np.savez(arguments.folder / "expected.npz", **{name: values[name] for name in layers})


if __name__ == "__main__":
    main()
