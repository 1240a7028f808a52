"""Models as files have them: in the ways in which tools write them, and in ways that tools reject."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

# Where irc differs from ONNX Runtime on purpose, and why.
DIFFERS = {
    "function of another set": "a function has the operators of the set that it imports, not the model's",
    "function named like an operator": "a function of the model goes before an operator of that name",
    "external data outside": "only files in the folder of the model are opened",
    "stated type of a value that no one needs": "the stated types of intermediate values are not read",
}


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def port(name, shape=(2,), element=T.FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def weight(name, elements=(1, 2)):
    return numpy_helper.from_array(np.array(elements, np.float32), name)


def external(name, location, **keys):
    tensor = T(name=name, data_type=T.FLOAT, dims=[2], data_location=T.EXTERNAL)
    for key, value in {"location": location, **keys}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


X, Y = [port("x")], [port("y")]
CONDITION = [port("x"), port("c", (), T.BOOL)]
IMAGE, FOUR = [port("x", (1, 4, 2, 2))], [port("y", (1, 1, 4, 4))]
CUBE = [port("x", (2, 3, 2))], [port("y", (2, 3, 2))]


def model(nodes, inputs=X, outputs=Y, initializers=(), opset=17, ir=8, opsets=None, functions=(), **more):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers), **more)
    opsets = {"": opset} if opsets is None else opsets
    opsets = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir, functions=list(functions))


def graph(nodes, output, initializers=()):
    return helper.make_graph(nodes, "branch", [], [port(output)], list(initializers))


def branches(then, otherwise=None, before=(), after=()):
    otherwise = otherwise or graph([node("Neg", "x", "e")], "e")
    chosen = node("If", "c", "y", then_branch=then, else_branch=otherwise)
    return model([*before, chosen, *after], CONDITION)


def function(nodes, domain="my", name="F", inputs=("a",), opsets=(("", 17),)):
    return helper.make_function(domain, name, inputs, ["b"], nodes, [helper.make_opsetid(*one) for one in opsets])


def calling(*functions, call=None, opsets=None, ports=(X, Y)):
    call = call or node("F", "x", "y", domain="my")
    return model([call], *ports, functions=functions, opsets={"": 17, "my": 1} if opsets is None else opsets)


def without(field, of):
    of.ClearField(field)
    return of


def cut(tensor, count):
    tensor.raw_data = tensor.raw_data[:count]
    return tensor


NEG, RELU = node("Neg", "x", "y"), node("Relu", "x", "y")
TWO = [node("Relu", "x", "a"), node("Neg", "a", "y")]
ADD = [node("Add", "x w", "y")]

CASES = {
    # Order.
    "unsorted": model(TWO[::-1]),
    "unsorted graph of a node": branches(graph([node("Relu", "a", "t"), node("Neg", "x", "a")], "t")),
    "later value in a graph of a node": branches(graph([node("Relu", "z", "t")], "t"), after=[node("Exp", "x", "z")]),
    "unsorted function": calling(function([node("Relu", "t", "b"), node("Neg", "a", "t")])),
    "cycle": model([node("Add", "x b", "a"), node("Neg", "a", "b"), node("Neg", "b", "y")]),
    # Names.
    "nodes of one name": model([node("Relu", "x", "a", name="n"), node("Neg", "a", "y", name="n")]),
    "nodes without names": model(TWO),
    "graph without name": model([RELU]),
    "value computed twice": model([node("Relu", "x", "a"), node("Neg", "x", "a"), node("Neg", "a", "y")]),
    "computed input": model([node("Relu", "x", "x"), NEG]),
    "input twice": model([NEG], X + X),
    "output twice": model([NEG], X, Y + Y),
    "initializer twice": model(ADD, initializers=[weight("w"), weight("w", (5, 6))]),
    "computed initializer": model([node("Neg", "x", "w"), *ADD], initializers=[weight("w")]),
    "input as output": model([node("Neg", "x", "z")], X, [port("x"), port("z")]),
    "initializer as output": model([NEG], X, [*Y, port("w")], [weight("w")]),
    "name of a value around": branches(graph([node("Relu", "x", "a"), node("Exp", "a", "t")], "t"),
                                       before=[node("Neg", "x", "a")]),
    "value around as output": branches(graph([], "a"), before=[node("Neg", "x", "a")]),
    "initializer as output of a graph of a node": branches(graph([], "k", [weight("k")])),
    # Sets of operators.
    "no set": model([RELU], opsets={}),
    "no set in version 3": model([RELU], opsets={}, ir=3),
    "only the set of another domain": model([RELU], opsets={"com.microsoft": 1}),
    "domain not imported": model([node("FusedMatMul", "x x", "y", domain="com.microsoft")], [port("x", (2, 2))],
                                 [port("y", (2, 2))]),
    "set twice": model([node("Softmax", "x", "y")], *CUBE, opsets={"": 17, "ai.onnx": 11}),
    "newer than its set, in ONNX Runtime": model([node("LayerNormalization", "x w", "y")], initializers=[weight("w")],
                                                 opset=13),
    "newer than its set": model([node("HardSwish", "x", "y")], opset=11),
    "set 0": model([RELU], opset=0),
    "set 99": model([RELU], opset=99),
    "removed from its set": model([node("Upsample", "x s", "y")], [port("x", (1, 1, 2, 2))], FOUR,
                                  [weight("s", (1, 1, 2, 2))], opset=13),
    # Attributes and operands.
    "attribute of an older set": model([node("Squeeze", "x", "y", axes=[0])], [port("x", (1, 2))], opset=13),
    "input of a newer set": model([node("Squeeze", "x a", "y")], [port("x", (1, 2))], opset=11, initializers=[
        numpy_helper.from_array(np.array([0]), "a")]),
    "unknown attribute": model([node("Relu", "x", "y", alpha=1.0)]),
    "unknown word": model([node("DepthToSpace", "x", "y", blocksize=2, mode="DRC")], IMAGE, FOUR),
    "attribute of another kind": model([node("Softmax", "x", "y", axis=0.0)]),
    "empty names of inputs": model([helper.make_node("Clip", ["x", "", ""], ["y"])]),
    "empty names of outputs": model([helper.make_node("MaxPool", ["x", ], ["y", ""], kernel_shape=[1, 1])], IMAGE,
                                    [port("y", (1, 4, 2, 2))]),
    # Versions of the format.
    "initializers that are inputs": model(ADD, [*X, port("w")], initializers=[weight("w")], opset=8, ir=3),
    "initializers that are no inputs in version 3": model(ADD, initializers=[weight("w")], opset=8, ir=3),
    "version 100": model([RELU], ir=100),
    "no version": without("ir_version", model([RELU])),
    # What is not needed.
    "unused": model([RELU, node("Neg", "x", "dead")], [*X, port("unused")], initializers=[weight("junk")],
                    value_info=[port("ghost")]),
    "unused and unknown": model([RELU, node("Nonexistent", "x", "dead")]),
    "wrong stated sizes of a value": model(TWO, value_info=[port("a", (7,))]),
    "stated type of a value that no one needs": model(TWO, value_info=[port("a", (2,), T.INT64)]),
    "wrong stated sizes of the output": model([RELU], X, [port("y", (3,))]),
    "wrong stated rank of the output": model([RELU], X, [port("y", (1, 2))]),
    "negative size": model([RELU], [port("x", (-1,))], [port("y", (-1,))]),
    "size 0": model([RELU], [port("x", (0,))], [port("y", (0,))]),
    "no sizes": model([RELU], [port("x", None)], [port("y", None)]),
    "no type of the output": model([RELU], X, [helper.make_empty_tensor_value_info("y")]),
    # Functions.
    "function": calling(function([node("Neg", "a", "t"), node("Relu", "t", "b")])),
    "function of a domain not imported": calling(function([node("Neg", "a", "b")]), opsets={"": 17}),
    "function of another set": calling(function([node("Softmax", "a", "b")], opsets=[("", 11)]), ports=CUBE),
    "function named like an operator": calling(function([node("Neg", "a", "b")], "", "Relu"), call=RELU),
    "function without set": calling(function([node("Neg", "a", "b")], opsets=())),
    "function with fewer arguments": calling(function([node("Clip", "a m", "b")], inputs=("a", "m"))),
    "function twice": calling(function([node("Neg", "a", "b")]), function([node("Relu", "a", "b")])),
    "function that calls itself": calling(function([node("F", "a", "b", domain="my")], opsets=[("my", 1)])),
    # Tensors.
    "elements in their own field": model(ADD, initializers=[helper.make_tensor("w", T.FLOAT, [2], [1.0, 2.0])]),
    "too many elements": model(ADD, initializers=[T(name="w", data_type=T.FLOAT, dims=[2], float_data=[1, 2, 3])]),
    "too few bytes": model(ADD, initializers=[cut(weight("w"), 7)]),
    # External data: `four` has 10, 20, 30, 40, `sub/two` 7, 8.
    "external data in one file": model([node("Add", "x w", "a"), node("Add", "a v", "y")], initializers=[
        external("w", "four", offset=0, length=8), external("v", "four", offset=8, length=8)]),
    "external data in several files": model([node("Add", "x w", "a"), node("Add", "a v", "y")], initializers=[
        external("w", "four", offset=8), external("v", "./sub/two")]),
    "external data at any byte": model(ADD, initializers=[external("w", "four", offset=2, length=8)]),
    "external data of a Constant": model([node("Constant", "", "w", value=external("w", "sub/two")), *ADD]),
    "external data of another length": model(ADD, initializers=[external("w", "four", length=16)]),
    "external data beyond the file": model(ADD, initializers=[external("w", "four", offset=12, length=8)]),
    "no external file": model(ADD, initializers=[external("w", "none")]),
    "no place of external data": model(ADD, initializers=[external("w", "")]),
    "external data at an absolute path": model(ADD, initializers=[external("w", "/etc/hosts")]),
    "external data outside": model(ADD, initializers=[external("w", "sub/../four", length=8)]),
}
CASES["graph without name"].graph.name = ""
