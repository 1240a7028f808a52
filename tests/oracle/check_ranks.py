#!/usr/bin/env python3
"""Evaluates models of several ranks together, and checks the results by closed formulas.

    check_ranks.py FOLDER ...

Sets are files `<name>_rank<r>of<n>.model.json`, with and without virtual nodes. One line comes out per
set; a set without a rule below is evaluated only, and the line says so. Exit codes: 0 all hold, 3 some
do not, 1 no set found.
"""
import pathlib
import re
import sys

import numpy as np

from ark_numpy import load, prepare, run
from ark_ops import ModelError
from compare import compare


def wide(array):
    return array.astype(np.float32)


def weighted(given, got):
    """buffer 2 = sum of (rank + 1) * buffer 0 over the ranks."""
    return sum_into(2, given, got, lambda rank: rank + 1)


def weighted_in_place(given, got):
    """buffer 1 = sum of (rank + 1) * buffer 0 over the ranks."""
    return sum_into(1, given, got, lambda rank: rank + 1)


def in_place(given, got):
    """buffer 0 = sum of buffer 0 over the ranks."""
    return sum_into(0, given, got, lambda rank: 1)


def exchanged(given, got):
    """buffer 4 = sum of buffer 0 over the ranks."""
    return sum_into(4, given, got, lambda rank: 1)


def copied(given, got):
    """buffer 0 of rank 1 = buffer 0 of rank 0."""
    return [("rank1/buffer_0", given[0][0], got[1][0])]


def tensor_parallel(given, got):
    """buffer 6 = sum of buffer 5 over the ranks, each relu(buffer 0 @ buffer 1.T) @ buffer 2.T."""
    width = 4096
    lines, total = [], 0
    for rank, of in given.items():
        x, up, down = (wide(of[key]) for key in (0, 1, 2))
        inner = np.maximum(x.reshape(-1, width) @ up.reshape(-1, width).T, 0)
        part = (wide(inner.astype(np.float16)) @ down.reshape(width, -1).T).astype(np.float16)
        lines.append((f"rank{rank}/buffer_5", part.reshape(-1), got[rank][5]))
        total = total + wide(part.reshape(-1))
    return lines + [(f"rank{rank}/buffer_6", total.astype(np.float16), got[rank][6]) for rank in got]


def sum_into(key, given, got, weight):
    total = sum(wide(of[0]) * weight(rank) for rank, of in given.items()).astype(np.float16)
    return [(f"rank{rank}/buffer_{key}", total, got[rank][key]) for rank in got]


RULES = {
    "all_reduce": weighted, "all_reduce_sm": weighted_in_place, "packet_reduce": in_place,
    "recv_reduce_send": in_place, "reduce_send": in_place, "send_recv": copied,
    "send_recv_sm": exchanged, "send_recv_bidir": exchanged, "packet": copied,
    "megatron_ffn": tensor_parallel,
}


def sets_of(folder):
    """Paths by name, number of ranks and suffix."""
    found = {}
    for path in sorted(folder.glob("*_rank*of*.model.json")):
        match = re.fullmatch(r"(.*)_rank\d+of(\d+)((?:\.virtual)?)\.model\.json", path.name)
        if match:
            found.setdefault(match.group(1, 2, 3), []).append(path)
    return found


def by_rank(arrays):
    """Arrays by rank and buffer id."""
    ranks = {}
    for name, array in arrays.items():
        rank, key = re.fullmatch(r"rank(\d+)/buffer_(\d+)", name).groups()
        ranks.setdefault(int(rank), {})[int(key)] = array
    return ranks


def check(name, paths):
    """Whether the results of a set are correct, and a line about it."""
    try:
        ranks = load(paths)
        given = by_rank({key: array.copy() for key, array in prepare(ranks, {}, 1).items()})
        got = by_rank(run(ranks))
    except ModelError as error:
        return False, str(error)
    rule = RULES.get(name)
    if rule is None:
        return True, f"{sum(map(len, got.values()))} buffers, no rule"
    results = [compare(*line) for line in rule(given, got)]
    wrong = [line for line, good in results if not good]
    return not wrong, "; ".join(wrong) or rule.__doc__


def main():
    sets = [item for folder in sys.argv[1:] for item in sets_of(pathlib.Path(folder)).items()]
    if not sets:
        sys.exit(__doc__)
    passed = True
    for (name, world, suffix), paths in sets:
        good, text = check(name, paths)
        passed &= good
        print(f"{'ok' if good else 'DIFFERS'} {name} of {world}{suffix}: {text}", flush=True)
    sys.exit(0 if passed else 3)


if __name__ == "__main__":
    main()
