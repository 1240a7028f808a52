#!/usr/bin/env python3
"""Runs ONNX models with irc and with ONNX Runtime on the same inputs, and compares every output.

    check_onnx.py --irc target/release/irc MODEL|FOLDER ... [--size NAME=N ...]
                  [--shape NAME=AxB ...] [--value NAME=X ...] [--timeout SECONDS]
                  [-- FLAG of irc run ...]

Folders stand for the *.onnx in them, at any depth. One line comes out per model: `ok`, `DIFFERS` with
the outputs that do, `FAILED` with what irc says, or `skipped` when ONNX Runtime cannot run the model
either. Exit codes: 0 no model differs or fails, 3 some do, 1 nothing to check.

Needs the Python packages numpy and onnxruntime. Tolerances are those of compare.py. Inputs are drawn
from a generator whose seed is the model's name: floats from 0 to 1, integers 0 or 1. Dimensions that a
model leaves open are 1 when they come first, and else the first of 64, 80, 512 and 16 that ONNX Runtime
takes; --size says another by name, --value what an input is everywhere.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np
import onnxruntime

from compare import compare

TYPES = {"float": "f4", "float16": "f2", "double": "f8", "bool": "?", "int8": "i1", "int16": "i2",
         "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8"}


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path, help="models, or folders of them")
    parser.add_argument("--irc", required=True, help="the program to test")
    parser.add_argument("--size", action="append", default=[], help="NAME=N: a dimension left open")
    parser.add_argument("--shape", action="append", default=[], help="NAME=AxB: an input's shape")
    parser.add_argument("--value", action="append", default=[], help="NAME=X: an input's elements")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that irc may take per model")
    args = parser.parse_args(arguments[:split])
    counts = {}
    for path in (path for given in args.models for path in models_of(given)):
        verdict, text = check(path, args, arguments[split + 1:])
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{verdict} {path}: {text}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    sys.exit(1 if not counts else 3 if counts.keys() & {"DIFFERS", "FAILED"} else 0)


def models_of(path):
    return sorted(path.rglob("*.onnx")) if path.is_dir() else [path]


def check(path, args, flags):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # The original model, without rewriting.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return "skipped", f"ONNX Runtime: {first_line(error)}"
    names = [output.name for output in session.get_outputs()]
    for size in (64, 80, 512, 16):
        try:
            inputs = draw(session, path, size, args)
            expected = dict(zip(names, session.run(names, inputs)))
            break
        except Exception as error:
            reason = first_line(error)
    else:
        return "skipped", f"ONNX Runtime: {reason}"
    with tempfile.TemporaryDirectory() as folder:
        given, found = pathlib.Path(folder, "x.npz"), pathlib.Path(folder, "y.npz")
        np.savez(given, **inputs)
        start = time.time()
        command = [args.irc, "run", path, "--inputs", given, "--outputs", found, *flags]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
        except subprocess.TimeoutExpired:
            return "FAILED", f"not done after {args.timeout:g} s"
        seconds = time.time() - start
        if done.returncode:
            return "FAILED", "\n    ".join(done.stderr.strip().splitlines()[:6])
        with np.load(found) as results:
            wrong = [line for name in names for line in differences(name, expected[name], results)]
    shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in inputs.items())
    return ("DIFFERS", "; ".join(wrong)) if wrong else ("ok", f"{seconds:.1f} s, of {shapes}")


def draw(session, path, size, args):
    random = np.random.default_rng(zlib.crc32(path.name.encode()))
    sizes = dict(given.split("=") for given in args.size)
    shapes = dict(given.split("=") for given in args.shape)
    values = dict(given.split("=") for given in args.value)
    inputs = {}
    for port in session.get_inputs():
        kind = np.dtype(TYPES[port.type.removeprefix("tensor(").removesuffix(")")])
        open_size = lambda axis, dim: int(sizes.get(dim, 1 if axis == 0 else size))
        shape = [dim if isinstance(dim, int) and dim >= 0 else open_size(axis, dim)
                 for axis, dim in enumerate(port.shape)]
        if port.name in shapes:
            shape = [int(dim) for dim in shapes[port.name].split("x") if dim]
        if port.name in values:
            inputs[port.name] = np.full(shape, values[port.name]).astype(kind)
        elif kind.kind == "f":
            inputs[port.name] = random.random(shape).astype(kind)
        else:
            inputs[port.name] = random.integers(0, 2, shape).astype(kind)
    return inputs


def differences(name, expected, results):
    if isinstance(expected, list):
        parts = [(f"{name}[{index}]", part) for index, part in enumerate(expected)]
        return [line for part in parts for line in differences(*part, results)]
    if name not in results:
        return [f"no output {name}"]
    line, passes = compare(name, expected, results[name])
    return [] if passes else [line]


def first_line(error):
    return str(error).strip().splitlines()[0][:200]


if __name__ == "__main__":
    main()
