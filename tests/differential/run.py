#!/usr/bin/env python3
"""Draws ONNX models and compares irc with ONNX Runtime on them.

    run.py COUNT --program target/debug/irc-conformance [--seed S] [--keep FOLDER]

A seed gives a model; the seeds are S, S+1, ... Each model is run by ONNX Runtime and by irc: compiled by
LLVM, compiled by Cranelift, and by the reference evaluator. Where they differ, the model is shrunk, and ONNX's
reference implementation says who is right. Differences that are ONNX Runtime's stand in deviations.toml, with
the reason. Prints what was drawn, and every other difference with its smallest model.

Exit codes: 0 no difference, 3 some, 1 irc-conformance does not run, or too few operators are drawn.
"""
import argparse
import collections
import pathlib
import shutil
import sys
import time
import tomllib
import warnings

import onnx

import closeness
import generate
import irc
import oracles
import shrink

BATCH = 100
# What many models have at least: fewer operators say that the generator draws too little.
MANY, LEAST = 200, 120
KNOWN = tomllib.loads((pathlib.Path(__file__).parent / "deviations.toml").read_text()).get("deviation", [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, help="how many seeds")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--program", required=True, help="irc-conformance")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("target/differential"),
                        help="where the models are written")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    report = Report()
    for start in range(args.seed, args.seed + args.count, BATCH):
        seeds = range(start, min(start + BATCH, args.seed + args.count))
        check(seeds, Checker(args.program, args.keep), report)
        print(f"{report.models} models, {report.seconds():.0f} s, {len(report.found)} differences", file=sys.stderr,
              flush=True)
    print(report.text())
    if report.models >= MANY and len(report.used) < LEAST:
        sys.exit(f"expected {LEAST} operators or more")
    sys.exit(3 if report.found else 0)


class Report:
    """What was run, and what differs."""

    def __init__(self):
        self.start = time.time()
        self.models, self.by_reference = 0, 0
        self.used, self.known = collections.Counter(), collections.Counter()
        self.found = []

    def add(self, model, by_runtime):
        self.models += 1
        self.by_reference += not by_runtime
        self.used.update(model.used)

    def seconds(self):
        return time.time() - self.start

    def text(self):
        rare = ", ".join(sorted({row.name for row in generate.OPERATORS} - self.used.keys()))
        lines = [f"{len(self.used)} operators in {sum(self.used.values())} nodes"]
        lines += [f"none of {rare}"] if rare else []
        lines += [f"{count} times: {reason}" for reason, count in self.known.most_common()]
        lines.append(f"{self.models} models ({self.by_reference} by ONNX's reference implementation alone), "
                     f"{len(self.found)} differences, {self.seconds():.0f} s")
        return "\n".join(lines)


class Checker:
    """Runs models and says which differ."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def expected(self, proto, feeds):
        """The outputs, and whether they are ONNX Runtime's."""
        try:
            return oracles.runtime(proto, feeds), True
        except oracles.Unsupported:
            return oracles.reference(proto, feeds), False

    def is_run(self, model):
        """Whether ONNX Runtime runs a model, or only the reference implementation; None if neither does."""
        try:
            return self.expected(model.proto, model.feeds)[1]
        except oracles.Unsupported:
            return None

    def verdicts(self, models, engines=irc.ENGINES):
        """What is wrong with each model, by engine: pairs of kind and text."""
        wrong = []
        for (proto, feeds), found in zip(models, irc.run(self.program, self.folder / "cases", models, engines)):
            try:
                expected, _ = self.expected(proto, feeds)
            except oracles.Unsupported:
                wrong.append({})
                continue
            wrong.append({engine: verdict for engine, result in found.items()
                          if (verdict := self.verdict(proto, expected, result))})
        return wrong

    def verdict(self, proto, expected, found):
        if isinstance(found, str):
            return found.split(":")[0], found
        lines = closeness.differences(proto, expected, found)
        return ("number", lines[0]) if lines else None


def check(seeds, checker, report):
    drawn = []
    for seed in seeds:
        model = generate.draw(seed)
        if model and (by_runtime := checker.is_run(model)) is not None:
            drawn.append((seed, model))
            report.add(model, by_runtime)
    verdicts = checker.verdicts([(model.proto, model.feeds) for _, model in drawn])
    for (seed, model), wrong in zip(drawn, verdicts):
        if wrong:
            explain(seed, model, wrong, checker, report)


def explain(seed, model, wrong, checker, report):
    """Shrinks a model, and reports what differs unless it is known."""
    engines, kinds = tuple(wrong), {kind for kind, _ in wrong.values()}

    def fails(models):
        return [any(kind in kinds for kind, _ in verdict.values()) for verdict in checker.verdicts(models, engines)]

    smallest = shrink.shrink(model.proto, model.values, fails)
    feeds = shrink.feeds_of(smallest, model.values)
    verdict = checker.verdicts([(smallest, feeds)])[0] or wrong
    judged = ""
    if "number" in {kind for kind, _ in verdict.values()}:
        judged = judge(smallest, feeds, model.values, checker)
    reason = known(smallest, verdict, judged)
    if reason:
        report.known[reason] += 1
        return
    path = checker.folder / "found" / str(seed)
    shutil.rmtree(path, ignore_errors=True)
    irc.write_case(path, smallest, feeds)
    report.found.append(seed)
    print(f"seed {seed}: {', '.join(generate.used(smallest.graph))}: {path}{judged}")
    for engine, (_, text) in verdict.items():
        print(f"  {engine}: {text}", flush=True)


def judge(proto, feeds, values, checker):
    """Which evaluator ONNX's reference implementation agrees with, or that ONNX Runtime has other results when it
    runs the nodes one by one, as it did when they were drawn."""
    found = irc.run(checker.program, checker.folder / "judged", [(proto, feeds)], ("reference",))[0]["reference"]
    known = [values[port.name].array for port in proto.graph.output if port.name in values]
    if not isinstance(found, str) and len(known) == len(proto.graph.output):
        if not closeness.differences(proto, known, found):
            return "; ONNX Runtime has the results of irc when it runs the nodes one by one"
    try:
        expected = oracles.reference(proto, feeds)
    except oracles.Unsupported as error:
        return f"; ONNX's reference implementation does not run it: {error}"
    agrees = []
    try:
        runtime = dict(zip([port.name for port in proto.graph.output], oracles.runtime(proto, feeds)))
        if not closeness.differences(proto, expected, runtime):
            agrees.append("ONNX Runtime")
    except oracles.Unsupported:
        pass
    if not isinstance(found, str) and not closeness.differences(proto, expected, found):
        agrees.append("irc")
    return f"; ONNX's reference implementation agrees with {' and '.join(agrees) or 'neither'}"


def known(proto, verdict, judged):
    """The reason of a listed difference."""
    names = set(generate.used(proto.graph)) - {"Constant", "Identity"}
    for entry in KNOWN:
        if "types" in entry and not set(entry["types"]) & types_of(proto):
            continue
        fits = not entry["operators"] or set(entry["operators"]) & names and len(names) <= 2
        if fits and all(entry["text"] in text + judged for _, text in verdict.values()):
            return f"{'/'.join(entry['operators']) or 'any operator'}: {entry['reason']}"
    return None


def types_of(proto):
    """The element types of the outputs, by ONNX's names."""
    elements = {port.type.tensor_type.elem_type for port in proto.graph.output}
    return {onnx.TensorProto.DataType.Name(element) for element in elements}


if __name__ == "__main__":
    main()
