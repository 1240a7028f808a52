#!/usr/bin/env python3
"""Runs a Model Library Format archive on every client there is, and says whether each takes it.

    check_archive.py ARCHIVE [--inputs X] [--outputs Y] [--tolerance REL] [--skip STEP ...]

X and Y are .npz files, or folders of `in.NAME.npy` and `out0.npy`, `out1.npy`, …; without them an
archive's own test vector counts. Inputs go by name; outputs by number where keys are numbers, and else
in the order of the file. Each step prints a line: `ok`, `failed`, `absent` (the archive does not have
what the step needs, nor says so), or `skipped` where --skip asks for it.

    form      the graph and the metadata, found sound without irc (form.py)
    params    .params read by apache-tvm, to the bit what a reader of ours finds; written again, the
              same bytes; spoilt, rejected
    symbols   objects define what the graph calls, and need libc and libm alone (library.py lists the
              names); slots for functions of a runtime are weak
    link      `cc -shared` of all objects and sources
    dlr       libdlr.so lists the inputs, and runs the graph
    shared    libdlr.so runs the shared library that an archive of irc has beside its objects
    reject    libdlr.so rejects what is spoilt, of which each kind is a line (controls.py)
    packed    every function called by the packed C interface, with the type codes 7, 3 and 13; of
              archives of irc with empty slots too
    ffi       every function called by tvm-ffi, with and without TVM's runtime beside it
    host      a program in C, the code linked into it, runs the graph: functions by name, and from
              TVMSystemLibEntryPoint (host.c)

Clients run thrice, with other inputs in between: the first outputs are those expected, the third equal
to the first, the second those that all other clients have. Each runs in a process of its own, so that
one that dies is a line as well.

--with-runtime links functions of TVM's runtime in (backend.c), which code for TVM's C runtime calls by
name, and libdlr.so does not export. --tolerance allows REL times the largest value of an output, beside
what compare.py allows. Exit codes: 0 nothing failed, 1 something did.

Needs numpy, cc and binutils, and what install.py installs: --clients, else target/clients.
"""
import argparse
import pathlib
import re
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent / "oracle"))

import host
from archive import Archive, Failure, demand
from compare import compare
from steps import Absent, LINKED, STEPS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--inputs", type=pathlib.Path)
    parser.add_argument("--outputs", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=0.0, metavar="REL")
    parser.add_argument("--skip", action="append", default=[], choices=list(STEPS), metavar="STEP")
    parser.add_argument("--with-runtime", action="store_true")
    parser.add_argument("--clients", type=pathlib.Path, default=HERE.parent.parent / "target/clients")
    args = parser.parse_args()
    if (args.inputs is None) != (args.outputs is None):
        parser.error("--inputs and --outputs belong together")
    sys.path.insert(1, str(args.clients.resolve()))
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        sys.exit(0 if check(args, pathlib.Path(folder)) else 1)


def check(args, folder):
    try:
        state = Check(args, folder)
    except Failure as failure:
        print(f"failed  archive: {failure}")
        return False
    except Exception as error:
        print(f"failed  archive: {type(error).__name__}: {error}")
        return False
    passed = True
    for name, step in STEPS.items():
        is_skipped = name in args.skip
        verdict, text = ("skipped", "as --skip says") if is_skipped else attempt(state, name, step)
        print(f"{verdict:7} {name}: {text}", flush=True)
        passed &= verdict != "failed"
    return passed


def attempt(state, name, step):
    try:
        demand(name not in LINKED or state.library.exists(), "nothing is linked")
        return "ok", step(state)
    except Absent as reason:
        return "absent", reason
    except Failure as failure:
        return "failed", failure
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"


class Check:
    """What is checked, and what steps leave to those after them."""

    def __init__(self, args, folder):
        self.here, self.folder = HERE, folder
        self.libdlr = args.clients / "libdlr.so"
        demand(self.libdlr.exists(), f"there is no {self.libdlr}; ./irc-dev clients gets it")
        self.tolerance, self.with_runtime = args.tolerance, args.with_runtime
        self.archive = Archive(args.archive, folder / "archive")
        if args.inputs:
            self.inputs, self.expected = read_arrays(args.inputs, "in"), outputs_of(args.outputs)
        else:
            self.inputs, self.expected = self.archive.vector()
        self.check_arrays()
        self.between = {name: other(value) for name, value in self.inputs.items()}
        self.objects, self.added = [], []
        self.library, self.backend = folder / "model.so", folder / "backend.so"
        # What the first client makes of the inputs in between.
        self.reference = None

    def check_arrays(self):
        """Inputs and outputs are of the graph's types."""
        graph = self.archive.graph
        names = host.names(self.archive)
        demand(set(names) == set(self.inputs), f"inputs are {names}, given are {sorted(self.inputs)}")
        given = [self.inputs[name] for name in names]
        ports = [*(graph.inputs[name] for name in names), *graph.outputs]
        entries = [graph.entries[entry] for entry in ports]
        demand(len(graph.outputs) == len(self.expected), f"there are {len(graph.outputs)} outputs")
        for entry, array in zip(entries, [*given, *self.expected]):
            wanted, found = (entry.numpy, entry.shape), (array.dtype, list(array.shape))
            demand(wanted == found, f"{found} is given for {wanted}")

    def runs(self):
        return [self.inputs, self.between, self.inputs]

    def judge(self, who, runs):
        """Outputs of the three runs; gives how far the first is from what is expected."""
        first, second, third = runs
        worst = [self.judge_one(f"{who}: output {index}", *pair)
                 for index, pair in enumerate(zip(self.expected, first, strict=True))]
        same = lambda left, right: [a.tobytes() for a in left] == [b.tobytes() for b in right]
        demand(same(first, third), f"{who}: a run leaves something behind, the third is not the first")
        demand(not same(first, second), f"{who}: other inputs give the same outputs")
        self.reference = self.reference or second
        for index, pair in enumerate(zip(self.reference, second, strict=True)):
            self.judge_one(f"{who}: output {index} of the second run", *pair)
        return f"{who} {max(worst):.1e}"

    def judge_one(self, name, expected, found):
        largest = 1.0 if expected.dtype == bool else float(np.abs(expected).max(initial=0))
        slack = self.tolerance * largest
        line, passes = compare(name, expected, found, slack=(slack, slack))
        demand(passes, line)
        wide = [array.astype(np.float64) for array in (expected, found)]
        return float(np.abs(wide[0] - wide[1]).max(initial=0))


def read_arrays(path, prefix):
    """By key of the file, or by what stands between `in` or `out` and `.npy`."""
    if path.is_dir():
        form = re.compile(rf"(?:.*\.)?{prefix}\.?(.+)\.npy")
        found = ((form.fullmatch(file.name), file) for file in sorted(path.iterdir()))
        return {match[1]: np.load(file) for match, file in found if match}
    with np.load(path) as arrays:
        return dict(arrays)


def outputs_of(path):
    arrays = read_arrays(path, "out")
    if all(key.isdecimal() for key in arrays):
        return [arrays[str(index)] for index in range(len(arrays))]
    return list(arrays.values())


def other(value):
    """Other inputs that are as good: the elements in reverse, and half as large where they may be."""
    reverse = value.reshape(-1)[::-1].reshape(value.shape)
    return reverse / value.dtype.type(2) if value.dtype.kind == "f" else np.ascontiguousarray(reverse)


if __name__ == "__main__":
    main()
