"""Random inputs of ONNX models, and the names of the arrays that irc reads and writes for them.

The generator's seed is the model's name: floats from 0 to 1, integers and texts of them 0 or 1, sequences of
two tensors, maps from the first few integers or letters. A dimension that a model leaves open is given by
SIZES: pairs of the size that it has when it comes first, and that it has elsewhere. The first pair that ONNX
Runtime takes is used, of those with at most MAX_ELEMENTS elements; dimensions of one name have one size, and
sums of names the sum of theirs. Floats of 16 bits are from -0.5 to 0.5, so that sums of products stay in range.
"""
import math
import zlib

import numpy as np

TYPES = {"float": "f4", "float16": "f2", "double": "f8", "bool": "?", "int8": "i1", "int16": "i2",
         "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
         "string": "O"}

SIZES = ((1, 64), (1, 80), (1, 512), (1, 16), (2, 3), (3, 3), (2, 2), (4, 4), (5, 5), (1, 1), (8, 8), (1, 224), (10, 10))

MAX_ELEMENTS = 1 << 24


class Given:
    """What the command line states of inputs."""

    def __init__(self, sizes=(), shapes=(), values=()):
        pairs = lambda given: dict(text.split("=", 1) for text in given)
        self.sizes = {name: int(size) for name, size in pairs(sizes).items()}
        self.shapes = {name: [int(dim) for dim in shape.split("x") if dim] for name, shape in pairs(shapes).items()}
        self.values = pairs(values)


def draw(session, seed, sizes, given=Given()):
    """Inputs of a session of ONNX Runtime, by name."""
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    named = dict(given.sizes)
    ports = session.get_inputs()
    shapes = {port.name: shape_of(port, sizes, named, given) for port in ports}
    if sum(math.prod(shape) for shape in shapes.values()) > MAX_ELEMENTS:
        raise ValueError(f"more than {MAX_ELEMENTS} elements")
    return {port.name: value(port.type, shapes[port.name], random, given.values.get(port.name)) for port in ports}


def shape_of(port, sizes, named, given):
    if port.name in given.shapes:
        return given.shapes[port.name]
    if not isinstance(port.shape, list):
        return [2, 3]

    def extent(axis, dim):
        if isinstance(dim, int) and dim >= 0:
            return dim
        size = sizes[axis > 0]
        if isinstance(dim, str) and " + " in dim:
            return sum(named.setdefault(part, size) for part in dim.split(" + "))
        return named.setdefault(dim, size) if isinstance(dim, str) else size

    return [extent(axis, dim) for axis, dim in enumerate(port.shape)]


def value(kind, shape, random, fill=None):
    container, _, inner = kind.removesuffix(")").partition("(")
    if container in ("seq", "sequence"):
        return [value(inner, shape or [2, 3], random, fill) for _ in range(2)]
    if container == "optional":
        return value(inner, shape, random, fill)
    if container == "map":
        key, _, item = inner.partition(",")
        keys = ["a", "b", "c"] if key == "string" else [0, 1, 2]
        values = value(item.strip(), [len(keys)], random, fill)
        return dict(zip(keys, values.tolist()))
    dtype = np.dtype(TYPES[inner])
    if fill is not None:
        return np.full(shape, fill).astype(dtype)
    if dtype.kind == "f":
        return np.asarray(random.random(shape) - (0.5 if dtype.itemsize == 2 else 0), dtype)
    drawn = np.asarray(random.integers(0, 2, shape))
    return drawn.astype(str).astype(object) if dtype.kind == "O" else drawn.astype(dtype)


def arrays(values):
    """The arrays of an .npz file, by name: sequences, maps and absent optional values have several or none."""
    found = {}
    for name, item in values.items():
        if isinstance(item, list) and item and isinstance(item[0], dict):
            found |= map_arrays(name, list(item[0]), [list(entry.values()) for entry in item])
        elif isinstance(item, list):
            found |= arrays({f"{name}[{index}]": part for index, part in enumerate(item)})
        elif isinstance(item, dict):
            found |= map_arrays(name, list(item), list(item.values()))
        elif item is not None:
            array = np.asarray(item)
            found[name] = array.astype(str) if array.dtype.kind == "O" else array
    return found


def map_arrays(name, keys, values):
    values = np.asarray(values)
    values = values.astype(np.float32) if values.dtype == np.float64 else values
    return {f"{name}.keys": np.asarray(keys), f"{name}.values": values}
