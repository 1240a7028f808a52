#!/usr/bin/env python3
"""Times compiled ONNX models against ONNX Runtime, OpenVINO and TorchInductor, interleaved in one process.

    models.py --irc target/debug/irc --runtime target/runtime/libirc_runtime.so MODEL.onnx ...
              [--base OTHER_IRC] [--fixed FIXED.onnx] [--threads N] [--rounds N] [--seconds S] [--footprint] [--json OUT.jsonl]

A MODEL.json beside a model names its inputs and their ranges, as networks.py writes it; without one, floats
are normal, integers are 0 or 1, and open sizes are 1. Each round runs every program in turn; printed are the medians
over the rounds, the ratio of the fastest peer to irc, the largest difference from ONNX Runtime relative to the largest
value, and the processor time of `irc compile`. With --base, a library compiled by another build of irc is one more program;
with --fixed, the library of FIXED.onnx, a model with the same inputs whose sizes are known.
OpenVINO and TorchInductor (of torch) take part where they are installed and take the model. With --footprint, processes of
their own measure the time from opening a model to the end of its first run, and the memory that this takes.
Pin it to as many cores as there are threads: taskset -c 1 for one. Exit codes: 0, or 3 where a result differs by
more than 1e-4 (or what --tolerance says).
"""
import argparse
import ctypes
import functools
import importlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime



# Programs that irc compiled.
OWN = ("irc", "base", "fixed sizes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--irc", required=True)
    parser.add_argument("--base", help="another build of irc to compare with")
    parser.add_argument("--fixed", type=pathlib.Path, help="the model with sizes that are known, to compare with")
    parser.add_argument("--runtime", required=True, help="libirc_runtime.so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each program in each round")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--footprint", action="store_true", help="measure time to load and memory as well")
    parser.add_argument("--json", type=pathlib.Path, help="append one object per model to this file")
    parser.add_argument("--first-run", metavar="PROGRAM", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.first_run:
        print(json.dumps(first_run(args)))
        return
    rows = [measure(path, args) for path in args.models]
    sys.exit(3 if any(row["error"] > args.tolerance for row in rows) else 0)


def measure(path, args):
    session = onnx_runtime_session(path, args.threads)
    inputs = inputs_of(path, session)
    expected = session.run(None, inputs)
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/irc.so"
        np.savez(f"{library}.npz", **inputs)
        seconds, megabytes = compiled(args.irc, path, library)
        irc = Runtime(args.runtime).program(library, inputs, args.threads)
        programs = {"irc": irc}
        if args.base:
            base, _ = compiled(args.base, path, f"{folder}/base.so")
            programs["base"] = Runtime(args.runtime).program(f"{folder}/base.so", inputs, args.threads)
        if args.fixed:
            compiled(args.irc, args.fixed, f"{folder}/fixed.so")
            programs["fixed sizes"] = Runtime(args.runtime).program(f"{folder}/fixed.so", inputs, args.threads)
        programs["ONNX Runtime"] = bound(session, inputs, expected)
        for name, start in {"OpenVINO": openvino_program, "TorchInductor": inductor_program}.items():
            program = start(path, inputs, args.threads)
            if program:
                programs[name] = program
        error = max(difference(left, right) for left, right in zip(irc.outputs(), expected))
        times = interleaved(programs, args)
        footprint = {}
        if args.footprint:
            measured = [name for name in times if name not in OWN]
            footprint = {name: footprint_of(name, path, library, args) for name in ["irc", *measured]}
    peers = {name: value for name, value in times.items() if name not in OWN}
    best = min(peers, key=peers.get)
    row = {
        "model": path.stem, "threads": args.threads, "milliseconds": {k: 1e3 * v for k, v in times.items()},
        "best": best, "ratio": peers[best] / times["irc"], "error": error, "compile": seconds, "megabytes": megabytes,
        "footprint": footprint,
    }
    text = "  ".join(f"{name} {1e3 * value:.4g} ms" for name, value in times.items())
    line = f"{path.stem:22} {row['ratio']:5.2f} of {best:13}  {text}  error {error:.1e}  compiled in {seconds:.2f} s"
    if args.base:
        row["compile_base"] = base
        line += f" (base {base:.2f})"
    print(line, flush=True)
    if args.json:
        with args.json.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return row


def footprint_of(name, path, library, args):
    """Milliseconds to the end of the first run, and megabytes that it takes, in a process of its own."""
    flags = ["--irc", args.irc, "--runtime", args.runtime, "--threads", str(args.threads), "--first-run", name]
    files = [str(path), library, f"{library}.npz"]
    done = subprocess.run([sys.executable, __file__, *files, *flags], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def first_run(args):
    path, library, inputs = args.models
    # Inputs are read, and packages imported, before the clock starts.
    inputs = {name: aligned(values) for name, values in np.load(inputs).items()}
    starts = {
        "irc": lambda: Runtime(args.runtime).program(library, inputs, args.threads),
        "ONNX Runtime": lambda: functools.partial(onnx_runtime_session(path, args.threads).run, None, inputs),
        "OpenVINO": lambda: openvino_program(path, inputs, args.threads),
        "TorchInductor": lambda: inductor_program(path, inputs, args.threads),
    }
    optional({"OpenVINO": "openvino", "TorchInductor": "torch"}.get(args.first_run, "onnxruntime"))
    memory, start = resident(), time.perf_counter()
    starts[args.first_run]()()
    return {"milliseconds": 1e3 * (time.perf_counter() - start), "megabytes": (resident() - memory) / 1e6}


def resident():
    """Bytes of memory of this process that are in use."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def optional(name):
    """A package, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def compiled(irc, path, library):
    """Compiles a model; the processor seconds it took, the median of three, and the megabytes of the library. If its sizes must be
    known, those of the inputs beside the library are.
    """
    command = [irc, "compile", path, "-o", library]

    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    try:
        first = seconds()
    except subprocess.CalledProcessError:
        command += ["--inputs", f"{library}.npz"]
        first = seconds()
    return statistics.median([first, seconds(), seconds()]), os.path.getsize(library) / 1e6


def difference(found, expected):
    found, expected = np.float64(found), np.float64(expected)
    largest = np.abs(expected).max(initial=0)
    return float(np.abs(found - expected).max(initial=0) / (largest or 1))


def interleaved(programs, args):
    """Median over the rounds of the median seconds of a run."""
    for program in programs.values():
        program()
    # On one thread, time of the processor: it leaves out what others do on the machine.
    clock = time.process_time if args.threads == 1 else time.perf_counter
    times = {name: [] for name in programs}
    for _ in range(args.rounds):
        for name, program in programs.items():
            program()
            samples, end = [], clock() + args.seconds
            while len(samples) < 3 or clock() < end:
                start = clock()
                program()
                samples.append(clock() - start)
            times[name].append(statistics.median(samples))
    return {name: statistics.median(samples) for name, samples in times.items()}


TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_,
         "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(float16)": np.float16,
         "tensor(double)": np.float64}


def inputs_of(path, session):
    described = path.with_suffix(".json")
    known = {}
    if described.exists():
        known = {spec["name"]: spec for spec in json.loads(described.read_text())["inputs"]}
    random = np.random.default_rng(7)
    # Models of others have inputs of theirs beside them.
    given = path.with_suffix(".npz")
    own = np.load(given) if given.exists() else {}
    inputs = {}
    for port in session.get_inputs():
        if f"in_{port.name}" in own:
            inputs[port.name] = aligned(own[f"in_{port.name}"])
            continue
        spec = known.get(port.name, {})
        shape = spec.get("shape") or [size if isinstance(size, int) else 1 for size in port.shape]
        dtype = TYPES[port.type]
        if np.issubdtype(dtype, np.floating):
            values = random.standard_normal(shape)
        else:
            values = random.integers(0, spec.get("hi") or 2, shape)
        inputs[port.name] = aligned(values.astype(dtype))
    return inputs


def aligned(values):
    """A copy whose memory begins at a multiple of 64 bytes."""
    storage = np.zeros(values.nbytes + 64, np.uint8)
    start = -storage.ctypes.data % 64
    copy = storage[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def onnx_runtime_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def bound(session, inputs, expected):
    binding = session.io_binding()
    for name, values in inputs.items():
        binding.bind_cpu_input(name, values)
    results = [aligned(values) for values in expected]
    for port, result in zip(session.get_outputs(), results):
        binding.bind_output(port.name, "cpu", 0, result.dtype, list(result.shape), result.ctypes.data)
    binding.results = results
    return lambda: session.run_with_iobinding(binding)


def openvino_program(path, inputs, threads):
    """None where OpenVINO is not installed or does not take the model."""
    openvino = optional("openvino")
    if not openvino:
        return None
    core = openvino.Core()
    hints = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1,
             "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False}
    try:
        request = core.compile_model(core.read_model(path), "CPU", hints).create_infer_request()
        for name, values in inputs.items():
            request.set_tensor(name, openvino.Tensor(values, shared_memory=True))
        request.infer()
    except RuntimeError as error:
        print(f"OpenVINO: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return request.infer


def inductor_program(path, inputs, threads):
    """None where torch is not installed or the model has an operator that torch_graph lacks."""
    torch = optional("torch")
    if not torch:
        return None
    import torch_graph

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    try:
        module = torch_graph.Graph(path)
    except NotImplementedError as error:
        print(f"TorchInductor: {error}", file=sys.stderr)
        return None
    given = {name: torch.from_numpy(values) for name, values in inputs.items()}
    # Weights are parameters that do not change, so that it may lay them out anew.
    torch._inductor.config.freezing = True
    compiled_module = torch.compile(module, backend="inductor")
    try:
        compiled_module(given)
    except Exception as error:  # of any kind, where an operator has attributes or operands that it does not know
        print(f"TorchInductor: {(str(error).strip() or repr(error)).splitlines()[0]}", file=sys.stderr)
        return None
    return lambda: compiled_module(given)


class Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("rank", ctypes.c_uint32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_uint64)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("pool", ctypes.c_void_p), ("threads", ctypes.c_uint32),
                ("guard", ctypes.c_uint32), ("workspace_bytes", ctypes.c_uint64), ("memory_limit", ctypes.c_uint64)]


class Runtime:
    """The C interface of the runtime library, and models opened with it."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.irc_error_message.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        function = getattr(self.library, name)
        function.restype = ctypes.c_void_p
        error = function(*arguments)
        if error:
            sys.exit(f"{name}: {self.library.irc_error_message(ctypes.c_void_p(error)).decode()}")

    def program(self, path, inputs, threads):
        model, context = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("irc_model_open", str(path).encode(), None, ctypes.byref(model))
        options = Options(size=ctypes.sizeof(Options), threads=threads)
        self.call("irc_context_new", model, ctypes.byref(options), ctypes.byref(context))
        for name, values in inputs.items():
            index = ctypes.c_size_t()
            self.call("irc_model_find_input", model, name.encode(), ctypes.byref(index))
            shape = (ctypes.c_int64 * max(values.ndim, 1))(*values.shape)
            data = ctypes.c_void_p(values.ctypes.data)
            self.call("irc_context_bind_input_shaped", context, index, shape, ctypes.c_size_t(values.ndim), data,
                      ctypes.c_size_t(values.nbytes))
        return Program(self, model, context)


class Program:
    """A model with its inputs bound; a call runs it."""

    def __init__(self, runtime, model, context):
        self.runtime, self.model, self.context = runtime, model, context
        self.run = runtime.library.irc_context_run
        self.run.restype = ctypes.c_void_p

    def __call__(self):
        if self.run(self.context):
            self.runtime.call("irc_context_run", self.context)

    def outputs(self):
        self()
        self.runtime.library.irc_model_output_count.restype = ctypes.c_size_t
        count = self.runtime.library.irc_model_output_count(self.model)
        return [self.output(ctypes.c_size_t(index)) for index in range(count)]

    def output(self, index):
        port, data, size = Port(), ctypes.c_void_p(), ctypes.c_size_t()
        shape, rank = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_size_t()
        self.runtime.call("irc_model_output", self.model, index, ctypes.byref(port))
        self.runtime.call("irc_context_output", self.context, index, ctypes.byref(data), ctypes.byref(size))
        self.runtime.call("irc_context_output_shape", self.context, index, ctypes.byref(shape), ctypes.byref(rank))
        dtype = np.dtype({"f32": "f4", "f64": "f8", "f16": "f2", "i64": "i8", "i32": "i4", "i8": "i1", "u8": "u1",
                          "bool": "?"}[port.dtype.decode()])
        raw = ctypes.string_at(data, size.value)
        return np.frombuffer(raw, dtype).reshape([shape[axis] for axis in range(rank.value)])


if __name__ == "__main__":
    main()
