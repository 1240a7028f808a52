"""The graph of an archive as tables in C, and host.c with them and the archive's code linked in."""
import numpy as np

from archive import demand
from library import INCLUDE, OWN, own_object, symbols, tool

# Storages lie at multiples of 64 that are none of 128, with a gap behind each.
STEP, FIRST = 128, 64


def build(check, with_slots):
    """The program; with_slots fills the weak slots of the code, which else are empty."""
    folder = check.folder / f"host{int(with_slots)}"
    folder.mkdir()
    (folder / "graph.c").write_text(tables(check.archive))
    flags = [*OWN, *INCLUDE, "-O2"]
    if has_registry(check.objects):
        flags.append("-DWITH_REGISTRY")
    tool("cc", "-c", *flags, folder / "graph.c", "-o", folder / "graph.o")
    tool("cc", "-c", *flags, check.here / "host.c", "-o", folder / "host.o")
    own = [own_object("backend", folder), *([own_object("slots", folder)] if with_slots else [])]
    made = [folder / "graph.o", folder / "host.o", *own]
    tool("cc", *made, *check.objects, "-o", folder / "host", "-lm")
    return folder / "host"


def has_registry(objects):
    return "TVMSystemLibEntryPoint" in symbols(objects, "--defined-only")


def run(check, program, how, all_inputs):
    """Outputs of each run, one after another in one process, and what the program says."""
    archive, folder = check.archive, program.parent
    given, params, made = folder / "inputs", folder / "params", folder / "outputs"
    params.write_bytes(b"".join(tensor.array.tobytes() for tensor in archive.params.values()))
    ordered = [inputs[name] for inputs in all_inputs for name in names(archive)]
    given.write_bytes(b"".join(value.tobytes() for value in ordered))
    text = tool(program, how, params, given, made, len(all_inputs))
    data, at = made.read_bytes(), 0
    runs = []
    for _ in all_inputs:
        runs.append([])
        for entry in (archive.graph.entries[entry] for entry in archive.graph.outputs):
            demand(at + entry.bytes <= len(data), "the program wrote too little")
            values = np.frombuffer(data, entry.numpy, int(np.prod(entry.shape)), at)
            runs[-1].append(values.reshape(entry.shape))
            at += entry.bytes
    return runs, text


def names(archive):
    """Inputs that are no parameters."""
    return [name for name in archive.graph.inputs if name not in archive.params]


def tables(archive):
    graph = archive.graph
    offsets, gaps, end = layout(graph.storages())
    functions = graph.functions()
    lines = ['#include "host.h"', "#include <stdint.h>"]
    parameters = "TVMValue *, int32_t *, int32_t, TVMValue *, int32_t *, void *"
    lines += [f"int32_t {name}({parameters});" for name in functions]
    lines += table("Entry", "entries", [entry_row(entry, offsets) for entry in graph.entries])
    lines += table("Gap", "gaps", [f"{{{start}, {size}}}" for start, size in gaps])
    for index, call in enumerate(graph.calls):
        lines += table("static int32_t", f"call{index}", [*call.reads, *call.writes], is_local=True)
    lines += table("Call", "calls", [
        f'{{"{call.function}", {call.function}, call{index}, {len(call.reads) + len(call.writes)}}}'
        for index, call in enumerate(graph.calls)])
    for what, entries in (("input", [graph.inputs[name] for name in names(archive)]),
                          ("param", [graph.inputs[name] for name in archive.params]),
                          ("output", graph.outputs)):
        lines += table("int32_t", f"{what}s", entries)
        lines.append(f"const int32_t {what}_count = {len(entries)};")
    lines += [f"const int32_t call_count = {len(graph.calls)}, gap_count = {len(gaps)};",
              f"const uint64_t arena_bytes = {end};"]
    return "\n".join(lines) + "\n"


def layout(storages):
    """Offset of each storage, the gaps between them, and bytes in all."""
    offsets, gaps, end = {}, [], 0
    for storage, size in storages.items():
        start = end + FIRST
        gaps.append((end, FIRST))
        # What a runtime gives a storage are whole floats.
        offsets[storage], used = start, start + -(-size // 4) * 4
        end = (used // STEP + 1) * STEP
        gaps.append((used, end - used))
    return offsets, gaps, end


def entry_row(entry, offsets):
    code, bits, lanes = entry.dtype
    shape = ", ".join(map(str, entry.shape)) or "0"
    return (f"{{{offsets[entry.storage]}, {entry.bytes}, {{{code}, {bits}, {lanes}}}, "
            f"{len(entry.shape)}, {{{shape}}}}}")


def table(kind, name, rows, is_local=False):
    const = kind.replace("static ", "static const ") if is_local else f"const {kind}"
    # C has no empty arrays.
    rows = rows or ["0" if "int" in kind else "{0}"]
    return [f"{const} {name}[] = {{", *(f"  {row}," for row in rows), "};"]
