"""Evaluates models with ONNX Runtime and with ONNX's reference implementation."""
import numpy as np
import onnx
import onnx.shape_inference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from values import OPAQUE, SMALL_INTS, dtype_of

# The first version of the format in which each operator set may stand.
IR_VERSION = 13


class Unsupported(Exception):
    """The evaluator does not run the model."""


def type_of(value, sized=False):
    """The type of an array or a sequence of them."""
    if isinstance(value.array, list):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(value.element, None))
    return helper.make_tensor_type_proto(value.element, value.array.shape if sized else None)


def model_of(nodes, inputs, outputs, initializers, opset):
    """A model; `inputs` and `outputs` are pairs of name and type."""
    info = lambda pair: helper.make_value_info(*pair)
    graph = helper.make_graph(nodes, "graph", list(map(info, inputs)), list(map(info, outputs)), initializers)
    opsets = [helper.make_opsetid("", opset)]
    domains = {node.domain for node in nodes} - {""}
    opsets += [helper.make_opsetid(domain, 1) for domain in sorted(domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def node_model(node, inputs, outputs, opset):
    """A model of one node; `inputs` are values, `outputs` pairs of name and type."""
    types = {value.name: type_of(value, sized=True) for value in inputs}
    return model_of([node], list(types.items()), outputs, [], opset)


def infer_types(model):
    """States the types of the outputs."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except Exception as error:
        raise Unsupported(str(error).splitlines()[0]) from None
    for port, known in zip(model.graph.output, inferred.graph.output):
        port.type.CopyFrom(known.type)


def runtime(model, feeds):
    """The outputs by ONNX Runtime, which executes the nodes as they are."""
    model, casts = exchangeable(model, feeds)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        required = {port.name for port in session.get_inputs()}
        results = session.run(None, {name: feeds[name] for name in required})
    except Exception as error:
        raise Unsupported(str(error).strip().splitlines()[0]) from None
    return [result if cast is None else result.astype(cast) for result, cast in zip(results, casts)]


def exchangeable(model, feeds):
    """The model with inputs of opaque types as initializers, and their outputs cast to wider types."""
    elements = lambda port: port.type.tensor_type.elem_type
    opaque = [port for port in model.graph.input if elements(port) in OPAQUE]
    ends = [port for port in model.graph.output if elements(port) in OPAQUE]
    casts = [dtype_of(elements(port)) if elements(port) in OPAQUE else None for port in model.graph.output]
    if not opaque and not ends:
        return model, casts
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for port in opaque:
        copy.graph.input.remove(port)
        copy.graph.initializer.append(numpy_helper.from_array(feeds[port.name], port.name))
    for port in copy.graph.output:
        if elements(port) in OPAQUE:
            wide = TensorProto.INT32 if elements(port) in SMALL_INTS else TensorProto.FLOAT
            copy.graph.node.append(helper.make_node("Cast", [port.name], [port.name + ".wide"], to=wide))
            port.CopyFrom(helper.make_value_info(
                port.name + ".wide", helper.make_tensor_type_proto(wide, None)))
    return copy, casts


def reference(model, feeds):
    """The outputs by ONNX's reference implementation."""
    try:
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:
        raise Unsupported(f"{type(error).__name__}: {error}".splitlines()[0]) from None
