"""Shrinks a model that an engine gets wrong to one that it still gets wrong."""
from onnx import helper, numpy_helper

import oracles
from generate import needs, prune


def shrink(proto, values, fails):
    """The smallest model found; `fails` tells of models, as pairs of file and inputs, which of them fail."""
    current = proto
    while True:
        candidates = [prune(candidate) for candidate in reductions(current, values)]
        candidates = [one for one in candidates if one.graph.output and size(one) < size(current)]
        candidates.sort(key=size)
        smaller = first(candidates, values, fails)
        if smaller is None:
            return current
        current = smaller


def first(candidates, values, fails, batch=16):
    for start in range(0, len(candidates), batch):
        some = candidates[start:start + batch]
        verdicts = fails([(one, feeds_of(one, values)) for one in some])
        for one, verdict in zip(some, verdicts):
            if verdict:
                return one
    return None


def feeds_of(proto, values):
    return {port.name: values[port.name].array for port in proto.graph.input}


def size(proto):
    """What shrinking minimises: nodes, those in graphs too, then values, then bytes."""
    graph = proto.graph
    return (count(graph), len(graph.output), len(graph.input) + len(graph.initializer), open_sizes(graph),
            proto.ByteSize())


def count(graph):
    return len(graph.node) + sum(count(item.g) for node in graph.node for item in node.attribute if item.HasField("g"))


def open_sizes(graph):
    return sum(dim.HasField("dim_param") for port in graph.input for dim in port.type.tensor_type.shape.dim)


def copy_of(proto):
    copy = type(proto)()
    copy.CopyFrom(proto)
    return copy


def reductions(proto, values):
    """Models with less in them."""
    graph = proto.graph
    # One node alone, with what it takes as inputs.
    for index in range(len(graph.node)):
        yield alone(proto, index, values)
    # One output.
    if len(graph.output) > 1:
        for output in list(graph.output):
            copy = copy_of(proto)
            copy.graph.ClearField("output")
            copy.graph.output.append(output)
            yield copy
    # The results of a node as inputs.
    for index, node in enumerate(graph.node):
        results = [name for name in node.output if name]
        if any(name in {port.name for port in graph.output} for name in results):
            continue
        if all(name in values and not values[name].is_sequence for name in results):
            copy = copy_of(proto)
            del copy.graph.node[index]
            copy.graph.input.extend(port_of(values[name]) for name in results)
            yield copy
    # The operands of the last node as outputs.
    for node in graph.node:
        for name in needs(node):
            if name in values and not values[name].is_sequence and any(name in one.output for one in graph.node):
                copy = copy_of(proto)
                copy.graph.ClearField("output")
                copy.graph.output.append(helper.make_value_info(name, oracles.type_of(values[name])))
                yield copy
    # Inputs of known sizes.
    if open_sizes(graph):
        copy = copy_of(proto)
        copy.graph.ClearField("input")
        copy.graph.input.extend(port_of(values[port.name]) for port in graph.input)
        yield copy


def alone(proto, index, values):
    node = proto.graph.node[index]
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    constants |= {one.output[0]: one.attribute[0].t for one in proto.graph.node
                  if one.op_type == "Constant" and one.attribute[0].name == "value"}
    copy = copy_of(proto)
    for field in ("node", "input", "output", "initializer"):
        copy.graph.ClearField(field)
    copy.graph.node.append(node)
    declared = {port.name: port for port in proto.graph.input}
    for name in dict.fromkeys(needs(node)):
        if name in constants:
            copy.graph.initializer.append(numpy_helper.from_array(values[name].array, name))
        elif name in declared:
            copy.graph.input.append(declared[name])
        elif name in values and not values[name].is_sequence:
            copy.graph.input.append(port_of(values[name]))
        else:
            return copy
    for name in node.output:
        if name and name in values:
            copy.graph.output.append(helper.make_value_info(name, oracles.type_of(values[name])))
    return copy


def port_of(value):
    return helper.make_value_info(value.name, oracles.type_of(value, sized=True))
