#!/usr/bin/env python3
"""Times tree ensembles of irc, ONNX Runtime and Treelite (GTIL, and compiled by TL2cgen) on one core, interleaved.

    trees.py --irc target/debug/irc FOLDER [--trees 100 1000] [--depths 6 8] [--batches 1 1000]
             [--core N] [--rounds N] [--seconds S] [--tl2cgen]

Trains regressors of XGBoost on random data, and writes them to FOLDER unless they are there. Prints the median over the
rounds of each program's median, in milliseconds: of `irc bench`, and of calls from Python of the others, which add
a few microseconds. --tl2cgen compiles the trees with gcc, which takes minutes for 1,000 trees.

Needs the Python packages numpy, onnxmltools, onnxruntime, scikit-learn, skl2onnx, treelite, tl2cgen and xgboost.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import time

import numpy as np
import onnxruntime
import tl2cgen
import treelite
import xgboost
from onnxmltools import convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

FEATURES, ROWS = 30, 20_000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--irc", required=True)
    parser.add_argument("--trees", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--depths", type=int, nargs="+", default=[6, 8])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 1000])
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each program in each round")
    parser.add_argument("--tl2cgen", action="store_true", help="compile the trees to C as well")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for trees in args.trees:
        for depth in args.depths:
            stem = args.folder / f"{trees}_{depth}"
            make(stem, trees, depth, args.tl2cgen)
            for batch in args.batches:
                row = measure(stem, batch, args)
                print(f"{trees} trees of depth {depth}, batch {batch}: {row}", flush=True)


def make(stem, trees, depth, compiled):
    if not stem.with_suffix(".onnx").exists():
        random = np.random.default_rng(0)
        x = random.normal(size=(ROWS, FEATURES)).astype("f4")
        y = np.square(x[:, :10]).sum(1) + 3 * np.sin(x[:, 10:20]).sum(1) + 2 * random.normal(size=ROWS)
        model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, learning_rate=0.05, min_child_weight=0)
        model.fit(x, y.astype("f4"))
        model.get_booster().save_model(stem.with_suffix(".json"))
        kind = FloatTensorType([None, FEATURES])
        proto = convert_xgboost(model, initial_types=[("x", kind)], target_opset=15)
        stem.with_suffix(".onnx").write_bytes(proto.SerializeToString())
    if compiled and not stem.with_suffix(".so").exists():
        model = treelite.frontend.load_xgboost_model(stem.with_suffix(".json"))
        tl2cgen.export_lib(model, toolchain="gcc", libpath=stem.with_suffix(".so"), nthread=1,
                           params={"parallel_comp": 32, "quantize": 1})


def measure(stem, batch, args):
    os.sched_setaffinity(0, {args.core})
    x = np.random.default_rng(1).normal(size=(batch, FEATURES)).astype("f4")
    inputs = stem.with_suffix(".npz")
    np.savez(inputs, x=x)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(stem.with_suffix(".onnx")), options)
    model = treelite.frontend.load_xgboost_model(stem.with_suffix(".json"))
    programs = {
        "irc": lambda: bench(args, stem.with_suffix(".onnx"), inputs),
        "ONNX Runtime": lambda: median(lambda: session.run(None, {"x": x}), args.seconds),
        "GTIL": lambda: median(lambda: treelite.gtil.predict(model, x, nthread=1), args.seconds),
    }
    if stem.with_suffix(".so").exists():
        predictor, matrix = tl2cgen.Predictor(stem.with_suffix(".so"), nthread=1), tl2cgen.DMatrix(x)
        programs["TL2cgen"] = lambda: median(lambda: predictor.predict(matrix), args.seconds)
    times = [{name: program() for name, program in programs.items()} for _ in range(args.rounds)]
    medians = {name: statistics.median(row[name] for row in times) for name in programs}
    return ", ".join(f"{name} {value:.4g} ms" for name, value in medians.items())


def bench(args, model, inputs):
    command = [args.irc, "bench", model, "--inputs", inputs, "--time", str(args.seconds), "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(re.search(r"median ([\d.]+) ms", done.stdout)[1])


def median(call, seconds):
    """The median time of a call, in milliseconds."""
    end, times = time.perf_counter() + seconds, []
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    main()
