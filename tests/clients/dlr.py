"""The DLR runtime, which holds TVM's graph executor, by its C interface."""
import ctypes
import os
import re

import numpy as np

from archive import Failure

HOST = 1


class Rejected(Failure):
    """What the client says."""


class Model:
    """A folder with model.so, model.json and model.params, loaded.

    What this process says on stderr goes to a file from here on: the runtime says there what is wrong.
    """

    def __init__(self, libdlr, folder):
        self.said = folder.with_suffix(".stderr")
        os.dup2(os.open(self.said, os.O_WRONLY | os.O_CREAT), 2)
        self.library = ctypes.CDLL(str(libdlr))
        self.handle = ctypes.c_void_p()
        self.do("CreateDLRModel", str(folder).encode(), HOST, 0)

    def do(self, name, *arguments):
        status = getattr(self.library, name)(ctypes.byref(self.handle), *arguments)
        if status:
            raise Rejected(f"{name}: {first_error(self.said.read_text(errors='replace'))}")

    def number(self, name):
        count = ctypes.c_int()
        self.do(name, ctypes.byref(count))
        return count.value

    def text(self, name, index):
        found = ctypes.c_char_p()
        self.do(name, index, ctypes.byref(found))
        return found.value.decode()

    def shape(self, kind, index):
        size, rank = ctypes.c_int64(), ctypes.c_int()
        self.do(f"GetDLR{kind}SizeDim", index, ctypes.byref(size), ctypes.byref(rank))
        shape = (ctypes.c_int64 * rank.value)()
        self.do(f"GetDLR{kind}Shape", index, shape)
        return list(shape)

    def inputs(self):
        """Names of the inputs that are no parameters, and types of them, each sorted: the runtime
        numbers names in another order than types."""
        count = range(self.number("GetDLRNumInputs"))
        types = [(self.text("GetDLRInputType", index), self.shape("Input", index)) for index in count]
        return sorted(self.text("GetDLRInputName", index) for index in count), sorted(types)

    def run(self, inputs):
        for name, value in inputs.items():
            value = np.ascontiguousarray(value)
            shape = (ctypes.c_int64 * value.ndim)(*value.shape)
            self.do("SetDLRInput", name.encode(), shape, ctypes.c_void_p(value.ctypes.data), value.ndim)
        self.do("RunDLRModel")
        return [self.output(index) for index in range(self.number("GetDLRNumOutputs"))]

    def output(self, index):
        dtype = self.text("GetDLROutputType", index)
        made = np.empty(self.shape("Output", index), "u2" if dtype == "bfloat16" else dtype)
        self.do("GetDLROutput", index, ctypes.c_void_p(made.ctypes.data))
        return made

    def close(self):
        self.do("DeleteDLRModel")


def first_error(text):
    """What comes first, without times and folders; a stack follows."""
    line = next(iter(text.strip().splitlines()), "it does not say what")
    return re.sub(r".*/", "", line.split("] ")[-1], count=1)[:200]
