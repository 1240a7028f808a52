#!/usr/bin/env python3
"""Runs plans with irc and their models with numpy on the same inputs, and compares every buffer.

    check_plans.py --irc target/debug/irc FOLDER ... [--large] [--only NAME] [--kernels]

The plans of `<name>.model.json` are `<name>.plan.json` and `<name>.<arch>.plan.json` beside it; those
of a model of several ranks, `<name>_rank<r>of<n>`, run together, and so do its models, which irc
plans itself. One line comes out per run: `ok`, `DIFFERS` with the buffers that do, `FAILED`, or
`skipped` with the reason. Inputs and tolerances are those of check_models.py. With --kernels, those of
several ranks run as kernels of GPUs, emulated, and races are errors.
Exit codes: 0 no plan differs, 3 some do, 1 nothing to check.
"""
import argparse
import functools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from ark_numpy import load, prefix
from ark_ops import ModelError
from check_models import LARGE_BYTES, LARGE_PRODUCTS, coarsest_types, evaluate
from check_models import product_count, random_inputs, unrounded, verdict
from ark_memory import ops_of
from check_ranks import sets_of

KINDS = ("plan.json", "cuda_90.plan.json", "rocm_942.plan.json")

# How plans run as kernels, and the devices whose plans are kernels.
EMULATED = ("--backend", "emulate", "--race-check")
KERNELS = ("plan.json", "cuda_90.plan.json")

# Models whose default plans the checks reject, and why: they run as plans only.
REJECTED = {
    "all_reduce_sm": "ARK's default channel overwrites what a Send still reads",
    "recv_reduce_send": "the channels of DeviceSync and Send must be pinned by rules",
    "reduce_send": "the channels of DeviceSync and Send must be pinned by rules",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--irc", required=True, help="the program to test")
    parser.add_argument("--large", action="store_true", help="check large models too")
    parser.add_argument("--only", default="", help="part of the names to check")
    parser.add_argument("--kernels", action="store_true", help="emulate kernels of several ranks")
    args = parser.parse_args()
    counts = {}
    flags = EMULATED if args.kernels else ("--threads", "2")
    for name, models in (item for folder in args.folders for item in models_of(folder)):
        if args.only not in name or args.kernels and len(models) == 1:
            continue
        for what, verdict_, text in check(name, models, args.irc, args.large, flags):
            counts[verdict_] = counts.get(verdict_, 0) + 1
            print(f"{verdict_} {what}: {text}", flush=True)
    print(", ".join(f"{count} {verdict_}" for verdict_, count in sorted(counts.items())))
    wrong = counts.keys() & {"DIFFERS", "FAILED"}
    sys.exit(3 if wrong else 0 if counts.get("ok") else 1)


def models_of(folder):
    """Names and paths: single models, then those of several ranks."""
    for path in sorted(folder.glob("*.model.json")):
        name = path.name.removesuffix(".model.json")
        if "_rank" not in name and not name.endswith(".virtual"):
            yield name, [path]
    for (name, _, suffix), paths in sets_of(folder).items():
        if not suffix:
            yield name, paths


def check(name, models, irc, large, flags):
    """What was run, its verdict, and a line about it, for each way to run a model."""
    kinds = KERNELS if flags == EMULATED else KINDS
    plans = [[path.with_name(path.name.replace("model.json", kind)) for path in models] for kind in kinds]
    runs = [paths for paths in plans if all(path.exists() for path in paths)]
    if len(models) > 1 and name not in REJECTED:
        runs.append(models)
    if not runs:
        return
    try:
        ranks = load(models)
        reason = reason_to_skip(ranks, large)
        if reason:
            yield name, "skipped", reason
            return
        inputs = {f"{prefix(rank, ranks)}{key}": array for rank, key, array in inputs_of(ranks)}
        expected = evaluate(ranks, inputs)
        types = types_of(ranks)
    except ModelError as error:
        yield name, "FAILED", str(error)
        return
    exact = functools.cache(lambda: unrounded(models, inputs))
    for paths in runs:
        found, trouble = run_irc(irc, paths, inputs, flags)
        if trouble:
            yield paths[0].name, "FAILED", trouble
            continue
        # irc's plans reuse the memory of dead values for intermediate ones.
        kept = last_written(ranks) if paths is models else expected.keys()
        pick = lambda arrays: {key: array for key, array in arrays.items() if key in kept}
        yield paths[0].name, *verdict(pick(expected), exact, pick(found), types, set())


def last_written(ranks):
    """Names of the buffers that their rank does not read after their last write."""
    names = set()
    for rank in ranks:
        for op in ops_of(rank.model):
            own = lambda tensors: {f"{prefix(rank, ranks)}{tensor['Buffer']['Id']}" for tensor in tensors}
            names = (names - own(op["ReadTensors"])) | own(op["WriteTensors"])
    return names


def reason_to_skip(ranks, large):
    size = sum(held.nbytes for rank in ranks for held in rank.memory.bytes.values())
    products = sum(product_count(op) for rank in ranks for op in ops_of(rank.model))
    if not large and (products > LARGE_PRODUCTS or size > LARGE_BYTES):
        return f"large ({products / 1e9:.1f}e9 multiply-adds, {size / 1e6:.0f} MB): give --large"
    return None


def inputs_of(ranks):
    for rank in ranks:
        for name, array in random_inputs(rank).items():
            yield rank, name.removeprefix("buffer_"), array


def types_of(ranks):
    types = {}
    for rank in ranks:
        for name, dtype in coarsest_types(rank).items():
            types[prefix(rank, ranks) + name.removeprefix("buffer_")] = dtype
    # Data sent between ranks have the precision of the coarsest type.
    coarsest = next((t for t in ("BF16", "FP16") if t in types.values()), None)
    return {name: coarsest or dtype for name, dtype in types.items()} if len(ranks) > 1 else types


def run_irc(irc, paths, inputs, flags):
    """The results of irc, or its error message."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = f"{folder}/inputs.npz", f"{folder}/outputs.npz"
        np.savez(given, **inputs)
        command = [irc, "run", *paths, "--inputs", given, "--outputs", found, *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return None, f"irc exits with {done.returncode}: {done.stderr.strip()}"
        return dict(np.load(found)), None


if __name__ == "__main__":
    main()
