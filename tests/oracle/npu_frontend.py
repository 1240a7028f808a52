"""Evaluates a frontend graph in int8 with numpy and compares with a run of its NPU program.

    python tests/oracle/npu_frontend.py --simulate PATH frontend.json listing.txt [more pairs]

PATH is `target/release/examples/simulate` (`cargo build --release -p irc-npu-sim --example
simulate`). Weights, scales, biases and the image are random, the constants of quantisation the
graph's. Every layer is evaluated as its description says, on whole tensors, independently of
addresses, tiles and instructions; what the program stores last must be the same bytes.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

F = np.float32


def quantise(value, scale, zero):
    """To int8: nearest, ties to even."""
    return np.clip(np.rint(value * F(scale) + F(zero)), -128, 127).astype(np.int8)


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

    def bytes(self):
        """As they lie in DRAM: [R, S, C] with padded channels, scale, bias, unused."""
        k, c, r, s = self.values.shape
        rows = np.zeros((k, r, s, -(-c // 8) * 8), np.int8)
        rows[..., :c] = self.values.transpose(0, 2, 3, 1)
        out = bytearray()
        for row, scale, bias in zip(rows, self.scale, self.bias):
            out += row.tobytes() + scale.tobytes() + bias.tobytes() + bytes(24)
        return bytes(out)


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
    value = operands[0].astype(F) * F(pre["requan_scale_a"]) + F(pre["requan_zp_a"])
    kind = layer["operation"]
    if kind == "element_wise_add":
        other = operands[1].astype(F) * F(pre["requan_scale_b"]) + F(pre["requan_zp_b"])
        value = value + other
        if "relu_group" in modules:
            value = np.maximum(value, F(0))
    elif kind == "max_pool2d":
        windows = patches(value, layer["pool_size"], layer["stride"], layer["padding"], F(-np.inf))
        value = windows.max(axis=(2, 3))
    elif kind == "avg_pool2d":
        windows = patches(value, layer["pool_size"], layer["stride"], layer["padding"], F(0))
        factor = F(modules["fp32_mul_group"]["mul_group_k_scalar"])
        n, c, r, s, h, w = windows.shape
        # One after another in single precision, as the accumulator has it.
        value = np.zeros((n, c, h, w), F)
        for row in range(r):
            for column in range(s):
                value = value + windows[:, :, row, column] * factor
    elif kind != "quantize":
        raise SystemExit(f"no evaluation of {kind}")
    return finish(layer, value, post["mul_k"], post["sum_b"])


def evaluate(graph, random):
    """Image, weights as bytes, and the tensor that the program stores."""
    layers = sorted(graph.values(), key=lambda layer: layer["layer_index"])
    values, weights, image, last = {}, bytearray(), None, None
    for layer in layers:
        if layer["device"] != "npu":
            continue
        names = layer["previous_layer"]
        if names[0] not in values:
            image = random.uniform(-2.2, 2.6, layer["input_shape"][0]).astype(np.float16)
            values[names[0]] = image
        if layer["operation"] in ("conv2d", "dense"):
            own = Weights(layer, random)
            weights += own.bytes()
            last = convolve(layer, values[names[0]], own)
        else:
            last = vector(layer, [values[name] for name in names if name in values])
        values[layer["name"]] = last
    return image, bytes(weights), last


def pixels(tensor):
    return tensor.transpose(0, 2, 3, 1).tobytes()


def check(simulate, frontend, listing):
    random = np.random.default_rng(1)
    image, weights, expected = evaluate(json.loads(frontend.read_text()), random)
    stores = re.findall(r"\[sta_mov, .*'DTaddr': (\d+)", listing.read_text())
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "0").write_bytes(pixels(image))
        (folder / "1").write_bytes(weights)
        files = [f"0={folder}/0", f"1={folder}/1", "--", f"0={folder}/out"]
        subprocess.run([simulate, listing, *files], check=True)
        out = (folder / "out").read_bytes()
    expected_bytes, start = pixels(expected), int(stores[-1])
    found = out[start : start + len(expected_bytes)]
    different = np.frombuffer(found, np.uint8) != np.frombuffer(expected_bytes, np.uint8)
    kinds = len(np.unique(expected))
    print(f"{listing.name}: {different.sum()} of {different.size} bytes differ, {kinds} values")
    return not different.any() and kinds > 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulate", required=True, type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    pairs = list(zip(arguments.files[::2], arguments.files[1::2], strict=True))
    results = [check(arguments.simulate, *pair) for pair in pairs]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
