"""Compares the outputs of two evaluators."""
import importlib.util
import pathlib

import numpy as np
from onnx import TensorProto as T

from values import as_double

# The tolerances of whole models, which docs/tolerances.md explains.
_spec = importlib.util.spec_from_file_location(
    "tolerances", pathlib.Path(__file__).parents[1] / "oracle" / "compare.py")
tolerances = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tolerances)


def coarsest(proto):
    """The float type with the widest tolerance of those in a model."""
    text = set()
    collect(proto.graph, text)
    for element in (T.BFLOAT16, T.FLOAT16, T.FLOAT):
        if element in text:
            return element
    return T.DOUBLE


def collect(graph, found):
    found.update(port.type.tensor_type.elem_type for port in [*graph.input, *graph.output])
    found.update(tensor.data_type for tensor in graph.initializer)
    for node in graph.node:
        for item in node.attribute:
            if item.name in ("to", "dtype", "output_dtype", "output_datatype"):
                found.add(item.i)
            if item.HasField("t"):
                found.add(item.t.data_type)
            if item.HasField("g"):
                collect(item.g, found)


def differences(proto, expected, found):
    """Lines about the outputs that differ."""
    widest = coarsest(proto)
    lines = []
    for port, value in zip(proto.graph.output, expected):
        pairs = [(port.name, value, found[port.name])]
        if isinstance(value, list):
            if len(value) != len(found[port.name]):
                lines.append(f"{port.name}: expected {len(value)} tensors, found {len(found[port.name])}")
                continue
            pairs = [(f"{port.name}[{index}]", *pair) for index, pair in enumerate(zip(value, found[port.name]))]
        lines += filter(None, (difference(*pair, widest) for pair in pairs))
    return lines


def difference(name, expected, found, widest):
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return f"{name}: expected {expected.dtype}{list(expected.shape)}, found {found.dtype}{list(found.shape)}"
    floats = expected.dtype.kind == "f" or "float" in expected.dtype.name
    if not floats:
        if np.array_equal(expected, found):
            return None
        where = tuple(map(int, np.argwhere(np.asarray(expected != found))[0])) if expected.ndim else ()
        return f"{name}: at {list(where)} expected {expected[where]}, found {found[where]}"
    # 64-bit floats are of no use beyond the tolerance of what they were computed from.
    kind = {T.BFLOAT16: "uint16", T.FLOAT16: "float16"}.get(widest, "float32" if widest == T.FLOAT else "float64")
    line, passes = tolerances.compare(name, as_double(expected), as_double(found), coarsest=kind)
    return None if passes else line
