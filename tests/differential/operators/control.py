"""Control flow: the graphs of If, Loop and Scan are grown as the graph around them is."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper

import oracles
from graph import Rejected, Value
from operators import operator
from values import FLOATS, PLAIN, SMALL_FLOATS, SMALL_INTS

DEEPEST = 2
# ONNX's reference implementation does not stack values of these types to one of the type.
SMALL = SMALL_FLOATS + SMALL_INTS


def check_depth(g):
    # ONNX's reference implementation, which runs what ONNX Runtime does not, has no complete Loop and Scan.
    if g.depth >= DEEPEST or g.root.by_reference:
        raise Rejected


def grow(g, count, varies):
    from generate import grow as grow_graph
    grow_graph(g, count, varies)


def port(value, known):
    """A value as an input or output of a graph, with its sizes or without."""
    return helper.make_value_info(value.name, oracles.type_of(value, known))


def body_of(inner, inputs, outputs, known):
    ports = lambda values: [port(value, known) for value in values]
    name = inner.root.name("body")
    return helper.make_graph(inner.nodes, name, ports(inputs), ports(outputs), inner.initializers)


def own(inner, value, taken):
    """A value as a result of a node of the graph that is no output yet: ONNX Runtime takes no others."""
    if value.name in taken or not any(value.name in node.output for node in inner.nodes):
        value = inner.node("Identity", [value], exact=True)
    taken.add(value.name)
    return value


@operator("If", 13, weight=3)
def if_(g):
    check_depth(g)
    # The condition is rarely known when the program is compiled.
    condition = g.pick(T.BOOL, shape=()) if g.chance(0.8) else g.pick(T.BOOL, shape=(1,))
    branches = []
    count = g.int(1, 2)
    wanted = None
    for _ in range(2):
        inner = g.inner()
        grow(inner, g.int(1, 4), True)
        made = [value for value in inner.values if not value.is_sequence]
        if wanted is None:
            outputs = [made[-1 - g.int(0, min(3, len(made) - 1))] for _ in range(count)]
            wanted = outputs
        else:
            outputs = [alike(inner, value) for value in wanted]
        taken = set()
        branches.append((inner, [own(inner, value, taken) for value in outputs]))
    exact = all(value.exact for _, outputs in branches for value in outputs)
    chosen = branches[0 if bool(condition.array) else 1][1]
    graphs = [body_of(inner, [], outputs, known=False) for inner, outputs in branches]
    g.node("If", [condition], count, exact=exact and all(value.exact for value in chosen),
           then_branch=graphs[0], else_branch=graphs[1])


def alike(g, value):
    """A value of the same type, computed by a node if there is none."""
    x = g.pick(value.element, shape=value.shape)
    if x.element in FLOATS and g.chance(0.5):
        return g.node("Mul", [x, x])
    return x


def formals(g, actuals, exact):
    """Formal inputs of a body, with the elements of the first iteration."""
    result = []
    for actual in actuals:
        is_exact = exact and actual.exact or actual.element not in FLOATS
        value = Value(g.name("f"), actual.element, actual.array, is_exact)
        g.values.append(value)
        result.append(value)
    return result


def next_of(inner, formal, formals_, taken):
    """The next value of a carried one: of the same type, and computed from what changes where possible."""
    fits = lambda value: not value.is_sequence and value.element == formal.element and value.shape == formal.shape
    found = [value for value in inner.values if fits(value) and value not in formals_]
    if found and inner.chance(0.6):
        return own(inner, inner.choice(found[-4:]), taken)
    if formal.element == T.BOOL:
        return own(inner, inner.node("Not", [formal]), taken)
    other = inner.pick(formal.element, shape=formal.shape, low=-2, high=2)
    op = inner.choice(("Add", "Sub")) if formal.element in FLOATS + (T.INT32, T.INT64) else "Identity"
    return own(inner, inner.node(op, [formal, other] if op != "Identity" else [formal]), taken)


@operator("Loop", 13, weight=3)
def loop(g):
    check_depth(g)
    trips = g.int(0, 5)
    initial = [g.pick(PLAIN, range(0, 4)) for _ in range(g.int(1, 3))]
    inner = g.inner()
    iteration, condition = formals(inner, [g.constant(np.int64(0)), g.constant(np.bool_(True))], False)
    carried = formals(inner, initial, False)
    grow(inner, g.int(1, 5), False)
    taken = set()
    results = [next_of(inner, formal, carried, taken) for formal in carried]
    scanned = []
    if g.chance(0.6):
        scanned = [own(inner, value, taken) for value in inner.values[-g.int(1, 2):]
                   if not value.is_sequence and value.element not in SMALL]
    if g.chance(0.3):
        limit = inner.constant(np.int64(g.int(0, 4)))
        proceed = inner.node("Less", [iteration, limit])
    else:
        proceed = inner.node("Identity", [condition])
    count = g.given(np.int64(trips)) if g.chance(0.9) else g.given(np.array([trips]))
    first = g.given(np.bool_(g.chance(0.9))) if g.chance(0.5) else None
    # Without an iteration, ONNX Runtime makes sizes that are not stated 0.
    known = g.chance(0.5) or trips == 0 or first is not None and not first.array
    body = body_of(inner, [iteration, condition, *carried], [proceed, *results, *scanned], known)
    g.node("Loop", [count, first, *initial], len(results) + len(scanned), body=body)


@operator("Scan", 11, weight=2)
def scan(g):
    check_depth(g)
    length = g.int(1, 5)
    initial = [g.pick(PLAIN, range(0, 3)) for _ in range(g.int(0, 2))]
    count = g.int(1, 2)
    axes = [g.int(0, 1) if g.chance(0.3) else 0 for _ in range(count)]
    scanned = [g.pick(PLAIN, shape=(None, length) if axis else (length,) + g.new_shape(g.int(0, 2))) for axis in axes]
    slices = [Value(value.name, value.element, value.array.take(0, axis), value.exact)
              for value, axis in zip(scanned, axes)]
    inner = g.inner()
    carried = formals(inner, initial, False)
    items = formals(inner, slices, False)
    grow(inner, g.int(1, 4), False)
    taken = set()
    results = [next_of(inner, formal, carried, taken) for formal in carried]
    made = [value for value in inner.values[-3:] if not value.is_sequence and value.element not in SMALL]
    ends = [own(inner, inner.choice(made), taken) for _ in range(g.int(1, 2))] if made else []
    if not results + ends:
        raise Rejected
    body = body_of(inner, [*carried, *items], [*results, *ends], known=g.chance(0.5))
    reverse = lambda places: [g.int(0, 1) for _ in range(places)] if g.chance(0.4) else None
    g.node("Scan", [*initial, *scanned], len(results) + len(ends), body=body, num_scan_inputs=count,
           scan_input_axes=axes if any(axes) else None, scan_input_directions=reverse(count),
           scan_output_directions=reverse(len(ends)))
