"""Element types and random tensors."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper

FLOATS = (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16)
SIGNED = (T.INT8, T.INT16, T.INT32, T.INT64)
UNSIGNED = (T.UINT8, T.UINT16, T.UINT32, T.UINT64)
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
PLAIN = NUMBERS + (T.BOOL,)
SMALL_FLOATS = (T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ)
SMALL_INTS = (T.INT4, T.UINT4)
# Types that the Python interface of ONNX Runtime does not exchange as arrays.
OPAQUE = (T.BFLOAT16,) + SMALL_FLOATS + SMALL_INTS

# How often each type is drawn, of all that an operator has.
WEIGHTS = {T.FLOAT: 12, T.INT64: 4, T.INT32: 3, T.DOUBLE: 2, T.FLOAT16: 2, T.BFLOAT16: 1}


def dtype_of(element):
    return np.dtype(helper.tensor_dtype_to_np_dtype(element))


def is_float(element):
    return element in FLOATS or element in SMALL_FLOATS


def draw_type(rng, types):
    weights = np.array([WEIGHTS.get(element, 1) for element in types], float)
    return types[int(rng.choice(len(types), p=weights / weights.sum()))]


def draw_array(rng, element, shape, low=None, high=None):
    """Random elements; floats are multiples of 1/4 at times, so that ties and equal elements occur."""
    dtype = dtype_of(element)
    if element == T.BOOL:
        return rng.random(shape) < 0.6
    if is_float(element):
        low, high = -3.0 if low is None else low, 3.0 if high is None else high
        array = rng.uniform(low, high, shape)
        if rng.random() < 0.3:
            array = np.clip(np.round(array * 4) / 4, low, high)
        return np.asarray(array, np.float32 if dtype.itemsize < 8 else float).astype(dtype)
    smallest, largest = limits(element)
    whole = low is None and high is None and rng.random() < 0.1
    low = smallest if whole else max(smallest, -9 if low is None else int(low))
    high = largest if whole else min(largest, 9 if high is None else int(high))
    kind = np.uint64 if low >= 0 else np.int64
    return np.asarray(rng.integers(low, high, shape, kind, endpoint=True)).astype(dtype)


def limits(element):
    if element in SMALL_INTS:
        return (-8, 7) if element == T.INT4 else (0, 15)
    info = np.iinfo(dtype_of(element))
    return int(info.min), int(info.max)


def as_double(array):
    """Floats of any type as f64, without warnings."""
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(np.float64)
