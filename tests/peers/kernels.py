#!/usr/bin/env python3
"""Times compiled kernels against numpy and ONNX Runtime on one core, interleaved in one process.

usage: kernels.py LIBRARY.so...    libraries that `irc compile --results outputs` made of
                                   examples/{matmul_1024,softmax_4096x2048,...}_f32.model.json

Needs numpy; onnxruntime and onnx are compared with when they are installed. Pin it to a core:
    OPENBLAS_NUM_THREADS=1 taskset -c 1 python3 tests/peers/kernels.py target/*_f32.so
"""
import ctypes
import json
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

try:
    import onnx
    import onnxruntime
except ImportError:
    onnx = None


def aligned(count):
    storage = np.zeros(4 * count + 64, np.uint8)
    start = -storage.ctypes.data % 64
    return storage[start : start + 4 * count].view(np.float32)


class Library:
    """A compiled model, with buffers of its own."""

    def __init__(self, path):
        code = ctypes.CDLL(str(pathlib.Path(path).resolve()))
        text = ctypes.cast(code.irc_metadata, ctypes.c_char_p).value
        self.interface = json.loads(text)
        sizes = [int(np.prod(port["shape"])) for port in self.ports()]
        self.buffers = [aligned(size) for size in sizes]
        self.workspace = aligned(self.interface["workspace_bytes"] // 4 + 16)
        pointers = [buffer.ctypes.data for buffer in self.buffers]
        table = (ctypes.c_void_p * len(pointers))(*pointers)
        scratch = ctypes.c_void_p(self.workspace.ctypes.data)
        self.run = lambda: code.irc_run(table, scratch)

    def ports(self):
        return self.interface["inputs"] + self.interface["outputs"]

    def inputs(self):
        return self.buffers[: len(self.interface["inputs"])]

    def output(self):
        return self.buffers[-1]


def softmax(out, x):
    np.subtract(x, x.max(1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(1, keepdims=True), out=out)


def normalise(out, x, epsilon):
    square = np.einsum("ij,ij->i", x, x) / x.shape[1]
    np.multiply(x, (1 / np.sqrt(square + np.float32(epsilon)))[:, None], out=out)


def layernorm(out, x):
    np.subtract(x, x.mean(1, keepdims=True), out=out)
    normalise(out, out, 1e-6)


def rmsnorm(out, x, gain):
    normalise(out, x, 0)
    np.multiply(out, gain, out=out)


ROWS = {
    "softmax": (softmax, "Softmax", {}),
    "layernorm": (layernorm, "LayerNormalization", {"epsilon": 1e-6}),
    "rmsnorm": (rmsnorm, "RMSNormalization", {"epsilon": 0.0}),
}


def onnx_runtime(op, attributes, x, out):
    """A callable that runs one op, or None."""
    if onnx is None:
        return None
    make = onnx.helper
    kind = onnx.TensorProto.FLOAT
    inputs = {"x": x}
    if op != "Softmax":
        inputs["g"] = np.ones(x.shape[1], np.float32)
    if op == "LayerNormalization":
        inputs["b"] = np.zeros(x.shape[1], np.float32)
    node = make.make_node(op, list(inputs), ["y"], axis=-1, **attributes)
    infos = [make.make_tensor_value_info(n, kind, v.shape) for n, v in inputs.items()]
    graph = make.make_graph([node], "g", infos, [make.make_tensor_value_info("y", kind, x.shape)])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 23)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("y", "cpu", 0, np.float32, list(x.shape), out.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def interleaved(callables, rounds=25):
    for call in callables:
        call()
    times = [[] for _ in callables]
    for _ in range(rounds):
        for call, samples in zip(callables, times):
            start = time.perf_counter()
            call()
            samples.append(time.perf_counter() - start)
    return [statistics.median(samples) for samples in times]


def compare(path):
    name = pathlib.Path(path).name.split("_")[0]
    library = Library(path)
    random = np.random.default_rng(1)
    for buffer in library.inputs():
        buffer[:] = random.standard_normal(buffer.size)
    if name == "matmul":
        side = int(library.output().size ** 0.5)
        a, b = (buffer.reshape(side, side) for buffer in library.inputs())
        expected = aligned(side * side).reshape(side, side)
        peers = {"numpy": lambda: np.matmul(a, b, out=expected)}
    else:
        function, op, attributes = ROWS[name]
        x, *rest = library.inputs()
        x = x.reshape(4096, 2048)
        expected, other = (aligned(x.size).reshape(x.shape) for _ in range(2))
        peers = {"numpy": lambda: function(expected, x, *rest)}
        runtime = onnx_runtime(op, attributes, x, other)
        if runtime:
            peers["onnxruntime"] = runtime
    ours, *theirs = interleaved([library.run, *peers.values()])
    found = library.output().reshape(expected.shape)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    rates = [f"{peer} {1e3 * t:.2f} ms, ratio {t / ours:.2f}" for peer, t in zip(peers, theirs)]
    print(f"{name}: {1e3 * ours:.2f} ms; {'; '.join(rates)}; error {error:.1e}", flush=True)
    return error < 1e-4


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 2
    return 0 if all([compare(path) for path in sys.argv[1:]]) else 3


if __name__ == "__main__":
    sys.exit(main())
