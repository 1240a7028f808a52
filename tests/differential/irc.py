"""Runs models with the engines of irc: many in one process of irc-conformance."""
import pathlib
import resource
import shutil
import subprocess

import numpy as np
from onnx import numpy_helper

from values import OPAQUE, dtype_of

ENGINES = ("llvm", "cranelift", "reference")
# Seconds for one model, and bytes of memory for a process.
LIMIT = 20
MEMORY = 12 << 30


def write_case(folder, proto, feeds):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    for index, port in enumerate(proto.graph.input):
        tensor = numpy_helper.from_array(feeds[port.name], port.name)
        (data / f"input_{index}.pb").write_bytes(tensor.SerializeToString())


def run(program, folder, models, engines=ENGINES):
    """The outputs of models (pairs of file and inputs) by engine: dictionaries, or what went wrong."""
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    for index, (proto, feeds) in enumerate(models):
        write_case(folder / f"{index:05}", proto, feeds)
    flags = [flag for engine in engines for flag in ("--backend", engine)]
    bound = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    done = subprocess.run([program, folder, *flags, "--outputs", "--limit", str(LIMIT)], capture_output=True,
                          text=True, preexec_fn=bound)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{program}: {done.stderr}")
    return [{engine: outputs(folder / f"{index:05}", proto, engine) for engine in engines}
            for index, (proto, _) in enumerate(models)]


def outputs(folder, proto, engine):
    error = folder / f"{engine}.txt"
    if error.exists():
        return error.read_text()
    with np.load(folder / f"{engine}.npz") as arrays:
        found = dict(arrays)
    return {port.name: restored(port, found) for port in proto.graph.output}


def restored(port, found):
    """The value of an output: a file holds the bits of small types, and the items of a sequence apart."""
    if port.type.HasField("sequence_type"):
        items = []
        while f"{port.name}[{len(items)}]" in found:
            items.append(found[f"{port.name}[{len(items)}]"])
        return items
    array = found[port.name]
    element = port.type.tensor_type.elem_type
    return array.view(dtype_of(element)) if element in OPAQUE else array
