#!/usr/bin/env python3
"""Compares irc with ONNX Runtime on models that are written in unusual ways, valid and invalid ones.

    check_files.py --irc target/debug/irc

What ONNX Runtime runs, irc runs with the same outputs. Of what ONNX Runtime rejects, `irc check` prints an error or
a warning. onnx_files.py has the models, and those on which they differ on purpose.
Exit codes: 0 all is so, 3 something is not.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
from onnx import helper

import onnx_files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--irc", required=True, help="the program to test")
    irc = pathlib.Path(parser.parse_args().irc).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "sub").mkdir()
        np.array([10, 20, 30, 40], np.float32).tofile(folder / "four")
        np.array([7, 8], np.float32).tofile(folder / "sub" / "two")
        paths = {name: folder / f"{index}.onnx" for index, name in enumerate(onnx_files.CASES)}
        for name, model in onnx_files.CASES.items():
            paths[name].write_bytes(model.SerializeToString())
        warned = warnings(irc, paths.values())
        wrong = []
        for name, model in onnx_files.CASES.items():
            verdict = check(irc, model, paths[name], str(paths[name]) in warned)
            if bool(verdict) != (name in onnx_files.DIFFERS):
                wrong.append(f"{name}: {verdict or 'no difference'}")
    print("\n".join(wrong + [f"{len(onnx_files.CASES)} files, {len(wrong)} wrong"]))
    sys.exit(3 if wrong else 0)


def warnings(irc, paths):
    """The files in which `irc check` finds an error or a warning."""
    done = subprocess.run([irc, "check", "--json", *paths], capture_output=True, text=True)
    found = json.loads(done.stdout)
    return {record["file"] for record in found if record["severity"] in ("error", "warning")}


def check(irc, model, path, warned):
    """How irc differs from ONNX Runtime."""
    feeds = inputs(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = {port.name for port in session.get_inputs()}
        ends = [port.name for port in session.get_outputs()]
        expected = dict(zip(ends, session.run(None, {name: feeds[name] for name in names & feeds.keys()})))
    except Exception as error:
        return None if warned else f"irc check is silent; ONNX Runtime: {str(error)[:200]}"
    given, found = path.with_suffix(".x.npz"), path.with_suffix(".y.npz")
    np.savez(given, **feeds)
    done = subprocess.run([irc, "run", path, "--inputs", given, "--outputs", found, "--backend", "reference"],
                          capture_output=True, text=True)
    if done.returncode:
        return f"irc: {done.stderr[:300]}"
    with np.load(found) as results:
        for name, value in expected.items():
            if name not in results or results[name].shape != value.shape or not np.allclose(results[name], value):
                return f"{name}: expected {value.ravel()[:4]}, found {results[name].ravel()[:4]}"
    return None


def inputs(model):
    """Inputs that have no default."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for port in model.graph.input:
        kind = port.type.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim] if kind.HasField("shape") else [2]
        shape = [size if size >= 0 else 2 for size in sizes]
        numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) - 1.5
        if port.name not in defaults:
            feeds[port.name] = np.asarray(numbers).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return feeds


if __name__ == "__main__":
    main()
