"""Sums and products as ARK's kernels on CUDA_80 accumulate them (docs/accumulation.md).

    f16 matmul      products of 16 terms are summed in f32, and added to an f16 accumulator
    f32 matmul      operands are rounded to TF32 first, and summed in f32
    last axis       a warp for each row: 32 threads load 16 bytes at most, and add what they load to
                    what they hold, step after step; halves of what a thread holds are added, then
                    halves of the warp; every addition rounds, but bf16 shuffles add in f32
    other axes      one addition after another, each rounded
"""
import numpy as np

from ark_ops import STORAGE, narrow, widen

STEP, LANES, LOAD_BYTES = 16, 32, 16


def rounded(values, dtype):
    return widen(narrow(values, dtype), dtype)


def matmul(a, b, dtype):
    """The product of operands widened to float32; batched as np.matmul is."""
    if dtype == "FP32":
        return np.matmul(tf32(a), tf32(b))
    if dtype != "FP16":
        return np.matmul(a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros((*batch, a.shape[-2], b.shape[-1]), np.float32)
    partial, product = np.empty_like(total), np.empty_like(total)
    for start in range(0, a.shape[-1], STEP):
        partial[...] = 0
        for k in range(start, min(start + STEP, a.shape[-1])):
            np.multiply(a[..., :, k, None], b[..., k, None, :], out=product)
            partial += product
        total[...] = (total + partial).astype(np.float16)
    return total


def tf32(values):
    """10 bits of mantissa, ties away from zero, as cvt.rna.tf32.f32."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    kept = ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), kept, values)


def total(values, axis, dtype):
    """The sum along an axis, which is kept; 16-bit floats are widened."""
    if axis != values.ndim - 1:
        return np.expand_dims(sequential(np.moveaxis(values, axis, 0), dtype), axis)
    width = values.shape[-1]
    held = held_by_thread(width, np.dtype(STORAGE[dtype]).itemsize)
    steps = -(-width // (LANES * held))
    loaded = np.zeros((*values.shape[:-1], steps * LANES * held), np.float32)
    loaded[..., :width] = values
    loaded = loaded.reshape(*values.shape[:-1], steps, LANES, held)
    threads = halved(sequential(np.moveaxis(loaded, -3, 0), dtype), dtype)
    return rounded(halved(threads, "FP32" if dtype == "BF16" else dtype), dtype)[..., None]


def held_by_thread(width, itemsize):
    size = LOAD_BYTES
    while size > itemsize and width * itemsize % size:
        size //= 2
    return size // itemsize


def sequential(terms, dtype):
    """The sum over the first axis, in order."""
    result = np.zeros(terms.shape[1:], np.float32)
    for term in terms:
        result = rounded(result + term, dtype)
    return result


def halved(values, dtype):
    """The sum over the last axis, which has a power of two: the upper half is added to the lower."""
    while values.shape[-1] > 1:
        middle = values.shape[-1] // 2
        values = rounded(values[..., :middle] + values[..., middle:], dtype)
    return values[..., 0]


def mean(values, axis, dtype):
    count = rounded(np.float32([values.shape[axis]]), dtype)[0]
    return total(values, axis, dtype) / count
