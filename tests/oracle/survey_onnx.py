#!/usr/bin/env python3
"""Surveys folders of ONNX models: what irc runs, whether ONNX Runtime agrees, and why not.

    survey_onnx.py --irc target/release/irc FOLDER --results RESULTS.jsonl [--timeout SECONDS] [--only TEXT]
    survey_onnx.py --table RESULTS.jsonl

Each folder in FOLDER is a project. One line of JSON per model goes to RESULTS.jsonl; models that are in it
already are not run again. --table prints it as Markdown: the projects, and the causes of each difference and
rejection. Verdicts:

    equal       every output is within the tolerances (docs/tolerances.md) of the coarsest float type in the model
    differs     some output is not; `cause` says what ONNX Runtime and a 64-bit evaluation make of it
    rejected    irc does not run it; `text` is the diagnostic
    not run     ONNX Runtime does not run the model on random inputs; irc accepts it
    not valid   ONNX Runtime does not load the model; `accepted` says whether irc check does

Needs the Python packages numpy, onnx and onnxruntime.
"""
import argparse
import collections
import json
import multiprocessing
import pathlib
import re
import resource
import subprocess
import time

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import check_onnx
import onnx_double
import onnx_inputs

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
          "BiasDropout", "BitmaskDropout", "BitmaskBiasDropout"}
MAX_MEMORY = 8 << 30
COARSE = {onnx.TensorProto.BFLOAT16: "uint16", onnx.TensorProto.FLOAT16: "float16", onnx.TensorProto.FLOAT: "float32"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="a folder of folders of models")
    parser.add_argument("--irc", help="the program to test")
    parser.add_argument("--results", type=pathlib.Path, help="a line of JSON per model")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that irc may take per model")
    parser.add_argument("--only", default="", help="a text that the paths of models contain")
    parser.add_argument("--table", type=pathlib.Path, help="prints results as Markdown")
    args = parser.parse_args()
    if args.table:
        print(table([json.loads(line) for line in args.table.read_text().splitlines()]))
        return
    done = set()
    if args.results.exists():
        done = {json.loads(line)["model"] for line in args.results.read_text().splitlines()}
    with args.results.open("a") as results:
        for path in sorted(args.folder.rglob("*.onnx")):
            name = str(path.relative_to(args.folder))
            if name not in done and args.only in name:
                print(json.dumps({"model": name, **isolated(path, args)}), file=results, flush=True)


def isolated(path, args):
    """The result of a model, from a process of its own: ONNX Runtime may crash."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)

    def work():
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for result in survey(path, args):
            there.send(result)

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    there.close()
    end = time.time() + 3 * args.timeout
    result = {"verdict": "not run", "text": "ONNX Runtime crashes, or is not done in time"}
    try:
        while here.poll(max(0, end - time.time())):
            result = here.recv()
    except EOFError:
        pass
    child.kill()
    child.join()
    return result


def survey(path, args):
    """The result, as far as it is known: the cause of a difference takes longer."""
    size = path.stat().st_size
    try:
        inputs, expected = check_onnx.evaluate(path, onnx_inputs.Given())
    except check_onnx.Unsupported as error:
        verdict = "not valid" if str(error).startswith("does not load") else "not run"
        done = subprocess.run([args.irc, "check", path], capture_output=True, text=True, timeout=args.timeout)
        yield {"verdict": verdict, "bytes": size, "text": str(error), "accepted": done.returncode == 0,
               "irc": done.stderr.strip()[:600]}
        return
    run = check_onnx.run_irc(args.irc, path, inputs, args.timeout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    result = {"bytes": size, "cpu": round(run.cpu, 2), "peak": peak}
    if run.outputs is None:
        yield {"verdict": "rejected", "text": run.message, **result}
        return
    proto = onnx.load(path)
    widest = coarsest(proto)
    wrong = check_onnx.differences(expected, run.outputs, widest)
    if not wrong:
        exact = not check_onnx.differences(expected, run.outputs)
        yield {"verdict": "equal", "widest": widest, "within_own_type": exact, **result}
        return
    result = {"verdict": "differs", "text": "; ".join(wrong)[:600], "cause": "", **result}
    yield result
    for cause in causes_of(path, proto, inputs, expected, run.outputs, widest):
        result = {**result, "cause": f"{result['cause']}; {cause}".removeprefix("; ")}
        yield result


def causes_of(path, proto, inputs, expected, found, widest):
    """What other evaluations say about a difference."""
    drawn = {node.op_type for node in nodes_of(proto)} & RANDOM
    if drawn or any(trains(node) for node in nodes_of(proto)):
        yield "random values"
    try:
        names = list(expected)
        optimised = check_onnx.load(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
        fast = dict(zip(names, optimised.run(names, inputs)))
        if check_onnx.differences(fast, {**onnx_inputs.arrays(expected)}, widest):
            yield "ONNX Runtime differs from itself with optimisations"
        if not check_onnx.differences(fast, found, widest):
            yield "equal to ONNX Runtime with optimisations"
    except Exception as error:
        yield f"optimised, ONNX Runtime fails: {check_onnx.first_line(error)}"
    try:
        names = [port.name for port in proto.graph.output]
        defined = dict(zip(names, ReferenceEvaluator(proto).run(None, inputs)))
        if not check_onnx.differences(defined, found, widest):
            yield "equal to ONNX's reference implementation"
    except Exception:
        pass
    try:
        exact = onnx_inputs.arrays(onnx_double.evaluate(proto, inputs))
    except Exception as error:
        yield f"no evaluation in 64 bits: {type(error).__name__} {str(error)[:80]}"
        return
    ours, theirs = (errors(exact, onnx_inputs.arrays(values)) for values in (found, expected))
    worst = max(ours, key=lambda name: ours[name] / (theirs[name] + 1e-30), default=None)
    if worst is not None:
        yield f"from 64 bits, irc {ours[worst]:.2e}, ONNX Runtime {theirs[worst]:.2e} ({worst})"


def errors(exact, found):
    """The root mean square of the errors of each array of floats."""
    return {name: float(np.sqrt(np.mean(np.square(found[name].astype("f8") - array.astype("f8")))))
            for name, array in exact.items()
            if name in found and array.dtype.kind == "f" and array.shape == found[name].shape and array.size}


def nodes_of(proto):
    """The nodes of a model, those of inner graphs and functions included."""
    pending = [list(proto.graph.node), *(list(function.node) for function in proto.functions)]
    while pending:
        for node in pending.pop():
            yield node
            pending += [list(item.g.node) for item in node.attribute if item.HasField("g")]


def trains(node):
    """Whether a Dropout draws random numbers."""
    return node.op_type == "Dropout" and len(node.input) > 2 and node.input[2] != ""


def coarsest(proto):
    """The float type with the widest tolerance in a model, as in compare.py."""
    found = {tensor.data_type for tensor in proto.graph.initializer}
    found |= {port.type.tensor_type.elem_type for ports in (proto.graph.input, proto.graph.output) for port in ports}
    for node in nodes_of(proto):
        for item in node.attribute:
            found |= {item.i} if item.name in ("to", "dtype") else set()
            found |= {item.t.data_type} if item.HasField("t") else set()
    return next((name for element, name in COARSE.items() if element in found), None)


def table(results):
    """Counts by project, and what differs or is rejected, by cause."""
    columns = ("equal", "differs", "rejected", "not run", "not valid")
    counts = collections.defaultdict(collections.Counter)
    for result in results:
        counts[project(result)][result["verdict"]] += 1
    rows = [(name, counts[name]) for name in sorted(counts)]
    rows.append(("all", sum(counts.values(), collections.Counter())))
    lines = [f"| project | models | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
    lines += [f"| {name} | {row.total()} | {' | '.join(str(row[column] or '') for column in columns)} |"
              for name, row in rows]
    for verdict, cause_of in (("differs", difference), ("rejected", rejection)):
        causes = collections.defaultdict(list)
        for result in results:
            if result["verdict"] == verdict:
                causes[cause_of(result)].append(result["model"].split("__")[-1].removesuffix(".onnx"))
        lines += ["", f"| {verdict} | models | |", "|---|---|---|"]
        lines += [f"| {cause} | {len(models)} | {', '.join(f'`{model}`' for model in models[:3])} |"
                  for cause, models in sorted(causes.items(), key=lambda item: (-len(item[1]), item[0]))]
    return "\n".join(lines)


def difference(result):
    """The class of the cause of a difference."""
    said = result["cause"]
    for text, cause in (
            ("random values", "random numbers"),
            ("equal to ONNX Runtime with", "ONNX Runtime has irc's results with optimisations"),
            ("differs from itself", "ONNX Runtime has other results with optimisations"),
            ("equal to ONNX's reference", "ONNX's reference implementation has irc's results")):
        if text in said:
            return cause
    numbers = re.search(r"from 64 bits, irc ([^,]+), ONNX Runtime (\S+)", said)
    if numbers and float(numbers[1]) <= float(numbers[2]):
        return "irc is nearer to an evaluation in 64 bits"
    return "both are as far from an evaluation in 64 bits" if numbers and near(*numbers.groups()) else "other"


def near(ours, theirs):
    return float(ours) <= 3 * float(theirs)


def rejection(result):
    """The diagnostic without names."""
    first = result["text"].split("\n")[0].strip()
    return re.sub(r"graph\.node\[\d+\]|[`'][^`']*[`']", "...", first.removeprefix("irc: "))


def project(result):
    return result["model"].split("/")[0].replace("+", "/")


if __name__ == "__main__":
    main()
