#!/usr/bin/env python3
"""Evaluates ARK model files with numpy: an independent oracle, sharing no code with irc.

    ark_numpy.py MODEL.json --outputs Y.npz [--inputs X.npz] [--seed N] [--save-inputs X.npz]
                 [--ark-accumulate]
    ark_numpy.py MODEL_rank0.json MODEL_rank1.json ... --outputs Y.npz       all ranks together

Keys are `buffer_<Id>`, with several models `rank<r>/buffer_<Id>`: the whole buffer, 1-D, in the type
of the first tensor on it in file order (node by node: read, write, result tensors), BF16 as its bits
in uint16. Buffers not given start as zero; with --seed, buffers that are read before they are
written are filled with the values `Tensor::random` documents. Every buffer that a rank's own ops
write comes back; those that stand for buffers of another rank are neither inputs nor outputs.

Meaning follows ARK's op table (ark_ops.py): nodes run in list order, matmuls compute on padding too.
With --ark-accumulate sums round as ARK's kernels do (ark_accumulate.py), else at their end alone.
Communication (ark_ranks.py) needs the files of all ranks. Needs numpy alone (see requirements.txt).
"""
import argparse
import json
import sys

import numpy as np

import ark_accumulate
from ark_memory import Memory, inputs_and_outputs, fnv1a, ops_of, random
from ark_ops import ModelError
from ark_ranks import COMMUNICATION, Rank, World


def load(paths, unrounded=None):
    """The ranks of the model, in order."""
    models = [json.load(open(path)) for path in paths]
    models.sort(key=lambda model: model["Rank"])
    talks = any(op["Type"] in COMMUNICATION for model in models for op in ops_of(model))
    expected = list(range(models[0]["WorldSize"]))
    found = [model["Rank"] for model in models]
    if (talks or len(models) > 1) and found != expected:
        raise ModelError(f"expected the models of ranks {expected}, found {found}")
    return [Rank(model, Memory(model, unrounded)) for model in models]


def prefix(rank, ranks):
    """The prefix of the names of a rank's buffers."""
    return f"rank{rank.number}/buffer_" if len(ranks) > 1 else "buffer_"


def buffer_named(name, ranks):
    """The rank and the id of a buffer of that name."""
    for rank in ranks:
        start = prefix(rank, ranks)
        if name.startswith(start) and name[len(start):].isdigit():
            key = int(name[len(start):])
            if key not in rank.memory.bytes:
                raise ModelError(f"{name}: the model has no such buffer")
            return rank, key
    kind = "rank<r>/buffer_<Id>" if len(ranks) > 1 else "buffer_<Id>"
    raise ModelError(f"expected keys {kind}, found {name}")


def prepare(ranks, given, seed):
    """Fills the buffers before the run, and returns those that were filled."""
    for name in given:
        rank, key = buffer_named(name, ranks)
        rank.memory.fill(key, given[name])
    filled = dict(given)
    for rank in ranks if seed is not None else []:
        for key in inputs_and_outputs(rank.model)[0]:
            name = f"{prefix(rank, ranks)}{key}"
            if name not in given:
                count, dtype = rank.memory.whole(key).size, rank.memory.types[key]
                filled[name] = random(count, dtype, seed ^ fnv1a(name))
                rank.memory.fill(key, filled[name])
    return filled


def run(ranks, accumulate=False):
    """Runs every rank; returns the buffers written, by name."""
    with np.errstate(all="ignore"):
        World(ranks, ark_accumulate if accumulate else None).run()
    return {
        f"{prefix(rank, ranks)}{key}": rank.memory.whole(key)
        for rank in ranks for key in inputs_and_outputs(rank.model)[1]
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="a model, or the models of all ranks")
    parser.add_argument("--inputs", help="npz of whole buffers")
    parser.add_argument("--outputs", required=True, help="npz to write: every buffer written")
    parser.add_argument("--seed", type=int, help="fill inputs not given with random values")
    parser.add_argument("--save-inputs", help="npz to write: the inputs used")
    parser.add_argument("--ark-accumulate", action="store_true", help="accumulate as ARK does")
    args = parser.parse_args()
    ranks = load(args.models)
    given = dict(np.load(args.inputs)) if args.inputs else {}
    filled = prepare(ranks, given, args.seed)
    if args.save_inputs:
        np.savez(args.save_inputs, **filled)
    np.savez(args.outputs, **run(ranks, args.ark_accumulate))


if __name__ == "__main__":
    try:
        main()
    except ModelError as error:
        sys.exit(f"ark_numpy: {error}")
