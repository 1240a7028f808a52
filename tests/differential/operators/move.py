"""Operators that move elements without computing: shapes, slices, concatenations, paddings."""
import math

import numpy as np
from onnx import TensorProto as T
from onnx import numpy_helper

from operators import operator, some_axes, some_axis, with_axes
from values import FLOATS, NUMBERS, PLAIN, draw_type, dtype_of


@operator("Transpose", 1, weight=2)
def transpose(g):
    x = g.pick(PLAIN, range(0, 5))
    order = [int(axis) for axis in g.rng.permutation(x.rank)]
    g.node("Transpose", [x], exact=True, perm=order if order and g.chance(0.8) else None)


@operator("Reshape", 5, weight=3)
def reshape(g):
    x = g.pick(PLAIN)
    sizes = factors(g, x.array.size)
    if g.chance(0.5) and sizes and x.array.size:
        sizes[g.int(0, len(sizes) - 1)] = -1
    elif g.chance(0.3) and sizes and x.rank and sizes[0] == x.shape[0]:
        sizes[0] = 0
    g.node("Reshape", [x, g.ints(sizes)], exact=True)


def factors(g, count):
    """Sizes with a product, at most four."""
    if count == 0:
        return [0, g.int(1, 3)]
    sizes = []
    while count > 1 and len(sizes) < 3:
        divisors = [size for size in range(1, count + 1) if count % size == 0]
        sizes.append(g.choice(divisors))
        count //= sizes[-1]
    return sizes + [count] if count > 1 or g.chance(0.3) else sizes


@operator("Flatten", 9)
def flatten(g):
    x = g.pick(PLAIN, range(0, 5))
    axis = g.int(-x.rank if g.opset >= 11 else 0, x.rank)
    g.node("Flatten", [x], exact=True, axis=axis if g.chance(0.8) or not x.rank else None)


@operator("Squeeze", 11)
def squeeze(g):
    x = g.pick(PLAIN, where=lambda value: 1 in value.shape)
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    some = [axis - x.rank if g.chance(0.3) else axis for axis in ones if g.chance(0.6)] or [ones[0]]
    inputs, attributes = with_axes(g, some if g.chance(0.8) else None, 13)
    g.node("Squeeze", [x, *inputs], exact=True, **attributes)


@operator("Unsqueeze", 11)
def unsqueeze(g):
    x = g.pick(PLAIN, range(0, 4))
    rank = x.rank + g.int(1, 2)
    axes = [int(axis) for axis in g.rng.permutation(rank)[:rank - x.rank]]
    inputs, attributes = with_axes(g, [axis - rank if g.chance(0.3) else axis for axis in axes], 13)
    g.node("Unsqueeze", [x, *inputs], exact=True, **attributes)


@operator("Concat", 11, weight=2)
def concat(g):
    x = g.pick(PLAIN, range(1, 5))
    axis = some_axis(g, x.rank)
    shape = list(x.shape)
    shape[axis] = None
    others = [g.pick(x.element, shape=tuple(shape)) for _ in range(g.int(0, 3))]
    items = [x] + others
    g.rng.shuffle(items)
    g.node("Concat", items, exact=True, axis=axis)


@operator("Split", 11)
def split(g):
    x = g.pick(PLAIN, range(1, 5))
    axis = some_axis(g, x.rank)
    parts = g.int(1, 3)
    cuts = sorted(g.int(0, x.shape[axis]) for _ in range(parts - 1))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, x.shape[axis]])]
    size = x.shape[axis]
    # The last part may be smaller, but not negative.
    fits = size % parts == 0 or g.opset >= 18 and -(-size // parts) * (parts - 1) <= size
    equal = g.chance(0.4) and fits and size > 0
    if equal:
        g.node("Split", [x], parts, exact=True, axis=axis, num_outputs=parts if g.opset >= 18 else None)
    elif g.opset >= 13:
        g.node("Split", [x, g.ints(sizes)], parts, exact=True, axis=axis)
    else:
        g.node("Split", [x], parts, exact=True, axis=axis, split=sizes)


@operator("Slice", 10, weight=2)
def slice_(g):
    x = g.pick(PLAIN, range(1, 5))
    axes = some_axes(g, x.rank) or list(range(x.rank))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.shape[axis]
        step = g.choice((1, 1, 1, 2, 3, -1, -2))
        start, end = g.int(-size - 1, size + 1), g.int(-size - 1, size + 1)
        if g.chance(0.2):
            end = 2**31 - 1 if step > 0 else -2**31
        starts.append(start), ends.append(end), steps.append(step)
    kind = g.choice((T.INT64, T.INT32))
    inputs = [g.ints(starts, kind), g.ints(ends, kind), g.ints(axes, kind)]
    if g.chance(0.7):
        inputs.append(g.ints(steps, kind))
    g.node("Slice", [x, *inputs], exact=True)


@operator("Pad", 11)
def pad(g):
    x = g.pick(NUMBERS + ((T.BOOL,) if g.opset >= 13 else ()), range(1, 5), where=lambda value: value.array.size > 0)
    modes = ("constant", "constant", None, "reflect", "edge") + (("wrap",) if g.opset >= 19 else ())
    mode = g.choice(modes)
    axes = some_axes(g, x.rank) if g.opset >= 18 else None
    some = axes or list(range(x.rank))
    most = lambda axis: x.shape[axis] - 1 if mode == "reflect" else x.shape[axis] if mode == "wrap" else 3
    least = -1 if mode in (None, "constant") else 0
    amounts = [max(g.int(least, min(3, most(axis))), least if x.shape[axis] > 2 else 0) for axis in some * 2]
    value = g.pick(x.element, shape=()) if mode in (None, "constant") and g.chance(0.6) else None
    inputs = [x, g.ints(amounts), value]
    if axes is not None:
        inputs.append(g.ints(axes))
    while inputs[-1] is None:
        inputs.pop()
    g.node("Pad", inputs, exact=True, mode=mode)


@operator("Tile", 6)
def tile(g):
    x = g.pick(PLAIN, range(1, 5))
    g.node("Tile", [x, g.ints([g.choice((1, 1, 2, 3)) for _ in x.shape])], exact=True)


@operator("Expand", 8)
def expand(g):
    x = g.pick(PLAIN)
    sizes = [g.int(1, 4) if size == 1 and g.chance(0.7) else g.choice((1, size)) for size in x.shape]
    sizes = [g.int(1, 3) for _ in range(g.int(0, 1))] + sizes
    g.node("Expand", [x, g.ints(sizes)], exact=True)


@operator("DepthToSpace", 11)
def depth_to_space(g):
    block = g.int(1, 3)
    x = g.pick(FLOATS, shape=(None, block * block * g.int(1, 2), None, None))
    g.node("DepthToSpace", [x], exact=True, blocksize=block, mode=g.choice((None, "DCR", "CRD")))


@operator("SpaceToDepth", 1)
def space_to_depth(g):
    block = g.int(1, 3)
    x = g.pick(FLOATS, shape=(None, None, block * g.int(1, 2), block * g.int(1, 2)))
    g.node("SpaceToDepth", [x], exact=True, blocksize=block)


@operator("ReverseSequence", 10)
def reverse_sequence(g):
    x = g.pick(PLAIN, range(2, 5), where=lambda value: value.array.size > 0)
    time = g.int(0, 1)
    lengths = [g.int(1, x.shape[time]) for _ in range(x.shape[1 - time])]
    g.node("ReverseSequence", [x, g.ints(lengths)], exact=True, time_axis=time, batch_axis=1 - time)


@operator("Shape", 1)
def shape(g):
    x = g.pick(PLAIN)
    ends = {"start": g.int(-x.rank, x.rank), "end": g.int(-x.rank, x.rank)} if g.opset >= 15 and g.chance(0.4) else {}
    g.node("Shape", [x], **ends)


@operator("Size", 1)
def size(g):
    g.node("Size", [g.pick(PLAIN)])


@operator("ConstantOfShape", 9)
def constant_of_shape(g):
    element = draw_type(g.rng, PLAIN)
    value = numpy_helper.from_array(np.array([g.int(0, 5)]).astype(dtype_of(element)), "value")
    known = [value for value in g.values if not value.is_sequence and value.element == T.INT64 and value.rank == 1
             and 0 < value.array.size <= 4 and value.array.min() >= 0 and math.prod(map(int, value.array)) <= 512]
    sizes = g.choice(known) if known and g.chance(0.5) and not g.depth else g.ints(g.new_shape())
    g.node("ConstantOfShape", [sizes], exact=True, value=value if g.chance(0.8) else None)


@operator("Range", 11)
def range_(g):
    element = g.choice((T.INT64, T.INT32, T.FLOAT, T.DOUBLE))
    start, step = g.int(-5, 5), g.choice((1, 2, -1, 3))
    ends = np.array([start, start + step * g.int(0, 9), step], dtype_of(element))
    g.node("Range", [g.constant(end, element) for end in ends], exact=True)


@operator("EyeLike", 9)
def eye_like(g):
    x = g.pick((T.FLOAT, T.DOUBLE, T.INT32, T.INT64, T.UINT64), 2)
    g.node("EyeLike", [x], exact=True, k=g.choice((None, 1, -1, 4)),
           dtype=g.choice((None, T.FLOAT, T.INT64, T.INT32)))


@operator("Trilu", 14)
def trilu(g):
    x = g.pick((T.FLOAT, T.DOUBLE, T.INT64, T.BOOL), range(2, 5))
    inputs = [x, g.ints(g.int(-3, 3))] if g.chance(0.6) else [x]
    g.node("Trilu", inputs, exact=True, upper=g.choice((None, 0, 1)))


@operator("CenterCropPad", 18)
def center_crop_pad(g):
    x = g.pick(PLAIN, range(1, 5))
    axes = sorted({axis % x.rank for axis in some_axes(g, x.rank) or range(x.rank)})
    g.node("CenterCropPad", [x, g.ints([g.int(1, 6) for _ in axes])], exact=True, axes=axes)


@operator("Constant", 13)
def constant(g):
    kind = g.choice(("value_float", "value_floats", "value_int", "value_ints"))
    items = [g.int(-4, 4) for _ in range(g.int(1, 4))]
    items = [item / 2 for item in items] if "float" in kind else items
    g.node("Constant", [], exact=True, **{kind: items if kind.endswith("s") else items[0]})
