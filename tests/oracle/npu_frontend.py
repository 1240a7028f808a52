#!/usr/bin/env python3
"""Evaluates the NPU's layers of a frontend file in int8 with numpy, on random values.

    npu_frontend.py FRONTEND.json --folder DIR [--seed N] [--twin]

Into DIR go inputs.npz, weights.npz and expected.npz (the result of every layer). To compare:

    irc simulate S.json --frontend FRONTEND.json --inputs DIR/inputs.npz --weights DIR/weights.npz \\
        --outputs DIR/outputs.npz

whose arrays must have the bytes of those of expected.npz. Every layer is evaluated as its
description says, on whole tensors, independently of addresses, tiles and instructions.

With --twin every layer is also written as ONNX (DequantizeLinear, the operator in float32,
QuantizeLinear) and run by ONNX Runtime, once on the same operands, where no value may be off by
more than one step, and once on the results of the twins before it. Steps differ where a value lies
at the middle between two: ONNX divides by a scale where the NPU multiplies by its reciprocal, and
sums of floats go in another order.

Exit codes: 0, 1 with --twin when a value is off by more, or a layer has no evaluation.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

F = np.float32


def quantise(value, scale, zero):
    """To int8: nearest, ties to even, then the zero point."""
    return np.clip(np.rint(value * F(scale)) + F(zero), -128, 127).astype(np.int8)


def multiply_add(value, scale, zero):
    """In single precision; the product is exact in double precision."""
    return (value.astype(np.float64) * np.float64(F(scale)) + np.asarray(zero, F)).astype(F)


def finish(layer, value, scale, zero):
    """The result of a layer in its own type."""
    if layer["output_dtype"][0] == "int8":
        return quantise(value, scale, zero)
    return (value * F(scale) + F(zero)).astype(np.float16)


def patches(image, kernel, stride, padding, outside):
    """[N, C, R, S, H, W] windows of [N, C, H, W]."""
    top, bottom, left, right = padding
    spread = ((0, 0), (0, 0), (top, bottom), (left, right))
    image = np.pad(image, spread, constant_values=outside)
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel, axis=(2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1]]
    return windows.transpose(0, 1, 4, 5, 2, 3)


class Weights:
    """Random weights of a layer, so scaled that results fill the range of their type."""

    def __init__(self, layer, random):
        k, c, r, s = layer["input_shape"][1]
        self.values = random.integers(-127, 128, (k, c, r, s), np.int8)
        spread = 1.5 if layer["output_dtype"][0] == "float16" else 60 / output_scale(layer)[0]
        self.scale = (spread / (73 * 60 * np.sqrt(c * r * s)) * random.uniform(0.5, 1.5, k)).astype(F)
        self.bias = (spread * random.uniform(-0.5, 0.5, k)).astype(F)

    def arrays(self, name):
        return {f"{name}.weight": self.values, f"{name}.scale": self.scale, f"{name}.bias": self.bias}


def output_scale(layer):
    info = layer["quant_info"]
    return info.get("output_scale", 1), info.get("output_zero_point", 0)


def convolve(layer, image, weights):
    kernel = layer.get("kernel_size", [1, 1])
    outside = -layer["quant_info"]["input_zero_point1"]
    stride, padding = layer.get("stride", [1, 1]), layer.get("padding", [0] * 4)
    windows = patches(image, kernel, stride, padding, np.int8(outside))
    n, c, r, s, h, w = windows.shape
    columns = windows.transpose(0, 4, 5, 1, 2, 3).reshape(n * h * w, c * r * s)
    k = len(weights.values)
    # Exact: sums of products stay far below 2^53.
    sums = columns.astype(np.float64) @ weights.values.reshape(k, -1).T.astype(np.float64)
    value = sums.astype(np.int32).astype(F) * weights.scale + weights.bias
    value = value.reshape(n, h, w, k).transpose(0, 3, 1, 2)
    if layer["activation_type"] == "relu":
        value = np.maximum(value, F(0))
    return finish(layer, value, *output_scale(layer))


def vector(layer, operands):
    modules = layer["module_list"]
    pre, post = modules["pre_cal"], modules["post_cal"]
    kind = layer["operation"]
    scale, zero = pre["requan_scale_a"], F(pre["requan_zp_a"])
    if kind == "element_wise_add":
        zero = zero + multiply_add(operands[1].astype(F), pre["requan_scale_b"], pre["requan_zp_b"])
    value = multiply_add(operands[0].astype(F), scale, zero)
    if kind == "element_wise_add":
        if "relu_group" in modules:
            value = np.maximum(value, F(0))
    elif kind == "max_pool2d":
        windows = patches(value, layer["pool_size"], layer["stride"], layer["padding"], F(-np.inf))
        value = windows.max(axis=(2, 3))
    elif kind == "avg_pool2d":
        windows = patches(value, layer["pool_size"], layer["stride"], layer["padding"], F(0))
        factor = F(modules["fp32_mul_group"]["mul_group_k_scalar"])
        n, c, r, s, h, w = windows.shape
        # In sequence in single precision, as in the accumulator.
        value = np.zeros((n, c, h, w), F)
        for row, column in np.ndindex(r, s):
            value = value + windows[:, :, row, column] * factor
    elif kind != "quantize":
        sys.exit(f"no evaluation of {kind}")
    return finish(layer, value, post["mul_k"], post["sum_b"])


def is_product(layer):
    return layer["operation"] in ("conv2d", "dense")


def operands_of(layer):
    """Names of the activations that a layer reads; all its other operands are constants."""
    count = 2 if layer["operation"] == "element_wise_add" else 1
    return layer["previous_layer"][:count]


def npu_layers(graph):
    layers = sorted(graph.values(), key=lambda layer: layer["layer_index"])
    return [layer for layer in layers if layer["device"] == "npu"]


def evaluate(graph, random):
    """Inputs, weights by layer, and the results of all layers."""
    inputs, weights, values = {}, {}, {}
    for layer in npu_layers(graph):
        for operand, name in enumerate(operands_of(layer)):
            if name not in values and name not in inputs:
                shape, dtype = layer["input_shape"][operand], layer["input_dtype"][operand]
                image = random.uniform(-2.2, 2.6, shape)
                inputs[name] = quantise(image, 50, -10) if dtype == "int8" else image.astype(dtype)
        operands = [{**inputs, **values}[name] for name in operands_of(layer)]
        if is_product(layer):
            weights[layer["name"]] = Weights(layer, random)
            values[layer["name"]] = convolve(layer, operands[0], weights[layer["name"]])
        else:
            values[layer["name"]] = vector(layer, operands)
    return inputs, weights, values


def save(folder, inputs, weights, values):
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for name, own in weights.items():
        arrays |= own.arrays(name)
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "weights.npz", **arrays)
    np.savez(folder / "expected.npz", **values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("frontend", type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--twin", action="store_true")
    arguments = parser.parse_args()
    graph = json.loads(arguments.frontend.read_text())
    inputs, weights, values = evaluate(graph, np.random.default_rng(arguments.seed))
    save(arguments.folder, inputs, weights, values)
    if arguments.twin:
        from npu_twin import compare

        if not compare(npu_layers(graph), operands_of, inputs, weights, values):
            sys.exit(1)


if __name__ == "__main__":
    main()
