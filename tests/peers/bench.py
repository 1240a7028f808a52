#!/usr/bin/env python3
"""Measures irc and its peers on the models of networks.py, and writes the tables and the chart of a page.

    bench.py --irc target/release/irc --runtime target/runtime/libirc_runtime.so --folder target/peers
             [--only NAME ...] [--corpus FOLDER] [--core N] [--rounds N] [--seconds S] [--page docs/performance.md]

Each model is measured in a process of its own by models.py, on one core and, where a run takes more than a millisecond, on
two, the core after it being the second. Models with open sizes are measured beside themselves at fixed sizes. Results
are kept in FOLDER/results.jsonl, and what is there is not measured again. The page must have the lines
`<!-- bench-peers: begin -->` and `<!-- bench-peers: end -->`, between which the tables are written; the chart lies beside
it, with the suffix .svg. Exit codes: 0, or 3 where a result is wrong.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

import networks

HERE = pathlib.Path(__file__).parent
BEGIN, END = "<!-- bench-peers: begin -->", "<!-- bench-peers: end -->"
PEERS = ["irc", "ONNX Runtime", "OpenVINO", "TorchInductor"]
# Relative to the largest value: 8-bit results may differ by steps of their last quantisation, and those in half precision by its
# rounding. Some results of detectors of faces and of voices are probabilities of at most 1e-4, of which ONNX Runtime's sigmoid has
# two digits.
TOLERANCES = {"_qdq": 0.1, "_qdq_hw": 0.1, "_qoperator": 0.1, "_dq": 0.02, "_int4": 2e-3, "_fp16": 0.02, "yunet_n_320_320": 0.02,
              "yunet_n_dynamic": 0.02, "silero_vad_16k_op15": 2e-3, "silero_vad_op18_ifless": 2e-3}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--irc", required=True)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for models and results")
    parser.add_argument("--only", nargs="*", metavar="NAME")
    parser.add_argument("--corpus", type=pathlib.Path, help="a folder of further ONNX models")
    parser.add_argument("--core", type=int, default=0, help="the first of two cores to use")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each program in each round")
    parser.add_argument("--page", type=pathlib.Path, help="the page to write tables to")
    args = parser.parse_args()
    store = Store(args.folder / "results.jsonl")
    names = args.only or [*networks.NETWORKS, *networks.VARIANTS]
    paths = [networks.make(args.folder / "models", name) for name in names]
    paths += sorted(args.corpus.rglob("*.onnx")) if args.corpus else []
    has_failed = False
    for number, path in enumerate(paths):
        if sys.stderr.isatty():
            print(f"\r{number} of {len(paths)} models  {path.stem:30}", end="", file=sys.stderr, flush=True)
        row = store.measured(path, 1, args)
        has_failed |= row is None
        is_long = row and row["milliseconds"]["irc"] > 1
        if is_long and os.cpu_count() > 1 and path.stem in networks.NETWORKS:
            has_failed |= store.measured(path, 2, args) is None
    if args.page:
        write(args.page, store.rows, peaks(args), args.folder / "models")
    sys.exit(3 if has_failed else 0)


class Store:
    """Rows of models.py, in a file."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text().splitlines() if path.exists() else []:
            row = json.loads(line)
            self.rows[row["model"], row["threads"]] = row

    def measured(self, path, threads, args):
        """The row of a model, None if it fails or its result is wrong."""
        key = path.stem, threads
        if key not in self.rows:
            tolerance = next((value for suffix, value in TOLERANCES.items() if path.stem.endswith(suffix)), 1e-4)
            command = [sys.executable, HERE / "models.py", path, "--irc", args.irc, "--runtime", args.runtime,
                       "--threads", threads, "--rounds", args.rounds, "--seconds", args.seconds, "--json", self.path,
                       "--tolerance", tolerance, *(["--footprint"] if threads == 1 else [])]
            if is_open(path.stem):
                command += ["--fixed", networks.make(path.parent, networks.VARIANTS[path.stem][0])]
            cores = set(range(args.core, args.core + threads))
            done = subprocess.run([str(part) for part in command], preexec_fn=lambda: os.sched_setaffinity(0, cores))
            if done.returncode:
                print(f"{path.stem}: models.py failed with {done.returncode}", file=sys.stderr)
                return None
            self.rows[key] = json.loads(self.path.read_text().splitlines()[-1])
        return self.rows[key]


def is_open(name):
    """Whether a model is a variant with open sizes."""
    return name in networks.VARIANTS and name.endswith(("_n", "_ns", "_hw"))


def peaks(args):
    """Operations and bytes per second of one core."""
    path = networks.make(args.folder / "models", "mlp_b1")
    command = ["taskset", "-c", str(args.core), args.irc, "bench", str(path), "--json", "--time", "0.1"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return 1e9 * found["peak_gflops"], 1e9 * found["peak_gbytes_per_second"]


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    flags = set(next(line for line in lines if line.startswith("flags")).split())
    level = [label for flag, label in {"avx512f": "AVX-512", "avx512_vnni": "VNNI", "avx512_bf16": "BF16",
                                       "avx512_fp16": "FP16", "amx_tile": "AMX"}.items() if flag in flags]
    return f"{name} ({', '.join(level) or 'AVX2'})"


def write(page, rows, peak, models):
    kinds = [
        ("One core, `f32`, fixed sizes", 1, [name for name in networks.NETWORKS]),
        ("Two cores", 2, [name for name in networks.NETWORKS]),
        ("One core, open sizes", 1, [name for name in networks.VARIANTS if is_open(name)]),
        ("One core, quantised", 1, [name for name in networks.VARIANTS if not is_open(name)]),
        ("One core, other models", 1, [name for name, _ in rows if name not in networks.NETWORKS
                                       and name not in networks.VARIANTS]),
    ]
    text = [f"On {processor()}: {peak[0] / 1e9:.0f} GFLOP/s and {peak[1] / 1e9:.1f} GB/s on one core.", ""]
    for title, threads, names in kinds:
        found = [(name, rows[name, threads]) for name in names if (name, threads) in rows]
        if found:
            text += [f"### {title}", "", *table(found, rows, threads, lambda name, time: roofline(models, name, time, peak)), ""]
    text += ["### Compilation, loading, memory and size", "", *footprints(rows), ""]
    text += [f"![Ratio to the fastest peer]({page.with_suffix('.svg').name})", ""]
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + "\n" + "\n".join(text) + END + rest.split(END)[1])
    page.with_suffix(".svg").write_text(chart(rows))


def time_text(milliseconds):
    if milliseconds is None:
        return ""
    value, unit = (milliseconds, "ms") if milliseconds >= 0.1 else (1e3 * milliseconds, "µs")
    return f"{value:.3g} {unit}"


def table(found, rows, threads, roofline_of):
    peers = [peer for peer in PEERS if any(peer in row["milliseconds"] for _, row in found)]
    are_open = all(is_open(name) for name, _ in found)
    last = {1: "of the roofline", 2: "of one core"}[threads] if not are_open else "of fixed sizes"
    lines = [f"| model | {' | '.join(peers)} | ratio | {last} | error |", "|---" * (len(peers) + 4) + "|"]
    for name, row in found:
        times = row["milliseconds"]
        cells = [time_text(times.get(peer)) for peer in peers]
        if are_open:
            share = f"{times['fixed sizes'] / times['irc']:.2f}"
        elif threads == 2:
            share = f"{rows[name, 1]['milliseconds']['irc'] / times['irc']:.2f}"
        else:
            share = roofline_of(name, times["irc"])
        lines.append(f"| {name} | {' | '.join(cells)} | {row['ratio']:.2f} | {share} | {row['error']:.0e} |")
    return lines


def roofline(models, name, milliseconds, peak):
    """The share of the least time that arithmetic and memory allow, of a model whose operations are known."""
    if name not in networks.NETWORKS:
        return ""
    described = json.loads((models / f"{name}.json").read_text())
    least = max(described["flops"] / peak[0], (described["weight_bytes"] + described["io_bytes"]) / peak[1])
    return f"{100e3 * least / milliseconds:.0f} %"


def footprints(rows):
    names = [name for name in ("mlp_b1", "resnet50", "mobilenetv2", "bert_base", "gpt2_decode512", "resnet50_qdq")
             if (name, 1) in rows]
    lines = ["| model | `irc compile` | library | program | opened and run once | memory |", "|---" * 6 + "|"]
    for name in names:
        row = rows[name, 1]
        first = f"{row['compile']:.2f} s | {row['megabytes']:.1f} MB"
        for peer, found in (row["footprint"] or {}).items():
            if found:
                cost = f"{found['milliseconds']:.0f} ms | {found['megabytes']:.0f} MB"
                lines.append(f"| {name} | {first if peer == 'irc' else ' | '} | {peer} | {cost} |")
    return lines


def chart(rows):
    """Bars of the ratio to the fastest peer, on a logarithmic scale, as SVG."""
    found = [(name, row["ratio"]) for (name, threads), row in rows.items() if threads == 1]
    height, left, unit = 16, 190, 110
    def x(ratio):
        return left + unit * (math.log2(max(0.125, min(ratio, 8))) + 3)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + 6 * unit + 60}" '
             f'height="{height * (len(found) + 2)}" font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>']
    for tick in (0.125, 0.25, 0.5, 1, 2, 4, 8):
        stroke = "black" if tick == 1 else "#ccc"
        parts.append(f'<line x1="{x(tick):.0f}" x2="{x(tick):.0f}" y1="{height}" y2="100%" stroke="{stroke}"/>')
        parts.append(f'<text x="{x(tick):.0f}" y="11" text-anchor="middle">{tick:g}</text>')
    for number, (name, ratio) in enumerate(found):
        y = height * (number + 1) + 2
        start, end = sorted((x(1), x(ratio)))
        colour = "#2a7" if ratio >= 1 else "#c53"
        parts.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">{name}</text>')
        parts.append(f'<rect x="{start:.1f}" y="{y}" width="{end - start:.1f}" height="{height - 4}" fill="{colour}"/>')
        parts.append(f'<text x="{end + 4:.1f}" y="{y + 10}">{ratio:.2f}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    main()
