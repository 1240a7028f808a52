"""Convolutions, poolings, resampling."""
import numpy as np
from onnx import TensorProto as T

from operators import operator
from values import is_float

REALS = (T.FLOAT, T.FLOAT, T.DOUBLE, T.FLOAT16)


def image(g, types=REALS, least=1, channels=None, dims=None, exact=False):
    """Batch, channels and one to three dimensions of a size."""
    dims = dims or g.choice((1, 2, 2, 2, 3))
    fits = lambda value: (value.array.size > 0 and min(value.shape[2:]) >= least
                          and bool(np.isfinite(value.array).all()))
    if g.chance(0.6):
        return g.pick(types, shape=(None, channels) + (None,) * dims, exact=exact, where=fits)
    sizes = [g.int(least, least + 5) for _ in range(dims)]
    element = g.choice(types)
    ends = (-3, 3) if is_float(element) else (None, None)
    return g.fresh(element, (g.int(1, 3), channels or g.choice((1, 2, 3, 4, 6)), *sizes), *ends)


def window(g, x, dilated=True, padded=True, kernel=None):
    """Attributes of a window that fits into an image; its extents are last."""
    dims = x.rank - 2
    kernel = kernel or [g.int(1, min(3, size)) for size in x.shape[2:]]
    dilations = [g.int(1, 2) if dilated and size > 2 * extent - 1 else 1 for size, extent in zip(x.shape[2:], kernel)]
    attributes = {"kernel_shape": kernel}
    if g.chance(0.6):
        attributes["strides"] = [g.int(1, 3) for _ in range(dims)]
    if max(dilations) > 1:
        attributes["dilations"] = dilations
    if padded and g.chance(0.2):
        attributes["auto_pad"] = g.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        if attributes["auto_pad"] != "VALID":
            attributes.pop("dilations", None)
            # Steps longer than the window make pads negative, which evaluators understand differently.
            attributes["strides"] = [g.int(1, min(2, extent)) for extent in kernel]
    elif padded and g.chance(0.6):
        attributes["pads"] = [g.int(0, extent - 1) for extent in kernel * 2]
    return attributes


@operator("Conv", 11, weight=2)
def conv(g):
    x = image(g)
    groups = g.choice([count for count in range(1, x.shape[1] + 1) if x.shape[1] % count == 0])
    attributes = window(g, x)
    filters = groups * g.int(1, 3)
    weight = g.pick(x.element, shape=(filters, x.shape[1] // groups, *attributes["kernel_shape"]))
    bias = [g.pick(x.element, shape=(filters,))] if g.chance(0.6) else []
    g.node("Conv", [x, weight, *bias], group=groups if groups > 1 else None, **attributes)


@operator("ConvTranspose", 11)
def conv_transpose(g):
    x = image(g, dims=g.choice((1, 2)))
    groups = g.choice([count for count in range(1, x.shape[1] + 1) if x.shape[1] % count == 0])
    dims = x.rank - 2
    kernel = [g.int(1, 3) for _ in range(dims)]
    strides = [g.int(1, 3) for _ in range(dims)]
    weight = g.pick(x.element, shape=(x.shape[1], g.int(1, 3), *kernel))
    attributes = {"strides": strides, "group": groups}
    if g.chance(0.4):
        attributes["pads"] = [g.int(0, extent - 1) for extent in kernel * 2]
    if g.chance(0.3):
        attributes["output_padding"] = [g.int(0, stride - 1) for stride in strides]
    if g.chance(0.3):
        attributes["dilations"] = [g.int(1, 2) for _ in range(dims)]
    bias = [g.pick(x.element, shape=(weight.shape[1] * groups,))] if g.chance(0.5) else []
    g.node("ConvTranspose", [x, weight, *bias], **attributes)


@operator("ConvInteger", 10)
def conv_integer(g):
    x = image(g, (T.UINT8,), dims=2)
    attributes = window(g, x)
    weight = g.pick(T.UINT8, shape=(g.int(1, 3), x.shape[1], *attributes["kernel_shape"]))
    zeros = [g.pick(T.UINT8, shape=()) for _ in range(2)] if g.chance(0.5) else []
    g.node("ConvInteger", [x, weight, *zeros], **attributes)


@operator("MaxPool", 12, weight=2)
def max_pool(g):
    with_places = g.chance(0.3)
    x = image(g, REALS + (T.UINT8, T.INT8), exact=with_places)
    attributes = window(g, x)
    g.node("MaxPool", [x], 2 if with_places else 1, exact=True, ceil_mode=g.choice((None, 1)),
           storage_order=g.choice((None, 1)) if with_places else None, **attributes)


@operator("AveragePool", 11)
def average_pool(g):
    x = image(g)
    g.node("AveragePool", [x], ceil_mode=g.choice((None, 1)), count_include_pad=g.choice((None, 1)),
           **window(g, x, dilated=g.opset >= 19))


@operator("LpPool", 11)
def lp_pool(g):
    x = image(g)
    g.node("LpPool", [x], p=g.choice((None, 1, 3)), **window(g, x, dilated=g.opset >= 18))


@operator("MaxUnpool", 11)
def max_unpool(g):
    even = lambda value: (value.array.size > 0 and not any(size % 2 for size in value.shape[2:])
                          and bool(np.isfinite(value.array).all()))
    x = g.pick(T.FLOAT, shape=(None, None, 2 * g.int(1, 3), 2 * g.int(1, 3)), exact=True, where=even)
    pooled, places = g.node("MaxPool", [x], 2, exact=True, kernel_shape=[2, 2], strides=[2, 2])
    shape = [g.ints(x.shape)] if g.chance(0.4) else []
    g.node("MaxUnpool", [pooled, places, *shape], exact=True, kernel_shape=[2, 2], strides=[2, 2])


def register_global():
    for name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        operator(name, 2)(lambda g, name=name: g.node(name, [image(g)], exact=name == "GlobalMaxPool"))


register_global()


@operator("Resize", 11, weight=2)
def resize(g):
    x = image(g, (T.FLOAT,), dims=g.choice((1, 2)))
    mode = g.choice(("nearest", "linear", "cubic") if x.rank == 4 else ("nearest", "linear"))
    transforms = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    attributes = {"mode": mode, "coordinate_transformation_mode": g.choice(transforms)}
    if mode == "nearest":
        attributes["nearest_mode"] = g.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic" and g.chance(0.5):
        attributes["cubic_coeff_a"] = -0.5
        attributes["exclude_outside"] = 1
    if g.opset >= 18 and mode == "linear" and g.chance(0.3):
        attributes["antialias"] = 1
    roi = None if g.opset >= 13 else g.constant(np.zeros(0, np.float32))
    if g.chance(0.5):
        sizes = [*x.shape[:2], *(g.int(1, 2 * size + 1) for size in x.shape[2:])]
        scales = None if g.opset >= 13 else g.constant(np.zeros(0, np.float32))
        inputs = [x, roi, scales, g.ints(sizes)]
    else:
        scales = [1, 1, *(g.choice((0.5, 0.75, 1, 1.5, 2, 3)) for _ in x.shape[2:])]
        inputs = [x, roi, g.constant(np.array(scales, np.float32))]
    g.node("Resize", inputs, **attributes)


@operator("Upsample", 9, 9)
def upsample(g):
    x = image(g, (T.FLOAT,), dims=2)
    scales = g.constant(np.array([1, 1, g.int(1, 3), g.int(1, 3)], np.float32))
    g.node("Upsample", [x, scales], mode=g.choice(("nearest", "linear")))


@operator("GridSample", 16)
def grid_sample(g):
    x = image(g, (T.FLOAT,), dims=2)
    grid = g.pick(T.FLOAT, shape=(x.shape[0], None, None, 2), low=-1.2, high=1.2, exact=True)
    modes = ("linear", "nearest", "cubic") if g.opset >= 20 else ("bilinear", "nearest", "bicubic")
    g.node("GridSample", [x, grid], mode=g.choice(modes), align_corners=g.choice((None, 1)),
           padding_mode=g.choice((None, "zeros", "border", "reflection")))


@operator("AffineGrid", 20)
def affine_grid(g):
    count, dims = g.int(1, 2), g.int(2, 3)
    theta = g.pick(T.FLOAT, shape=(count, dims, dims + 1))
    size = g.ints([count, 3, *(g.int(1, 4) for _ in range(dims))])
    g.node("AffineGrid", [theta, size], align_corners=g.choice((None, 1)))


@operator("RoiAlign", 16)
def roi_align(g):
    x = image(g, (T.FLOAT,), least=4, dims=2)
    count = g.int(1, 3)
    corners = np.sort(np.round(g.rng.uniform(0, 6, (count, 2, 2)), 1), 1).reshape(count, 4)
    batches = g.rng.integers(0, x.shape[0], count)
    g.node("RoiAlign", [x, g.given(corners.astype(np.float32)), g.given(batches)], mode=g.choice((None, "avg")),
           output_height=g.int(1, 3), output_width=g.int(1, 3), sampling_ratio=g.int(0, 2), spatial_scale=0.5,
           coordinate_transformation_mode=g.choice((None, "output_half_pixel")))


@operator("MaxRoiPool", 1)
def max_roi_pool(g):
    x = image(g, (T.FLOAT,), least=4, dims=2)
    count = g.int(1, 3)
    corners = np.sort(g.rng.integers(0, 4, (count, 2, 2)), 1).reshape(count, 4)
    rois = np.concatenate([g.rng.integers(0, x.shape[0], (count, 1)), corners], 1)
    g.node("MaxRoiPool", [x, g.given(rois.astype(np.float32))], exact=True, pooled_shape=[g.int(1, 3), g.int(1, 3)])


@operator("Col2Im", 18)
def col2im(g):
    block = [g.int(1, 3), g.int(1, 3)]
    sizes = [g.int(extent, 5) for extent in block]
    count = (sizes[0] - block[0] + 1) * (sizes[1] - block[1] + 1)
    columns = g.pick(T.FLOAT, shape=(g.int(1, 2), g.int(1, 2) * block[0] * block[1], count))
    g.node("Col2Im", [columns, g.ints(sizes), g.ints(block)])


@operator("DeformConv", 19)
def deform_conv(g):
    x = image(g, (T.FLOAT,), least=3, dims=2)
    kernel, (height, width) = [2, 2], (x.shape[2] - 1, x.shape[3] - 1)
    weight = g.pick(T.FLOAT, shape=(g.int(1, 2), x.shape[1], *kernel))
    offset = g.pick(T.FLOAT, shape=(x.shape[0], 8, height, width), low=-1, high=1)
    inputs = [x, weight, offset]
    if g.chance(0.4):
        inputs += [None, g.pick(T.FLOAT, shape=(x.shape[0], 4, height, width))]
    g.node("DeformConv", inputs, kernel_shape=kernel)
