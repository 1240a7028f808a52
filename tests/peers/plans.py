#!/usr/bin/env python3
"""Times plans on the host against the fused library of the same model, in turns.

usage: plans.py IRC MODEL [ARCH...]    ARCH: ANY, CUDA_80 (both, if none is named), ...

Each round runs `irc bench` of the model, then of each plan, on one thread; then of each plan on two.
Prints medians over the rounds, and the ratio to the model's. For example:
    python3 examples/make_models.py target wide_ffn
    python3 tests/peers/plans.py target/release/irc target/wide_ffn.model.json
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 7


def bench(irc, file, threads):
    command = [irc, "bench", file, "--json", "--threads", str(threads), "--peak-gflops", "1",
               "--peak-bandwidth", "1"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(found.stdout)["median_ms"]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    irc, model, *archs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        cases = [("library", model, 1)]
        for arch in archs or ["ANY", "CUDA_80"]:
            plan = str(pathlib.Path(folder) / f"{arch}.plan.json")
            subprocess.run([irc, "compile", model, "-o", plan, "--arch", arch], check=True)
            cases += [(f"{arch} plan", plan, 1), (f"{arch} plan", plan, 2)]
        times = {case: [] for case in cases}
        for _ in range(ROUNDS):
            for case in cases:
                times[case].append(bench(irc, *case[1:]))
    base = statistics.median(times[cases[0]])
    for (name, _, threads), found in times.items():
        median = statistics.median(found)
        print(f"{name:16} {threads} threads  {median:9.3f} ms  {median / base:5.2f}")


if __name__ == "__main__":
    main()
