"""Graphs that grow node by node: each node is evaluated when it is added, so that values are known."""
import dataclasses
import math

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import oracles
from values import OPAQUE, PLAIN, as_double, draw_array, draw_type, dtype_of, is_float

# Elements a tensor may have, and the largest magnitude of a float, by element type.
MAX_ELEMENTS = 4096
LARGEST = {T.FLOAT16: 1e3, T.BFLOAT16: 1e3}


class Rejected(Exception):
    """An operator does not apply; another is tried."""


@dataclasses.dataclass
class Value:
    """A tensor or a sequence of tensors, with its elements."""
    name: str
    element: int
    array: object
    # Computed without rounding: operators that jump take only these, since evaluators may round differently.
    exact: bool

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def is_sequence(self):
        return isinstance(self.array, list)


class Graph:
    """A graph, or one inside of another, whose values it sees."""

    def __init__(self, rng, opset, around=None):
        self.rng, self.opset, self.around = rng, opset, around
        self.root = around.root if around else self
        self.values = list(around.values) if around else []
        self.nodes, self.inputs, self.initializers = [], [], []
        self.depth = around.depth + 1 if around else 0
        if not around:
            self.count = 0
            self.used = []
            # Which sizes of inputs are open.
            self.open = {} if rng.random() < 0.35 else None
            self.special = rng.random() < 0.05
            self.by_reference = False

    # Random choices.

    def chance(self, probability):
        return self.rng.random() < probability

    def int(self, low, high):
        return int(self.rng.integers(low, high, endpoint=True))

    def choice(self, items):
        return items[int(self.rng.integers(len(items)))]

    def size(self):
        return self.choice((1, 2, 2, 3, 3, 4, 5, 7, 8, 17) if self.chance(0.97) else (0, 33, 64))

    def new_shape(self, rank=None):
        rank = self.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)) if rank is None else rank
        shape = tuple(self.size() for _ in range(rank))
        return shape if math.prod(shape) <= MAX_ELEMENTS // 8 else tuple(min(size, 4) for size in shape)

    def name(self, stem):
        self.root.count += 1
        return f"{stem}{self.root.count}"

    # Values.

    def pick(self, types=PLAIN, rank=None, shape=None, exact=False, low=None, high=None, where=None):
        """A value that fits, or a new one with elements from `low` to `high`.

        `rank` is a rank or a range of them; `shape` may have None for any size; `where` tests a value.
        """
        ranks = range(rank, rank + 1) if isinstance(rank, int) else rank
        types = types if isinstance(types, tuple) else (types,)

        def fits(value):
            if value.is_sequence or value.element not in types or exact and not value.exact:
                return False
            if ranks is not None and value.rank not in ranks:
                return False
            if shape is not None and not matches(value.shape, shape):
                return False
            if (low is not None or high is not None) and not within(value.array, low, high):
                return False
            return where is None or where(value)

        found = [value for value in self.values if fits(value)]
        if found and self.chance(0.85):
            # Later values are more likely, so that graphs get deep.
            return found[-1 - int(len(found) * self.rng.random() ** 2)]
        if shape is None:
            rank = self.choice(list(ranks)) if ranks is not None else None
            shape = self.new_shape(rank)
        shape = tuple(self.size() if size is None else size for size in shape)
        value = self.fresh(draw_type(self.rng, types), shape, low, high)
        if where is not None and not where(value):
            raise Rejected
        return value

    def fresh(self, element, shape, low=None, high=None):
        """A new value with random elements."""
        array = draw_array(self.rng, element, shape, low, high)
        if self.root.special and low is None and high is None and is_float(element) and array.size:
            for special in (np.nan, np.inf, -np.inf, -0.0):
                array.flat[self.int(0, array.size - 1)] = special
        return self.given(array, element)

    def given(self, array, element=None):
        """A new input, initializer or constant with these elements."""
        array, root = np.asarray(array), self.root
        element = helper.np_dtype_to_tensor_dtype(array.dtype) if element is None else element
        value = Value(root.name("x"), element, array, True)
        if self.chance(0.6) or self is not root and self.chance(0.5):
            root.inputs.append(value)
            root.values.append(value)
            if self is not root:
                self.values.append(value)
            return value
        return self.constant(array, element)

    def constant(self, array, element=None):
        """An initializer, or the result of a Constant."""
        array = np.asarray(array)
        element = helper.np_dtype_to_tensor_dtype(array.dtype) if element is None else element
        value = Value(self.name("c"), element, array.astype(dtype_of(element)), True)
        tensor = numpy_helper.from_array(value.array, value.name)
        if self.chance(0.8):
            self.initializers.append(tensor)
        else:
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=tensor))
            self.root.used.append("Constant")
        self.values.append(value)
        return value

    def ints(self, items, element=T.INT64):
        """Known integers, as shapes and axes are; an input at times, which specialises the program."""
        array = np.array(items, dtype_of(element))
        if self.chance(0.03):
            value = Value(self.root.name("x"), element, array, True)
            self.root.inputs.append(value)
            return value
        return self.constant(array, element)

    # Nodes.

    def node(self, op, inputs, outputs=1, exact=False, domain="", bounded=True, **attributes):
        """Adds a node; an input is a value or None. Returns its results, or the only one.

        `outputs` is their number, or which of them have a name. `exact` says that the node does not round: its
        results are as exact as its operands. `bounded` says that it is rejected if its results are very large.
        """
        names = [value.name if value else "" for value in inputs]
        attributes = {name: value for name, value in attributes.items() if value is not None}
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        results = [self.name("v") if one else "" for one in wanted]
        node = helper.make_node(op, names, results, domain=domain, name=self.name("n"), **attributes)
        given = [value for value in inputs if value] + captured(self, node)
        arrays = self.evaluate(node, given)
        all_exact = exact and all(value.exact for value in given)
        values = []
        for name, array in zip(filter(None, results), arrays):
            values.append(self.value(name, array, all_exact, bounded))
        self.nodes.append(node)
        self.root.used.append(op)
        self.values.extend(values)
        return values[0] if len(values) == 1 else values

    def value(self, name, array, exact, bounded):
        if array is None:
            raise Rejected
        if isinstance(array, list):
            element = helper.np_dtype_to_tensor_dtype(array[0].dtype) if array else T.FLOAT
            return Value(name, element, array, exact)
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        if array.size > MAX_ELEMENTS:
            raise Rejected
        if is_float(element) and bounded and array.size and not self.root.special:
            largest = np.abs(as_double(array)).max()
            if not largest <= LARGEST.get(element, 1e5):
                raise Rejected
        return Value(name, element, array, exact or not is_float(element))

    def evaluate(self, node, inputs):
        ends = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        model = oracles.node_model(node, inputs, [(end.name, end.type) for end in ends], self.opset)
        feeds = {value.name: value.array for value in inputs}
        try:
            if any(value.element in OPAQUE for value in inputs) or makes_opaque(node):
                oracles.infer_types(model)
            return oracles.runtime(model, feeds)
        except oracles.Unsupported as error:
            if not self.root.by_reference:
                raise Rejected(str(error)) from None
        try:
            return [np.asarray(result) for result in oracles.reference(model, feeds)]
        except oracles.Unsupported as error:
            raise Rejected(str(error)) from None

    def inner(self):
        """A graph inside of this one."""
        return Graph(self.rng, self.opset, self)


def captured(graph, node):
    """The values of the enclosing graph that the graphs of a node use."""
    free = {}
    for attribute in node.attribute:
        if attribute.HasField("g"):
            free.update(dict.fromkeys(free_names(attribute.g)))
    by_name = {value.name: value for value in graph.values + graph.root.inputs}
    return [by_name[name] for name in free]


def free_names(graph):
    own = {port.name for port in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    free = []
    for node in graph.node:
        free += [name for name in node.input if name]
        free += [name for inner in node.attribute if inner.HasField("g") for name in free_names(inner.g)]
    free += [port.name for port in graph.output]
    return [name for name in dict.fromkeys(free) if name not in own]


def makes_opaque(node):
    """Whether a node may have results of a type that ONNX Runtime does not return."""
    names = ("to", "dtype", "output_dtype")
    return any(attribute.name in names and attribute.i in OPAQUE for attribute in node.attribute)


def matches(shape, wanted):
    return len(shape) == len(wanted) and all(
        size is None or size == given for given, size in zip(shape, wanted))


def within(array, low, high):
    numbers = as_double(array)
    return bool(((low is None) | (numbers >= (low or 0))).all() and ((high is None) | (numbers <= (high or 0))).all())
