"""Runs a graph call by call, on functions of a library: the packed C interface, and that of tvm-ffi."""
import ctypes

import numpy as np

from archive import demand

ALIGNMENT, POISON = 64, 0xFF
HANDLE, NULL, DL_TENSOR, ND_ARRAY = 3, 4, 7, 13


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Memory:
    """Storages of a graph, and an array on them for each entry."""

    def __init__(self, graph):
        self.graph = graph
        storages = {each: aligned(size) for each, size in graph.storages().items()}
        self.arrays = [storages[entry.storage][:entry.bytes].view(entry.numpy).reshape(entry.shape)
                       for entry in graph.entries]

    def run(self, inputs, call):
        """Sets inputs, calls everything with its arrays, and gives copies of the outputs."""
        for name, value in inputs.items():
            self.arrays[self.graph.inputs[name]][...] = value
        for each in self.graph.calls:
            entries = [*each.reads, *each.writes]
            call(each.function, [self.arrays[entry] for entry in entries],
                 [self.graph.entries[entry].dtype for entry in entries])
        return [self.arrays[entry].copy() for entry in self.graph.outputs]


def aligned(size):
    """Bytes at a multiple of 64 that is none of 128, filled with what is no number."""
    whole = np.full(size + 4 * ALIGNMENT, POISON, np.uint8)
    start = -(whole.ctypes.data - ALIGNMENT) % (2 * ALIGNMENT)
    return whole[start:start + size]


class Packed:
    """Functions of a library by the packed C interface, arguments with one type code."""

    def __init__(self, library, backend, code, with_slots):
        self.library, self.code = ctypes.CDLL(str(library)), code
        # Where the functions of a runtime are linked in, those count.
        is_inside = hasattr(self.library, "backend_live")
        self.backend = self.library if is_inside else ctypes.CDLL(str(backend))
        self.backend.backend_error.restype = ctypes.c_char_p
        self.set_slots(with_slots)

    def set_slots(self, are_filled):
        for name in ("TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace",
                     "TVMBackendParallelLaunch", "TVMAPISetLastError"):
            try:
                slot = ctypes.c_void_p.in_dll(self.library, "__" + name)
            except ValueError:
                continue
            function = ctypes.cast(getattr(self.backend, name), ctypes.c_void_p)
            slot.value = function.value if are_filled else None

    def __call__(self, name, arrays, dtypes):
        tensors = [tensor(array, dtype) for array, dtype in zip(arrays, dtypes)]
        values = (ctypes.c_void_p * len(tensors))(*(ctypes.addressof(each) for each in tensors))
        codes = (ctypes.c_int32 * len(tensors))(*[self.code] * len(tensors))
        result, result_code = ctypes.c_uint64(), ctypes.c_int32(NULL)
        status = getattr(self.library, name)(values, codes, ctypes.c_int32(len(tensors)),
                                             ctypes.byref(result), ctypes.byref(result_code), None)
        error = self.backend.backend_error().decode()
        demand(status == 0, f"{name} gives {status} with type code {self.code}: {error}")

    def finish(self):
        demand(self.backend.backend_live() == 0, "workspace is not given back in order")


def tensor(array, dtype):
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return DLTensor(array.ctypes.data, 1, 0, array.ndim, *dtype, shape, None, 0)


class Ffi:
    """Functions that tvm-ffi finds, which are exported as `__tvm_ffi_NAME`."""

    def __init__(self, library):
        import tvm_ffi
        self.module, self.to_tensor = tvm_ffi.load_module(str(library)), tvm_ffi.from_dlpack

    def __call__(self, name, arrays, dtypes):
        demand(all(code != 4 for code, _, _ in dtypes), "numpy gives no bfloat16 to tvm-ffi")
        self.module[name](*(self.to_tensor(array) for array in arrays))
