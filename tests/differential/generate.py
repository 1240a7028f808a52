"""Draws a model from a seed: the same seed gives the same model."""
import dataclasses

import numpy as np
from onnx import helper

import operators
import oracles
from graph import Graph, Rejected, free_names

OPSETS = (13, 13, 15, 16, 17, 18, 18, 19, 20, 21, 21, 22, 23, 24, 26)
MAX_OUTPUTS = 6
OPERATORS = operators.load()


@dataclasses.dataclass
class Model:
    """A model with inputs, and the operators in it."""
    proto: object
    feeds: dict
    used: list
    # All values that a node computes or that is an input, by name.
    values: dict


def draw(seed):
    """A model, or None where the draw has no node."""
    rng = np.random.default_rng(seed)
    graph = Graph(rng, int(rng.choice(OPSETS)))
    graph.by_reference = graph.chance(0.1)
    grow(graph, graph.int(1, 12), True)
    return finish(graph)


def grow(graph, count, varies):
    """Adds nodes; `varies` says whether sizes may depend on elements."""
    fits = [row for row in OPERATORS if row.since <= graph.opset <= row.until and (varies or not row.varies)]
    weights = np.array([row.weight for row in fits])
    weights /= weights.sum()
    attempts = 0
    while count > 0 and attempts < 40:
        attempts += 1
        row = fits[int(graph.rng.choice(len(fits), p=weights))]
        before = len(graph.values), len(graph.nodes), len(graph.initializers), len(graph.root.used)
        try:
            row.add(graph)
            count -= 1
        except Rejected:
            values, nodes, initializers, used = before
            rejected = {name for node in graph.nodes[nodes:] for name in node.output}
            rejected |= {tensor.name for tensor in graph.initializers[initializers:]}
            del graph.nodes[nodes:], graph.initializers[initializers:], graph.root.used[used:]
            graph.values[values:] = [value for value in graph.values[values:] if value.name not in rejected]


def finish(graph):
    """The model of a graph: its outputs are the results that no node takes, and some others."""
    results = [value for value in graph.values if any(value.name in node.output for node in graph.nodes)]
    taken = {name for node in graph.nodes for name in needs(node)}
    ends = [value for value in results if value.name not in taken]
    ends += [value for value in results if value.name in taken and graph.chance(0.15)]
    ends = [value for value in ends if not (value.is_sequence and not value.array)][:MAX_OUTPUTS]
    if not ends:
        return None
    ports = [(value.name, stated(graph, value)) for value in ends]
    inputs = [(value.name, declared(graph, value)) for value in graph.inputs]
    proto = oracles.model_of(graph.nodes, inputs, ports, graph.initializers, graph.opset)
    feeds = {value.name: value.array for value in graph.inputs}
    values = {value.name: value for value in graph.values + graph.inputs}
    model = Model(prune(proto), feeds, [], values)
    model.used = used(model.proto.graph)
    model.feeds = {port.name: feeds[port.name] for port in model.proto.graph.input}
    return model


def needs(node):
    """Names that a node takes, in its graphs too."""
    inner = [name for item in node.attribute if item.HasField("g") for name in free_names(item.g)]
    return [name for name in node.input if name] + inner


def declared(graph, value):
    """The type of an input; sizes are open where the graph has open sizes, equal ones under one name."""
    if graph.open is None:
        return helper.make_tensor_type_proto(value.element, value.shape)
    def size(extent):
        if extent not in graph.open:
            is_open = graph.chance(0.6 if extent > 1 else 0.1)
            graph.open[extent] = f"size_{len(graph.open)}" if is_open else extent
        return graph.open[extent]
    return helper.make_tensor_type_proto(value.element, [size(extent) for extent in value.shape])


def stated(graph, value):
    """The type of an output, with sizes if none is open."""
    if value.is_sequence or graph.open is not None or graph.chance(0.5):
        return oracles.type_of(value)
    return helper.make_tensor_type_proto(value.element, value.shape)


def prune(proto):
    """The model without nodes and values that no output depends on."""
    graph = proto.graph
    live = {port.name for port in graph.output}
    kept = []
    for node in reversed(graph.node):
        if live & set(node.output):
            kept.append(node)
            live.update(needs(node))
    result = type(proto)()
    result.CopyFrom(proto)
    for field, items in (("node", kept[::-1]), ("input", [port for port in graph.input if port.name in live]),
                         ("initializer", [tensor for tensor in graph.initializer if tensor.name in live])):
        result.graph.ClearField(field)
        getattr(result.graph, field).extend(items)
    return result


def used(graph):
    """The operators of a graph, with those inside."""
    names = []
    for node in graph.node:
        names.append(node.op_type)
        names += [name for item in node.attribute if item.HasField("g") for name in used(item.g)]
    return names

