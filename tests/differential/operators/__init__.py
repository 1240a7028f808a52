"""The operators that graphs are drawn from: one function each, which adds a node to a graph."""
import dataclasses
import importlib

FAMILIES = ("elementwise", "reduce", "move", "select", "product", "spatial", "normalise", "quantise",
            "recurrent", "sequence", "signal", "control")


@dataclasses.dataclass
class Operator:
    """An operator, in the sets of operators from `since` to `until`."""
    name: str
    since: int
    until: int
    # Relative frequency.
    weight: float
    # The sizes of its results depend on elements, so that it cannot stand in a loop.
    varies: bool
    add: object


OPERATORS = []


def operator(name, since=1, until=99, weight=1.0, varies=False):
    """Registers a function that adds a node to a graph."""
    def register(add):
        OPERATORS.append(Operator(name, since, until, weight, varies, add))
        return add
    return register


def with_axes(g, axes, since):
    """Axes as an input from a version of the operator set on, and as an attribute before: both forms."""
    if axes is None:
        return [], {}
    if g.opset >= since:
        return [g.ints(axes)], {}
    return [], {"axes": axes}


def some_axes(g, rank):
    """Distinct axes, some counted from the end, or None."""
    if rank == 0 or g.chance(0.2):
        return None
    chosen = [axis for axis in range(rank) if g.chance(0.5)] or [g.int(0, rank - 1)]
    return [axis - rank if g.chance(0.3) else axis for axis in chosen]


def some_axis(g, rank):
    """An axis, counted from the end at times."""
    axis = g.int(0, rank - 1)
    return axis - rank if g.chance(0.3) else axis


def load():
    for family in FAMILIES:
        importlib.import_module(f"operators.{family}")
    return OPERATORS
