"""A Model Library Format archive, read without irc: what docs/mlf.md says of members and parameters."""
import hashlib
import json
import pathlib
import struct
import tarfile

import numpy as np

LIST_MAGIC, TENSOR_MAGIC = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}
# Names of numpy by code and bits; bfloat16 is the bits of it.
NAMES = {(0, 8): "i1", (0, 16): "i2", (0, 32): "i4", (0, 64): "i8", (1, 1): "?", (1, 8): "u1",
         (1, 16): "u2", (1, 32): "u4", (1, 64): "u8", (2, 16): "f2", (2, 32): "f4", (2, 64): "f8",
         (4, 16): "u2"}


class Failure(Exception):
    """What is wrong, in a sentence."""


def demand(condition, message):
    if not condition:
        raise Failure(message)


class Archive:
    """Members below `folder`, metadata and graph; of version 7 those of the one model."""

    def __init__(self, path, folder):
        self.folder = folder
        self.members = unpack(path, folder)
        self.metadata = json.loads(self.text("metadata.json"))
        self.version = self.metadata["version"]
        modules = self.metadata.get("modules")
        demand(modules is None or len(modules) == 1, "an archive of several models is not checked")
        self.module = next(iter(modules.values())) if modules else self.metadata
        self.model = self.module["model_name"]
        # What follows of an archive of irc is held to more than one of TVM.
        self.extension = self.metadata.get("irc")
        name = f"{self.model}.graph" if self.version >= 7 else "graph.json"
        self.graph_path = f"executor-config/graph/{name}"
        self.params_path = f"parameters/{self.model}.params"
        self.graph = Graph(json.loads(self.text(self.graph_path)))
        self.params = read_params(self.bytes(self.params_path))
        self.objects = self.below("codegen/host/lib/", ".o")
        self.sources = self.below("codegen/host/src/", ".c", ".cc", ".cpp")

    def bytes(self, member):
        demand(member in self.members, f"there is no member {member}")
        return self.members[member].read_bytes()

    def text(self, member):
        return self.bytes(member).decode()

    def below(self, prefix, *ends):
        return [path for name, path in sorted(self.members.items())
                if name.startswith(prefix) and name.endswith(ends)]

    def vector(self):
        """Inputs and outputs of the first test vector, which only archives of irc have."""
        models = (self.extension or {}).get("models", {})
        vectors = models.get(self.model, {}).get("test_vectors")
        demand(vectors, "there is no test vector in it: say --inputs and --outputs")
        inputs, outputs = (read_params(self.bytes(vectors[0][key])) for key in ("inputs", "outputs"))
        return ({name: tensor.array for name, tensor in inputs.items()},
                [outputs[str(index)].array for index in range(len(outputs))])

    def check_hashes(self):
        stated = self.extension["sha256"]
        demand(set(stated) == set(self.members) - {"metadata.json"}, "hashes are not of the members")
        for name, expected in stated.items():
            found = hashlib.sha256(self.bytes(name)).hexdigest()
            demand(found == expected, f"{name} has the hash {found}")


def unpack(path, folder):
    """Paths of the files, by name in the archive. A compressed archive is no archive."""
    members = {}
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            demand(member.isfile() or member.isdir(), f"{member.name} is no file and no folder")
            name = pathlib.PurePosixPath(member.name)
            demand(not name.is_absolute() and ".." not in name.parts, f"{name} leads outside")
            if member.isfile():
                members[str(name)] = folder / name
                members[str(name)].parent.mkdir(parents=True, exist_ok=True)
                members[str(name)].write_bytes(archive.extractfile(member).read())
    return members


class Tensor:
    """An array, and its element type as the file has it: code, bits, lanes."""

    def __init__(self, dtype, array):
        self.dtype, self.array = dtype, array


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        demand(self.at + count <= len(self.data), f"parameters end before byte {self.at + count}")
        self.at += count
        return self.data[self.at - count:self.at]

    def read(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))


def read_params(data):
    """Tensors by name, in the order of the file."""
    reader = Reader(data)
    demand(reader.read("QQ") == (LIST_MAGIC, 0), "parameters do not begin as they should")
    names = [reader.take(reader.read("Q")[0]).decode() for _ in range(reader.read("Q")[0])]
    demand(reader.read("Q")[0] == len(names), "there are not as many tensors as names")
    params = {name: read_tensor(reader) for name in names}
    demand(reader.at == len(data), f"{len(data) - reader.at} bytes follow the parameters")
    demand(len(params) == len(names), "two parameters have one name")
    return params


def read_tensor(reader):
    demand(reader.read("QQ") == (TENSOR_MAGIC, 0), f"no tensor at byte {reader.at - 16}")
    device, index, rank, code, bits, lanes = reader.read("iiiBBH")
    demand((device, index, lanes) == (1, 0, 1), "a tensor is not on the host, or one of vectors")
    shape, [size] = reader.read(f"{rank}q"), reader.read("q")
    kind = np.dtype(NAMES[code, bits]).newbyteorder("<")
    demand(size == int(np.prod(shape)) * kind.itemsize, f"{size} bytes are no {kind}{list(shape)}")
    return Tensor((code, bits, lanes), np.frombuffer(reader.take(size), kind).reshape(shape))


def element(name):
    """Code, bits and lanes of TVM's name of an element type."""
    if name == "bool":
        return 1, 1, 1
    kind = name.rstrip("0123456789")
    return CODES[kind], int(name[len(kind):]), 1


class Entry:
    def __init__(self, dtype, shape, storage):
        self.name, self.dtype, self.shape, self.storage = dtype, element(dtype), shape, storage
        self.numpy = np.dtype(NAMES[self.dtype[:2]])
        self.bytes = int(np.prod(shape)) * self.numpy.itemsize


class Call:
    def __init__(self, function, reads, writes):
        self.function, self.reads, self.writes = function, reads, writes


class Graph:
    """Calls in the order they run, on entries; inputs are parameters too."""

    def __init__(self, document):
        self.document = document
        nodes, rows = document["nodes"], document["node_row_ptr"]
        attrs = {key: values for key, [_, values] in document["attrs"].items()}
        of = lambda reference: rows[reference[0]] + reference[1]
        columns = zip(attrs["dltype"], attrs["shape"], attrs["storage_id"], strict=True)
        self.entries = [Entry(*column) for column in columns]
        self.inputs = {nodes[node]["name"]: rows[node] for node in document["arg_nodes"]}
        self.outputs = [of(head) for head in document["heads"]]
        self.calls = [
            Call(node["attrs"]["func_name"], [of(each) for each in node["inputs"]],
                 list(range(rows[index], rows[index + 1])))
            for index, node in enumerate(nodes) if node["op"] == "tvm_op"]

    def functions(self):
        return sorted({call.function for call in self.calls})

    def storages(self):
        """Bytes of each storage: of the largest entry in it."""
        sizes = {}
        for entry in self.entries:
            sizes[entry.storage] = max(entry.bytes, sizes.get(entry.storage, 0))
        return sizes
