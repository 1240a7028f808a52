#!/usr/bin/env python3
"""Runs ONNX models with irc and with ONNX Runtime on the same inputs, and compares every output.

    check_onnx.py --irc target/release/irc MODEL|FOLDER ... [--size NAME=N ...]
                  [--shape NAME=AxB ...] [--value NAME=X ...] [--timeout SECONDS]
                  [-- FLAG of irc run ...]

Folders stand for the *.onnx in them, at any depth. One line comes out per model: `ok`, `DIFFERS` with
the outputs that do, `FAILED` with what irc says, or `skipped` when ONNX Runtime cannot run the model
either. Exit codes: 0 no model differs or fails, 3 some do, 1 nothing to check.

Needs the Python packages numpy and onnxruntime. Tolerances are those of compare.py. Inputs are those of
onnx_inputs.py; --size states a dimension by name, --shape the shape of an input, --value what an input
is everywhere.
"""
import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

import onnx_inputs
from compare import compare


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
    given = onnx_inputs.Given(args.size, args.shape, args.value)
    counts = {}
    for path in (path for folder in args.models for path in models_of(folder)):
        verdict, text = check(path, args, given, arguments[split + 1:])
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{verdict} {path}: {text}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    sys.exit(1 if not counts else 3 if counts.keys() & {"DIFFERS", "FAILED"} else 0)


def models_of(path):
    return sorted(path.rglob("*.onnx")) if path.is_dir() else [path]


def check(path, args, given, flags):
    try:
        inputs, expected = evaluate(path, given)
    except Unsupported as error:
        return "skipped", f"ONNX Runtime: {error}"
    run = run_irc(args.irc, path, inputs, args.timeout, flags)
    if run.outputs is None:
        return "FAILED", run.message
    wrong = differences(expected, run.outputs)
    shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in onnx_inputs.arrays(inputs).items())
    return ("DIFFERS", "; ".join(wrong)) if wrong else ("ok", f"{run.seconds:.1f} s, of {shapes}")


class Unsupported(Exception):
    """ONNX Runtime does not load or run a model."""


def load(path, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
    """A session on the original model, without rewriting."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Unsupported(f"does not load: {first_line(error)}") from None


def evaluate(path, given):
    """Inputs that ONNX Runtime takes, and its outputs, by name."""
    session = load(path)
    names = [output.name for output in session.get_outputs()]
    reason = None
    for sizes in onnx_inputs.SIZES:
        try:
            inputs = onnx_inputs.draw(session, path.name, sizes, given)
            return inputs, dict(zip(names, session.run(names, inputs)))
        except Exception as error:
            reason = reason or first_line(error)
    raise Unsupported(reason)


class Run:
    """What `irc run` did: its outputs or its message, and what it took."""

    def __init__(self, outputs, message, seconds, cpu):
        self.outputs, self.message, self.seconds, self.cpu = outputs, message, seconds, cpu


def run_irc(program, path, inputs, timeout, flags=()):
    with tempfile.TemporaryDirectory() as folder:
        given, found = pathlib.Path(folder, "x.npz"), pathlib.Path(folder, "y.npz")
        np.savez(given, **onnx_inputs.arrays(inputs))
        command = [program, "run", path, "--inputs", given, "--outputs", found, *flags]
        start, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return Run(None, f"not done after {timeout:g} s", timeout, timeout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        outputs, message = None, "\n    ".join(done.stderr.strip().splitlines()[:6])
        if not done.returncode:
            with np.load(found) as results:
                outputs = dict(results)
        return Run(outputs, message, time.time() - start, cpu)


def differences(expected, found, coarsest=None):
    """A line about each array that differs; `coarsest` as in compare.py."""
    lines = []
    for name, array in onnx_inputs.arrays(expected).items():
        if name not in found:
            lines.append(f"no output {name}")
            continue
        if array.dtype.kind in "US" and found[name].dtype.kind in "US":
            lines += [] if np.array_equal(array, found[name]) else [f"{name}: other strings"]
            continue
        floats = array.dtype.kind == "f"
        line, passes = compare(name, array, found[name], coarsest if floats else None)
        lines += [] if passes else [line]
    return lines


def first_line(error):
    return str(error).strip().splitlines()[0][:200]


if __name__ == "__main__":
    main()
