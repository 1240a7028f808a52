"""Checks and times kernels on an NVIDIA GPU, or checks them on an emulated one; tools/gpu/acceptance.sh starts it.

Each case is compiled to a library with a kernel, and its results are compared with an evaluation in 64 bits that
shares no code with irc: of ARK models by tests/oracle/ark_numpy.py, of ONNX models by ONNX's reference implementation.
Plans of ONNX models are compared with their run on the host. Times are those of the GPU's own clock, without copies, and
medians; peers are measured in the same run if torch is there.
"""
import argparse
import functools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/oracle"))

import check_models  # noqa: E402
import onnx_double  # noqa: E402
from ark_numpy import load  # noqa: E402
from ark_ops import ModelError  # noqa: E402
from compare import TOLERANCE, compare, values  # noqa: E402

# The least shares of what peers reach, and of the bandwidth of copies.
PRODUCT_SHARE, BANDWIDTH_SHARE = 0.7, 0.85

# Multiply-adds and bytes of what is emulated.
EMULATED_PRODUCTS, EMULATED_BYTES = 20e6, 8e6

# Seconds after which a command is ended: a warp that waits within its block waits for ever.
PATIENCE = 900

# The deviation of random buffers of plans, and of those of several ranks, whose sums are longer.
DEVIATION, DEVIATION_OF_RANKS = 1 / 8, 1 / 100

# Rows of a large product that are compared.
ROWS = 64

# The layer of the corpus that is compared with PyTorch.
LAYER = "llama2_7b_layer_seq512_bf16_nomask"


def main():
    parser = argparse.ArgumentParser(prog="acceptance.sh", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=pathlib.Path, help="models and plans; by default all cases")
    parser.add_argument("--irc", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--gpu", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--emulate", action="store_true", help="compare what is small enough, without a GPU or times")
    parser.add_argument("--corpus", type=pathlib.Path, default=os.environ.get("IRC_CORPUS"),
                        help="a folder of ARK models and plans; by default that of IRC_CORPUS")
    parser.add_argument("--ops", action="store_true", help="run ONNX's test cases of all ops too")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/gpu", help="the folder of the page")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    args.corpus = args.corpus and pathlib.Path(args.corpus)
    bench = Bench(args)
    for path in args.models:
        bench.case(path.name, bench.file, path)
    if not args.models:
        bench.all()
    print(bench.write(), end="")
    sys.exit(3 if any(row["verdict"] in ("DIFFERS", "FAILED") for row in bench.rows) else 0)


def graph(name, nodes, inputs, outputs, weights=()):
    """An ONNX model; inputs and outputs are pairs of an element type and a shape by name."""
    port = lambda ports: [helper.make_tensor_value_info(key, *value) for key, value in ports.items()]
    made = helper.make_graph(nodes, name, port(inputs), port(outputs), list(weights))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def product(size, kind=T.BFLOAT16):
    ports = {"a": (kind, [size, size]), "b": (kind, [size, size])}
    return graph(f"matmul_{size}", [node("MatMul", "a b", "y")], ports, {"y": (kind, [size, size])})


def memory_bound(rows, columns):
    """Models whose time is that of their bytes."""
    ports, out = {"x": (T.FLOAT, [rows, columns])}, {"y": (T.FLOAT, [rows, columns])}
    of_columns = {"scale": (T.FLOAT, [columns]), "bias": (T.FLOAT, [columns])}
    normal = [node("LayerNormalization", "x scale bias", "y", axis=-1)]
    chain = [node("Add", "x z", "s"), node("Tanh", "s", "t"), node("Mul", "t z", "y")]
    two = ports | {"z": (T.FLOAT, [rows, columns])}
    yield graph("copy", [node("Neg", "x", "y")], ports, out)
    yield graph("softmax", [node("Softmax", "x", "y", axis=-1)], ports, out)
    yield graph("layernorm", normal, ports | of_columns, out)
    yield graph("chain", chain, two, out)
    yield graph("row_sums", [node("ReduceSum", "x axes", "y", keepdims=1)], ports, {"y": (T.FLOAT, [rows, 1])},
                [numpy_helper.from_array(np.array([-1]), "axes")])
    yield graph("transpose", [node("Transpose", "x", "y", perm=[1, 0])], ports, {"y": (T.FLOAT, [columns, rows])})


def layers(name, count, rows, width, heads, causal, kind=T.FLOAT16):
    """Layers of an encoder, or with a mask of a decoder, with random weights."""
    random = np.random.default_rng(7)
    narrow = np.float16 if kind == T.FLOAT16 else np.float32
    nodes, weights = [], []

    def weight(key, *shape, scale=1.0):
        weights.append(numpy_helper.from_array((random.standard_normal(shape) * scale).astype(narrow), key))
        return key

    constant = lambda key, array: weights.append(numpy_helper.from_array(np.array(array), key))
    constant("split", np.array([1, rows, heads, width // heads]))
    constant("joined", np.array([1, rows, width]))
    constant("root", narrow((width // heads) ** -0.5))
    if causal:
        constant("mask", np.triu(np.full((rows, rows), -1e4, narrow), 1))
    x = "x"
    for layer in range(count):
        at = lambda key: f"{key}{layer}"
        dense = lambda given, key, out, *shape: nodes.append(
            node("MatMul", f"{given} {weight(at(key), *shape, scale=shape[0] ** -0.5)}", out))
        normal = lambda given, out: nodes.append(node(
            "LayerNormalization", f"{given} {weight(out + '_scale', width)} {weight(out + '_bias', width)}", out, axis=-1))
        normal(x, at("n"))
        for part in "qkv":
            dense(at("n"), f"w{part}", at(f"{part}_flat"), width, width)
            nodes.append(node("Reshape", f"{at(part + '_flat')} split", at(f"{part}_heads")))
            nodes.append(node("Transpose", at(f"{part}_heads"), at(part), perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]))
        nodes.append(node("MatMul", f"{at('q')} {at('k')}", at("products")))
        nodes.append(node("Mul", f"{at('products')} root", at("scores")))
        scores = at("scores")
        if causal:
            nodes.append(node("Add", f"{scores} mask", at("masked")))
            scores = at("masked")
        nodes.append(node("Softmax", scores, at("shares"), axis=-1))
        nodes.append(node("MatMul", f"{at('shares')} {at('v')}", at("values")))
        nodes.append(node("Transpose", at("values"), at("rows"), perm=[0, 2, 1, 3]))
        nodes.append(node("Reshape", f"{at('rows')} joined", at("joined_rows")))
        dense(at("joined_rows"), "wo", at("attended"), width, width)
        nodes.append(node("Add", f"{x} {at('attended')}", at("middle")))
        normal(at("middle"), at("m"))
        dense(at("m"), "up", at("wide"), width, 4 * width)
        nodes.append(node("Sigmoid", at("wide"), at("gate")))
        nodes.append(node("Mul", f"{at('wide')} {at('gate')}", at("act")))
        dense(at("act"), "down", at("narrow"), 4 * width, width)
        x = at("y")
        nodes.append(node("Add", f"{at('middle')} {at('narrow')}", x))
    shape = (kind, [1, rows, width])
    return graph(name, nodes, {"x": shape}, {x: shape}, weights)


def array_of(port, random):
    """A random value of an input, as irc reads it and as numpy computes with it."""
    kind = port.type.tensor_type
    drawn = random.standard_normal([dim.dim_value for dim in kind.shape.dim], np.float32)
    if kind.elem_type == T.BFLOAT16:
        bits = ((drawn.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
        return bits, values(bits)
    own = drawn.astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return own, own.astype(np.float64)


def drawn_of(port, random, deviation):
    """A random value of a buffer of a plan: floats are small, so that values stay in range."""
    drawn = random.standard_normal(port["shape"], np.float32) * np.float32(deviation)
    types = {"f16": "f2", "f32": "f4", "f64": "f8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
             "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "bool": "?"}
    if port["dtype"] == "bf16":
        return ((drawn.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
    kind = types[port["dtype"]]
    return drawn.astype(kind) if kind[0] == "f" else np.zeros(port["shape"], kind)


class Bench:
    """All cases, and what was found."""

    def __init__(self, args):
        self.args, self.rows, self.bandwidth = args, [], None
        self.engine = "emulate" if args.emulate else "cuda"
        self.arch = "CUDA_90" if re.search(r", 9\.0$", args.gpu) else "CUDA_80"
        self.torch = None if args.emulate else torch_of_gpu()
        if self.torch:
            self.copy_bandwidth()

    def all(self):
        small, emulated = self.args.emulate, self.args.emulate
        for path in sorted((ROOT / "examples").glob("*.model.json")):
            self.case(path.name, self.file, path)
        for count, rows, width in [(1, 64, 64)] if small else [(1, 64, 64), (2, 512, 1024)]:
            for name, causal in (("encoder", False), ("decoder", True)):
                name = f"{name}_{count}x{rows}x{width}"
                self.case(name, lambda: self.network(layers(name, count, rows, width, width // 64, causal)))
        for model in memory_bound(*(64, 200) if emulated else (16384, 4096)):
            self.case(model.graph.name, self.network, model, is_memory_bound=True)
        for size in [128] if emulated else [4096, 8192]:
            self.case(f"matmul_{size}", self.product, size)
        if self.args.corpus:
            for path in sorted(self.args.corpus.rglob("*.model.json")):
                if "_rank" not in path.name and not path.name.endswith(".virtual.model.json"):
                    self.case(path.name, self.file, path)
            for first in sorted(self.args.corpus.rglob("*_rank0of*.plan.json")):
                count = re.search(r"_rank0of(\d+)\.plan\.json$", first.name)
                if count:
                    named = lambda rank: first.with_name(first.name.replace("_rank0of", f"_rank{rank}of"))
                    ranks = [named(rank) for rank in range(int(count[1]))]
                    self.case(first.name, self.plan, first.name.replace("_rank0of", " of "), *ranks)
        if self.args.ops:
            self.case("ops of ONNX", self.ops)

    def case(self, name, run, *arguments, **options):
        """Runs a case; an error of this program is a row, so that the others are run. The page is written after each."""
        try:
            run(*arguments, **options)
        except Exception as error:
            self.add(name, "FAILED", f"{type(error).__name__}: {first_line(str(error))}")
        self.write()

    def write(self):
        """Writes the page and the record; returns the page."""
        (self.args.out / "gpu.json").write_text(json.dumps(self.record(), indent=2) + "\n")
        page = self.page()
        (self.args.out / "gpu.md").write_text(page)
        return page

    def add(self, name, verdict, text, **numbers):
        self.rows.append({"case": name, "verdict": verdict, "text": text, **numbers})
        print(f"{verdict} {name}: {text}", file=sys.stderr, flush=True)

    def irc(self, *arguments):
        command = [self.args.irc, *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return False, f"irc {arguments[0]} had not ended after {PATIENCE} seconds"
        return done.returncode == 0, (done.stdout if done.returncode == 0 else done.stderr).strip()

    def compiled(self, name, path):
        """The library of a model or plan; a row says why there is none."""
        library = self.args.out / "kernel.so"
        done, text = self.irc("compile", path, "-o", library, "--backend", "cuda", "--arch", self.arch)
        if not done:
            self.add(name, "not compiled", first_line(text))
        return library if done else None

    def run(self, name, library, inputs):
        """The results of a library; a row says why there are none."""
        given, found = self.args.out / "inputs.npz", self.args.out / "found.npz"
        np.savez(given, **inputs)
        done, text = self.irc("run", library, "--backend", self.engine, "--inputs", given, "--outputs", found)
        if not done:
            self.add(name, "FAILED", first_line(text))
            return None
        with np.load(found) as arrays:
            return dict(arrays)

    def milliseconds(self, path, *flags):
        """The median time of the GPU without copies, and of a run with them; on the host only the latter."""
        done, text = self.irc("bench", path, "--time", "2", "--json", *flags)
        if not done:
            return None, None
        report = json.loads(text)
        return report["device_median_ms"], report["median_ms"]

    def times(self, library, path=None):
        if self.args.emulate:
            return {}
        device, whole = self.milliseconds(library)
        host = self.milliseconds(path)[1] if path else None
        return {"device_ms": device, "with_copies_ms": whole, "host_ms": host}

    def file(self, path):
        if path.name.endswith(".model.json"):
            self.model(path)
        elif path.name.endswith(".plan.json"):
            self.plan(path.name, path)
        else:
            self.network(onnx.load(path), path=path)

    def model(self, path):
        """An ARK model, and its plan."""
        name = path.name.removesuffix(".model.json")
        try:
            (rank,) = load([path])
        except ModelError as error:
            return self.add(name, "no reference", str(error))
        if self.args.emulate and self.is_large(rank):
            return self.add(name, "skipped", "too large to emulate")
        inputs = check_models.random_inputs(rank)
        expected = check_models.evaluate([rank], inputs)
        exact = functools.cache(lambda: check_models.unrounded([path], inputs))
        types = check_models.coarsest_types(rank)
        plan = self.args.out / "case.plan.json"
        done, text = self.irc("compile", path, "-o", plan, "--arch", self.arch)
        if not done:
            self.add(f"{name}, plan", "not planned", first_line(text))
        for case, source in [(name, path), (f"{name}, plan", plan)][:1 + done]:
            library = self.compiled(case, source)
            found = library and self.run(case, library, inputs)
            if found:
                common = expected.keys() & found.keys()
                pick = lambda arrays: {key: arrays[key] for key in sorted(common)}
                verdict = check_models.verdict(pick(expected), lambda: pick(exact()), pick(found), types, set())
                is_layer = name == LAYER and source == path and self.torch is not None
                peers = self.torch_layer() if is_layer else {}
                self.add(case, *verdict, **self.times(library, path), **peers)

    def is_large(self, rank):
        size = sum(held.nbytes for held in rank.memory.bytes.values())
        products = sum(check_models.product_count(op) for op in check_models.ops_of(rank.model))
        return products > EMULATED_PRODUCTS or size > EMULATED_BYTES

    def plan(self, name, *ranks):
        """A plan, or those of all ranks, compared with a run on the host on small random inputs."""
        kernel, given, expected = (self.args.out / file for file in ("case.ptx", "inputs.npz", "expected.npz"))
        done, text = self.irc("compile", *ranks, "-o", kernel)
        if not done:
            return self.add(name, "not compiled", first_line(text))
        with open(kernel) as lines:
            ports = json.loads(lines.readline().removeprefix("// irc: "))["interface"]["inputs"]
        random, deviation = np.random.default_rng(1), DEVIATION if len(ranks) == 1 else DEVIATION_OF_RANKS
        drawn = {port["name"]: drawn_of(port, random, deviation) for port in ports}
        if self.args.emulate and sum(array.nbytes for array in drawn.values()) > EMULATED_BYTES:
            return self.add(name, "skipped", "too large to emulate")
        np.savez(given, **drawn)
        done, text = self.irc("run", *ranks, "--inputs", given, "--outputs", expected)
        if not done:
            return self.add(name, "no reference", first_line(text))
        done, text = self.irc("run", kernel, "--backend", self.engine, "--inputs", given, "--expected", expected)
        if not done and "run at once" in text:
            return self.add(name, "does not fit", first_line(text))
        verdict = ("ok", "agrees with the host") if done else ("DIFFERS", first_line(text))
        self.add(name, *verdict, **self.times(kernel, ranks[0] if len(ranks) == 1 else None))

    def network(self, model, path=None, is_memory_bound=False):
        """An ONNX model, and its plan if it has one."""
        name = model.graph.name if path is None else path.name
        if path is None:
            path = self.args.out / f"{name}.onnx"
            onnx.save(model, path)
        random = np.random.default_rng(1)
        drawn = {port.name: array_of(port, random) for port in model.graph.input}
        library = self.compiled(name, path)
        found = library and self.run(name, library, {key: own for key, (own, _) in drawn.items()})
        if found:
            exact = onnx_double.evaluate(model, {key: wide for key, (_, wide) in drawn.items()})
            numbers = self.times(library)
            if is_memory_bound and numbers.get("device_ms"):
                moved = sum(own.nbytes for own, _ in drawn.values()) + sum(array.nbytes for array in found.values())
                numbers["gbytes_per_second"] = moved / numbers["device_ms"] / 1e6
                self.bandwidth = self.bandwidth or numbers["gbytes_per_second"]
                numbers["share"] = numbers["gbytes_per_second"] / self.bandwidth
                numbers["least_share"] = BANDWIDTH_SHARE
            self.add(name, *same(exact, found), **numbers)
        if is_memory_bound:
            return
        plan = self.args.out / f"{name}.plan.json"
        done, text = self.irc("compile", path, "-o", plan, "--arch", self.arch)
        if done:
            self.plan(f"{name}, plan", plan)
        else:
            self.add(f"{name}, plan", "not planned", first_line(text))

    def product(self, size):
        """A product of matrices of bf16, of which some rows are compared."""
        model = product(size)
        path = self.args.out / f"{model.graph.name}.onnx"
        onnx.save(model, path)
        random = np.random.default_rng(1)
        drawn = {port.name: array_of(port, random) for port in model.graph.input}
        library = self.compiled(model.graph.name, path)
        found = library and self.run(model.graph.name, library, {key: own for key, (own, _) in drawn.items()})
        if not found:
            return
        rows = np.sort(random.choice(size, min(ROWS, size), replace=False))
        exact = {"y": drawn["a"][1][rows] @ drawn["b"][1]}
        verdict, text = same(exact, {"y": found["y"][rows]})
        numbers = self.times(library)
        if numbers.get("device_ms"):
            numbers["tflops"] = 2 * size**3 / numbers["device_ms"] / 1e9
            if self.torch:
                peer = self.torch_product(size)
                numbers |= {"cublas_ms": peer, "share": peer / numbers["device_ms"], "least_share": PRODUCT_SHARE}
        self.add(model.graph.name, verdict, f"{len(rows)} rows: {text}", **numbers)

    def ops(self):
        """ONNX's test cases of all ops."""
        command = ["cargo", "xtask", "conformance", "--backend", self.engine]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines = done.stdout.strip().splitlines()
        self.add("ops of ONNX", "ok" if done.returncode == 0 else "FAILED", lines[-1] if lines else first_line(done.stderr))

    def median_of(self, run):
        """The median time of something that torch runs, in milliseconds."""
        torch, times = self.torch, []
        for _ in range(5):
            run()
        for _ in range(30):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
        return statistics.median(times)

    def copy_bandwidth(self):
        source = self.torch.ones(1 << 26, device="cuda")
        target = self.torch.empty_like(source)
        milliseconds = self.median_of(lambda: target.copy_(source))
        self.bandwidth = 2 * source.nbytes / milliseconds / 1e6

    def torch_product(self, size):
        a, b = (self.torch.randn(size, size, device="cuda", dtype=self.torch.bfloat16) for _ in range(2))
        return self.median_of(lambda: a @ b)

    def torch_layer(self):
        """A layer of Llama 2 7B by PyTorch, eager and compiled, on 512 rows of bf16."""
        torch = self.torch
        made = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02
        q, k, v, o = (made(4096, 4096) for _ in range(4))
        gate, up, down, x = made(4096, 11008), made(4096, 11008), made(11008, 4096), made(1, 512, 4096)
        scale = [made(4096) for _ in range(2)]
        turns = torch.polar(torch.ones(512, 64, device="cuda"), torch.randn(512, 64, device="cuda"))

        def normal(x, scale):
            wide = x.float()
            return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).bfloat16() * scale

        def turned(x):
            pairs = torch.view_as_complex(x.float().reshape(1, 512, 32, 64, 2))
            return torch.view_as_real(pairs * turns[:, None]).reshape(1, 512, 32, 128).bfloat16()

        def layer(x):
            n = normal(x, scale[0])
            heads = [(n @ w).reshape(1, 512, 32, 128) for w in (q, k, v)]
            heads = [part.transpose(1, 2) for part in (turned(heads[0]), turned(heads[1]), heads[2])]
            values = torch.nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(1, 512, 4096)
            x = x + values @ o
            n = normal(x, scale[1])
            return x + (torch.nn.functional.silu(n @ gate) * (n @ up)) @ down

        with torch.no_grad():
            found = {"torch_eager_ms": self.median_of(lambda: layer(x))}
            try:
                compiled = torch.compile(layer)
                found["torch_compile_ms"] = self.median_of(lambda: compiled(x))
            except Exception as error:
                # It needs a C compiler and Triton.
                self.add("torch.compile", "no peer", f"{type(error).__name__}: {first_line(str(error))}")
            return found

    def record(self):
        return {"gpu": self.args.gpu, "arch": self.arch, "copy_gbytes_per_second": self.bandwidth, "cases": self.rows}

    def page(self):
        lines = [f"# Kernels on {self.args.gpu}", "",
                 f"Code is for {self.arch}. Results are compared with evaluations in 64 bits, and plans of ONNX models with"
                 " the host."]
        if self.bandwidth:
            whose = "torch" if self.torch else "irc's own kernel"
            lines.append(f"Copies by {whose} move {self.bandwidth:.0f} GB/s, reads and writes together.")
        if not self.args.emulate and not self.torch:
            lines.append(f"There is no torch for this GPU in {sys.executable}: products and the layer have no peer.")
        shares = [row for row in self.rows if row.get("share")]
        met = sum(row["share"] >= row["least_share"] for row in shares)
        lines.append(f"Of {len(self.rows)} results {sum(row['verdict'] == 'ok' for row in self.rows)} are right; of"
                     f" {len(shares)} rates {met} are high enough.")
        lines += ["", "| case | result | GPU ms | with copies | host ms | rate | of peer or copy | peers |",
                  "|---|---|---|---|---|---|---|---|"]
        return "\n".join(lines + [line_of(row) for row in self.rows]) + "\n"


def line_of(row):
    number = lambda key: f"{row[key]:.3f}" if row.get(key) is not None else "-"
    rate = next((f"{row[key]:.0f} {unit}" for key, unit in (("tflops", "TFLOP/s"), ("gbytes_per_second", "GB/s"))
                 if row.get(key)), "-")
    share = "-"
    if row.get("share"):
        share = f"{row['share']:.2f}, {'met' if row['share'] >= row['least_share'] else 'missed'}: {row['least_share']}"
    names = {"cublas_ms": "cuBLAS", "torch_eager_ms": "PyTorch", "torch_compile_ms": "torch.compile"}
    peers = ", ".join(f"{name} {row[key]:.3f} ms" for key, name in names.items() if row.get(key)) or "-"
    result = row["verdict"] if row["verdict"] == "ok" else f"{row['verdict']}: {row['text']}"
    cells = [row["case"], result.replace("|", "/"), *map(number, ("device_ms", "with_copies_ms", "host_ms")), rate, share, peers]
    return f"| {' | '.join(cells)} |"


def first_line(text):
    return next((line for line in text.splitlines() if line.strip()), "no message")


def same(exact, found):
    """Whether results are within the tolerances of their types of what 64 bits give."""
    lines, good = [], exact.keys() == found.keys()
    for name in sorted(exact.keys() & found.keys()):
        kind = str(found[name].dtype)
        as_wide = values(found[name]) if kind in TOLERANCE else found[name]
        line, close = compare(name, np.asarray(exact[name]).astype(as_wide.dtype), as_wide, kind)
        lines.append(line)
        good &= close
    return ("ok" if good else "DIFFERS"), "; ".join(lines)


def torch_of_gpu():
    """torch, if it is there and knows the GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


if __name__ == "__main__":
    main()
