"""Quantised networks under construction, as ONNX."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

random = numpy.random.default_rng(0)
constants, nodes = {}, []


def constant(name, values):
    constants[name] = numpy_helper.from_array(values, name)
    return name


def node(kind, inputs, output, **attributes):
    nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
    return output


def quantised(x, scale, zero=numpy.uint8(128)):
    """A value as bytes and back."""
    parameters = [constant(x + "_scale", numpy.float32(scale)), constant(x + "_zero", zero)]
    return node("DequantizeLinear", [node("QuantizeLinear", [x, *parameters], x + "_q"), *parameters], x + "_dq")


def weights(name, *shape):
    values = random.integers(-127, 128, shape).astype("i1")
    parameters = [constant(name + "_scale", numpy.float32(0.01)), constant(name + "_zero", numpy.int8(0))]
    return node("DequantizeLinear", [constant(name, values), *parameters], name + "_dq")


def save(path, inputs, outputs):
    """Writes the network of the nodes so far; inputs and outputs are shapes of f32 by name."""
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in some.items()]
        for some in (inputs, outputs)
    ]
    own = [constants[key] for key in constants if any(key in node.input for node in nodes)]
    model = helper.make_model(
        helper.make_graph(nodes, "net", *ports, own), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, path)
    nodes.clear()
