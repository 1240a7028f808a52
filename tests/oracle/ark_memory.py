"""The buffers of an ARK model, and which of them are its inputs and outputs."""
import numpy as np

from ark_ops import FLOATS, ModelError, STORAGE, narrow, widen

# Operands that a peer writes, or that only express a dependency: they are not inputs of the model.
ARRIVING = {
    "Recv": (0,), "RecvPacket": (0, 1), "RecvReduceSend": (1,), "RecvReduceSendPacket": (1,),
    "SendDone": (0,), "DeviceSync": (0,),
}


def ops_of(model):
    """The ops in the order they run. Older files keep several in one node."""
    for node in model["Nodes"]:
        for op in node.get("Ops") or [node["Op"]]:
            if not op.get("IsVirtual"):
                yield op


def tensors_of(op):
    return op["ReadTensors"] + op["WriteTensors"] + op["ResultTensors"]


def is_local(model, tensor):
    """Whether the tensor is on this rank; otherwise it refers to one on another."""
    return tensor["Buffer"]["Rank"] in (-1, model["Rank"])


def bytes_of(tensor):
    """Bytes of the enclosing view."""
    return int(np.prod(tensor["Strides"])) * np.dtype(STORAGE[tensor["DataType"]]).itemsize


def box(tensor, flat):
    """The elements of a tensor, out of its enclosing view."""
    ranges = zip(tensor["Offsets"], tensor["Shape"])
    return flat.reshape(tensor["Strides"])[tuple(slice(low, low + size) for low, size in ranges)]


class Memory:
    """Every buffer of a model on its own rank, as bytes.

    With `unrounded`, a float type, ops read in it what floats were before they were rounded; what is
    stored, and comes back, is rounded all the same.
    """

    def __init__(self, model, unrounded=None):
        self.types, sizes = {}, {}
        for op in ops_of(model):
            for tensor in filter(lambda tensor: is_local(model, tensor), tensors_of(op)):
                key = tensor["Buffer"]["Id"]
                self.types.setdefault(key, tensor["DataType"])
                sizes[key] = max(bytes_of(tensor), sizes.get(key, 0))
        self.bytes = {key: np.zeros(size, np.uint8) for key, size in sizes.items()}
        # By buffer and element size: the elements that were stored.
        self.unrounded, self.wide = unrounded, {}

    def whole(self, key):
        return self.bytes[key].view(STORAGE[self.types[key]])

    def view(self, tensor, key=None):
        """The box of a tensor; on another buffer where `key` names one."""
        dtype = np.dtype(STORAGE[tensor["DataType"]])
        held = self.bytes[tensor["Buffer"]["Id"] if key is None else key]
        if held.size < bytes_of(tensor):
            raise ModelError(f"buffer {key}: {held.size} bytes for a view of {bytes_of(tensor)}")
        return box(tensor, held[: bytes_of(tensor)].view(dtype))

    def load(self, tensor):
        stored, dtype = self.view(tensor), tensor["DataType"]
        values = widen(stored, dtype)
        if self.unrounded is None or dtype not in FLOATS:
            return values
        values = values.astype(self.unrounded)
        wide = self.wide.get(self.place(tensor))
        if wide is None:
            return values
        wide = box(tensor, wide[: int(np.prod(tensor["Strides"]))])
        # Elements that round to other bits precede a write under another type.
        return np.where(narrow(wide, dtype) == stored, wide, values)

    def store(self, tensor, values):
        dtype = tensor["DataType"]
        self.view(tensor)[...] = narrow(values, dtype)
        if self.unrounded is not None and dtype in FLOATS:
            id_, size = place = self.place(tensor)
            wide = self.wide.setdefault(place, np.zeros(self.bytes[id_].size // size, self.unrounded))
            box(tensor, wide[: int(np.prod(tensor["Strides"]))])[...] = values

    def place(self, tensor):
        return tensor["Buffer"]["Id"], np.dtype(STORAGE[tensor["DataType"]]).itemsize

    def fill(self, key, values):
        whole = self.whole(key)
        if values.dtype != whole.dtype or values.shape != whole.shape:
            found = f"{values.dtype}{list(values.shape)}"
            expected = f"{whole.dtype}{list(whole.shape)}"
            raise ModelError(f"buffer_{key}: expected {expected}, found {found}")
        whole[:] = values


def inputs_and_outputs(model):
    """Buffers read before they are written, and buffers written, of this rank, in file order."""
    inputs, outputs = {}, {}
    for op in (op for op in ops_of(model) if op["Type"] != "Noop"):
        for place, tensor in enumerate(op["ReadTensors"]):
            given = place not in ARRIVING.get(op["Type"], ()) and is_local(model, tensor)
            if given and tensor["Buffer"]["Id"] not in outputs:
                inputs[tensor["Buffer"]["Id"]] = True
        for tensor in op["WriteTensors"]:
            # A synchronisation lists its operand as a result too, but writes nothing.
            if is_local(model, tensor) and op["Type"] != "DeviceSync":
                outputs[tensor["Buffer"]["Id"]] = True
    return list(inputs), list(outputs)


# Random inputs: `Tensor::random` and `seed_for` of irc-tensor, from their documentation


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def splitmix(seed, index):
    with np.errstate(over="ignore"):
        state = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * (index + np.uint64(1))
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


def random(count, dtype, seed):
    first = np.arange(count, dtype=np.uint64) * np.uint64(3)
    if dtype not in FLOATS:
        signed = dtype.startswith("INT")
        draw = splitmix(seed, first) % np.uint64(16 if signed else 8)
        return (draw.astype(np.int64) - (8 if signed else 0)).astype(STORAGE[dtype])
    total = np.zeros(count, np.uint64)
    for word in range(3):
        drawn = splitmix(seed, first + np.uint64(word))
        for shift in (0, 16, 32, 48):
            total += (drawn >> np.uint64(shift)) & np.uint64(0xFFFF)
    return narrow(((total.astype(np.float64) - 393210) / 65536).astype(np.float32), dtype)
