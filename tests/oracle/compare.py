#!/usr/bin/env python3
"""Compares two .npz files array by array, within the tolerance of each element type.

    compare.py EXPECTED.npz ACTUAL.npz

An element passes when |actual - expected| <= abs + rel * (|expected| + rms), where rms is the root
mean square of the finite expected elements; NaN equals NaN, and an infinity on one side alone
counts as the largest finite number of its type. uint16 holds the bits of bfloat16, as irc and the
oracle write it.

             float64  float32  float16  bfloat16  integers, bool
        rel    1e-11     1e-4     1e-2      4e-2               0
        abs    1e-15     1e-8     1e-6      1e-6               0

The table is that of `Tolerance::of` in irc-tensor, which says why.
Exit codes: 0 all within tolerance, 3 numeric mismatch, 1 files that cannot be compared.
"""
import sys

import numpy as np

# (rel, abs)
TOLERANCE = {
    "float64": (1e-11, 1e-15), "float32": (1e-4, 1e-8), "float16": (1e-2, 1e-6),
    "uint16": (4e-2, 1e-6),
}

LARGEST = {
    "float64": np.finfo(np.float64).max, "float32": float(np.finfo(np.float32).max),
    "float16": 65504.0, "uint16": 3.3895313892515355e38,
}


def values(array):
    if array.dtype == np.uint16:
        array = (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.astype(np.float64)


def compare(name, expected, actual, coarsest=None, slack=(0.0, 0.0)):
    """One line about the array, and whether it passes.

    `coarsest` is the type whose tolerance holds, where the array was computed from a coarser one
    than its own. `slack` is what else is allowed: of one element, and in the root mean square.
    """
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        kind = lambda array: f"{array.dtype}{list(array.shape)}"
        return f"{name}: expected {kind(expected)}, found {kind(actual)}", False
    rel, floor = TOLERANCE.get(str(coarsest or expected.dtype), (0.0, 0.0))
    left, right = values(expected), values(actual)
    finite = np.isfinite(left)
    one_sided = np.isinf(left) != np.isinf(right)
    limit = LARGEST.get(str(expected.dtype), np.inf)
    left = np.where(one_sided & np.isinf(left), np.copysign(limit, left), left)
    right = np.where(one_sided & np.isinf(right), np.copysign(limit, right), right)
    with np.errstate(all="ignore"):
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        distance = np.where(same, 0.0, np.abs(right - left))
        distance = np.where(np.isnan(distance), np.inf, distance)
        rms = np.sqrt(np.mean(np.square(left[finite]))) if finite.any() else 0.0
        allowance = floor + rel * (np.abs(left) + rms) + slack[0]
        close = same | (np.isfinite(left) & (distance <= allowance))
        used = np.where(same, 0.0, distance / allowance)
        spread = np.sqrt(np.mean(np.square(distance[np.isfinite(distance)]))) if finite.any() else 0
        if slack[0] and not spread <= floor + rel * rms + slack[1]:
            close &= distance <= allowance - slack[0]
    largest = distance.max(initial=0.0)
    line = f"{name}: {expected.dtype}{list(expected.shape)} largest difference {largest:.3e}"
    if close.all():
        return f"{line}, {used.max(initial=0.0):.2f} of the tolerance", True
    first = tuple(int(axis) for axis in np.argwhere(~close)[0])
    count = int((~close).sum())
    pair = f"expected {left[first]:g}, found {right[first]:g}"
    return f"{line}, {count} of {close.size} differ, first at {list(first)}: {pair}", False


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    expected, actual = np.load(sys.argv[1]), np.load(sys.argv[2])
    missing, extra = set(expected) - set(actual), set(actual) - set(expected)
    if missing or extra:
        sys.exit(f"keys differ: missing {sorted(missing)}, unexpected {sorted(extra)}")
    passed = True
    for name in sorted(expected):
        line, good = compare(name, expected[name], actual[name])
        print(line if good else f"MISMATCH {line}")
        passed &= good
    sys.exit(0 if passed else 3)


if __name__ == "__main__":
    main()
