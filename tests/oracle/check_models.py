#!/usr/bin/env python3
"""Runs ARK models with irc and with numpy on the same inputs, and compares every buffer written.

    check_models.py --irc target/debug/irc MODEL|FOLDER ... [--large] [--seed N] [--exact TYPE]
                    [-- FLAG of irc run ...]

Folders stand for their *.model.json. One line comes out per model: `ok`, `DIFFERS` with the buffers
that do, `FAILED`, or `skipped` with the reason: communication, which needs every rank at once, and
without --large models of more than a few thousand million multiply-adds or of very many bytes, which
take a release build. Where X.virtual.model.json stands beside X.model.json, the two must give the same
bytes, and folders stand for X.model.json alone. Exit codes: 0 no model differs, 3 some do, 1 nothing to check.

Every element must be within the tolerance of the coarsest type that its buffer was computed from, or
as near as numpy itself is to what it computes in 64 bits, rounding nothing between ops
(docs/tolerances.md). With --exact, buffers of that type must be equal.

Inputs are normal random numbers; those that only multiply the other operand of a matmul are divided
by the root of its depth, so that the values of deep models stay in the range of their type. Indices
of embeddings are drawn from all that the table has, from both ends. With --seed, irc and the oracle
each draw them as irc run --seed documents.
"""
import argparse
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

import numpy as np

from ark_memory import inputs_and_outputs, ops_of
from ark_numpy import buffer_named, load, prepare, run
from ark_ops import FLOATS, ModelError, STORAGE, narrow
from ark_ranks import COMMUNICATION
from compare import TOLERANCE, compare, values

# Larger models take too long for a test in a debug build.
LARGE_PRODUCTS, LARGE_BYTES = 30e9, 200e6

# Free space that a check leaves in the folder of temporary files: irc writes its libraries there too.
MARGIN_BYTES = 200e6

PLAIN, VIRTUAL = ".model.json", ".virtual.model.json"

COARSE_FIRST = ("BF16", "FP16", "FP32")


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path, help="models, or folders of them")
    parser.add_argument("--irc", required=True, help="the program to test")
    parser.add_argument("--large", action="store_true", help="check large models too")
    parser.add_argument("--seed", type=int, help="inputs are those of irc run --seed")
    parser.add_argument("--exact", metavar="TYPE", help="buffers of this type, FP16 say, are equal")
    args = parser.parse_args(arguments[:split])
    paths = [path for given in args.models for path in models_of(given)]
    counts = {}
    for path in paths:
        verdict, text = check(path, args, arguments[split + 1:])
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{verdict} {path.name}: {text}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if not counts.get("ok"):
        sys.exit(1 if not counts.keys() & {"DIFFERS", "FAILED"} else 3)
    sys.exit(3 if counts.keys() & {"DIFFERS", "FAILED"} else 0)


def models_of(path):
    """The models of a folder, without the virtual ones that are compared with one beside them."""
    if not path.is_dir():
        return [path]
    is_twin = lambda model: model.name.endswith(VIRTUAL) and twin_of(model, VIRTUAL, PLAIN).exists()
    return sorted(model for model in path.glob(f"*{PLAIN}") if not is_twin(model))


def twin_of(path, own, other):
    return path.with_name(path.name.removesuffix(own) + other)


def check(path, args, flags):
    """The verdict on one model, and a line about it."""
    try:
        (rank,) = load([path])
        reason = reason_to_skip(rank, args.large)
        if reason:
            return "skipped", reason
        inputs = random_inputs(rank) if args.seed is None else prepare([rank], {}, args.seed)
        expected = evaluate([rank], inputs, flags)
        types = coarsest_types(rank)
    except ModelError as error:
        return "skipped" if "expected the models of ranks" in str(error) else "FAILED", str(error)
    with tempfile.TemporaryDirectory() as folder:
        needed = sum(held.nbytes for held in (*inputs.values(), *expected.values())) + MARGIN_BYTES
        free = shutil.disk_usage(folder).free
        if needed > free:
            return "skipped", f"{folder} has {free / 1e9:.1f} GB free of the {needed / 1e9:.1f} GB needed"
        given, outputs = f"{folder}/inputs.npz", f"{folder}/outputs.npz"
        np.savez(given, **inputs)
        source = ["--inputs", given] if args.seed is None else ["--seed", str(args.seed)]
        twin = twin_of(path, PLAIN, VIRTUAL)
        found = []
        for model in (path, twin)[:1 + twin.exists()]:
            command = [args.irc, "run", model, *source, "--outputs", outputs, *flags]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                return "FAILED", f"irc exits with {done.returncode}: {done.stderr.strip()}"
            found.append(dict(np.load(outputs)))
            os.remove(outputs)
    if len(found) == 2 and not same_arrays(*found):
        return "DIFFERS", f"{twin.name} gives other results"
    types_of = rank.memory.types.items()
    equal = {f"buffer_{key}" for key, dtype in types_of if dtype == args.exact}
    exact = functools.cache(lambda: unrounded([path], inputs, flags))
    return verdict(expected, exact, found[0], types, equal)


def unrounded(paths, inputs, flags=()):
    """What the models compute without rounding between ops; of those rounded as ARK does, in 32 bits."""
    ranks = load(paths, np.float32 if "--ark-accumulate" in flags else np.float64)
    return evaluate(ranks, inputs, flags)


def same_arrays(left, right):
    same = list(left) == list(right)
    return same and all(left[name].tobytes() == right[name].tobytes() for name in left)


def evaluate(ranks, inputs, flags=()):
    for name, values in inputs.items():
        rank, key = buffer_named(name, ranks)
        rank.memory.fill(key, values)
    return run(ranks, accumulate="--ark-accumulate" in flags)


def coarsest_types(rank):
    """The coarsest float type that went into each buffer written, by name."""
    types = {}
    for op in ops_of(rank.model):
        tensors = op["ReadTensors"] + op["WriteTensors"]
        found = {tensor["DataType"] for tensor in tensors}
        found |= {types.get(tensor["Buffer"]["Id"], "BYTE") for tensor in tensors}
        for tensor in op["WriteTensors"]:
            types[tensor["Buffer"]["Id"]] = next((t for t in COARSE_FIRST if t in found), "BYTE")
    return {f"buffer_{key}": dtype for key, dtype in types.items()}


def reason_to_skip(rank, large):
    ops = list(ops_of(rank.model))
    if any(op["Type"] in COMMUNICATION for op in ops):
        return "communicates"
    size = sum(held.nbytes for held in rank.memory.bytes.values())
    products = sum(product_count(op) for op in ops)
    if not large and (products > LARGE_PRODUCTS or size > LARGE_BYTES):
        return f"large ({products / 1e9:.1f}e9 multiply-adds, {size / 1e6:.0f} MB): give --large"
    return None


def depth(op):
    """The inner extent of a matmul."""
    operand = op["ReadTensors"][0]
    shape = operand.get("PaddedShape", operand["Shape"])
    transposed = op["Args"].get("TransposeInput", {}).get("BOOL", False)
    return shape[-2] if transposed and len(shape) > 1 else shape[-1]


def product_count(op):
    if op["Type"] != "Matmul":
        return 0
    output = op["WriteTensors"][0]
    return int(np.prod(output.get("PaddedShape", output["Shape"]))) * depth(op)


def random_inputs(rank):
    scales, tables = {}, {}
    for op in ops_of(rank.model):
        if op["Type"] == "Matmul":
            scales[op["ReadTensors"][1]["Buffer"]["Id"]] = depth(op) ** -0.5
        if op["Type"] == "Embedding":
            index, table = op["ReadTensors"]
            tables[index["Buffer"]["Id"]] = table["Shape"][0]
    inputs = {}
    for key in inputs_and_outputs(rank.model)[0]:
        dtype, count = rank.memory.types[key], rank.memory.whole(key).size
        generator = np.random.default_rng(zlib.crc32(f"buffer_{key}".encode()))
        inputs[f"buffer_{key}"] = draw(generator, count, dtype, scales.get(key), tables.get(key))
    return inputs


def draw(generator, count, dtype, scale, rows):
    if dtype in FLOATS:
        values = generator.standard_normal(count, np.float32) * np.float32(scale or 1)
        return narrow(values, dtype)
    low, high = (-rows, rows) if rows else (-8 if dtype.startswith("INT") else 0, 8)
    return generator.integers(low, high, count).astype(STORAGE[dtype])


def verdict(expected, exact, found, types, equal):
    """`exact` is called for what numpy computes without rounding, should that matter."""
    if expected.keys() != found.keys():
        return "FAILED", f"expected buffers {sorted(expected)}, found {sorted(found)}"
    results = [
        check_equal(name, expected[name], found[name]) if name in equal
        else check_buffer(name, expected[name], exact, found[name], types[name])
        for name in sorted(expected)
    ]
    differing = [line for line, good in results if not good]
    if differing:
        return "DIFFERS", "; ".join(differing)
    return "ok", f"{len(results)} buffers"


def check_equal(name, expected, found):
    """Equal but for the sign of zeros; any NaN equals any other."""
    differs = ~((values(expected) == values(found)) | np.isnan(values(expected) + values(found)))
    differs |= np.isnan(values(expected)) != np.isnan(values(found))
    return f"{name}: {differs.sum()} of {differs.size} are not equal", not differs.any()


def check_buffer(name, expected, exact, found, coarsest):
    line, good = compare(name, expected, found, np.dtype(STORAGE[coarsest]))
    if good or str(expected.dtype) not in TOLERANCE:
        return line, good
    exact = exact()[name]
    with np.errstate(all="ignore"):
        moved = np.abs(values(expected) - values(exact))
    moved = moved[np.isfinite(moved)]
    slack = moved.max(initial=0.0), np.sqrt(np.mean(np.square(moved))) if moved.size else 0.0
    return compare(name, exact, found, np.dtype(STORAGE[coarsest]), slack)


if __name__ == "__main__":
    main()
