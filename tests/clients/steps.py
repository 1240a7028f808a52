"""The steps of check_archive.py: each takes a check, and gives what is to be said of it.

What is called `in_…` runs in another process.
"""
import concurrent.futures
import multiprocessing
import os
import shutil

import dlr
import host
from archive import Failure, demand
from controls import controls, flipped
from executor import DL_TENSOR, Ffi, HANDLE, Memory, ND_ARRAY, Packed
from form import check_form
from library import check_symbols, link, objects, own_object, symbols


class Absent(Exception):
    """Why there is nothing to check."""


def isolated(work, *arguments):
    """What a function gives, of a process of its own."""
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(guarded, work, *arguments).result()
        except concurrent.futures.process.BrokenProcessPool:
            raise Failure("the process dies") from None


def guarded(work, *arguments):
    """Exceptions of clients stay in their process: to read one here would load the client here."""
    try:
        return work(*arguments)
    except Failure:
        raise
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {error}") from None


def step_form(check):
    return check_form(check.archive)


def step_params(check):
    path = check.archive.params_path
    return isolated(in_tvm, check.archive.bytes(path), check.archive.params)


def in_tvm(data, params):
    os.environ["TVM_USE_RUNTIME_LIB"] = "1"
    import tvm.runtime
    loaded = tvm.runtime.load_param_dict(data)
    demand(set(loaded.keys()) == set(params), f"apache-tvm finds {sorted(loaded.keys())}")
    for name, tensor in params.items():
        array = loaded[name].numpy()
        demand(list(array.shape) == list(tensor.array.shape), f"{name} is of shape {list(array.shape)}")
        demand(array.tobytes() == tensor.array.tobytes(), f"the bits of {name} are others")
        demand(array.dtype.itemsize == tensor.array.dtype.itemsize, f"{name} is {array.dtype}")
    demand(bytes(tvm.runtime.save_param_dict(loaded)) == data, "written again, bytes are others")
    for what, spoilt in flipped(data):
        try:
            tvm.runtime.load_param_dict(spoilt)
        except tvm.error.InternalError:
            continue
        raise Failure(f"apache-tvm takes that {what}")
    return f"{len(params)} in {len(data)} bytes, the same in apache-tvm {tvm.__version__}, and written again"


def step_symbols(check):
    check.objects = objects(check.archive, check.folder)
    return check_symbols(check.objects, check.archive.graph.functions(), check.with_runtime)


def step_link(check):
    check.objects = check.objects or objects(check.archive, check.folder)
    backend = own_object("backend", check.folder)
    link([backend], check.backend)
    # Not among the archive's own, for the program in C has it anyway.
    check.added = [backend] if check.with_runtime else []
    link([*check.objects, *check.added], check.library)
    return f"{len(check.objects)} objects are {check.library.stat().st_size} bytes"


def model_folder(check, name, library, graph, params):
    folder = check.folder / name
    folder.mkdir()
    shutil.copy(library, folder / "model.so")
    (folder / "model.json").write_bytes(graph)
    (folder / "model.params").write_bytes(params)
    return folder


def step_dlr(check):
    return run_in_dlr(check, "dlr", check.library)


def run_in_dlr(check, name, library):
    archive = check.archive
    graph, params = archive.bytes(archive.graph_path), archive.bytes(archive.params_path)
    folder = model_folder(check, name, library, graph, params)
    found, runs = isolated(in_dlr, check.libdlr, folder, check.runs())
    names = host.names(archive)
    entries = [archive.graph.entries[archive.graph.inputs[each]] for each in names]
    wanted = sorted(names), sorted((entry.name, entry.shape) for entry in entries)
    demand(found == wanted, f"inputs are {found}, not {wanted}")
    return check.judge(f"inputs {', '.join(wanted[0])};", runs)


def in_dlr(libdlr, folder, all_inputs):
    model = dlr.Model(libdlr, folder)
    found = model.inputs(), [model.run(inputs) for inputs in all_inputs]
    model.close()
    return found


def step_shared(check):
    stated = (check.archive.extension or {}).get("library")
    if not stated:
        raise Absent("the archive has no shared library")
    check.archive.bytes(stated["member"])
    return run_in_dlr(check, "shared", check.archive.members[stated["member"]])


def step_reject(check):
    said = []
    for index, (what, library, graph, params) in enumerate(controls(check)):
        folder = model_folder(check, f"spoilt{index}", library, graph, params)
        try:
            isolated(in_dlr, check.libdlr, folder, [check.inputs])
        except dlr.Rejected as rejection:
            said.append(f"\n        {what}: {rejection}")
            continue
        raise Failure(f"it takes that {what}")
    return f"{len(said)} of {len(said)}{''.join(said)}"


def step_packed(check):
    cases = [(DL_TENSOR, True), (HANDLE, True), (ND_ARRAY, True)]
    # Code of irc does without what a loader gives it.
    cases += [(DL_TENSOR, False)] if check.archive.extension else []
    said = []
    for code, with_slots in cases:
        runs = isolated(in_packed, check, code, with_slots)
        said.append(check.judge(f"code {code}{'' if with_slots else ', empty slots'}", runs))
    return ", ".join(said)


def in_packed(check, code, with_slots):
    call = Packed(check.library, check.backend, code, with_slots)
    memory = prepared(check.archive)
    runs = [memory.run(inputs, call) for inputs in check.runs()]
    call.finish()
    return runs


def prepared(archive):
    memory = Memory(archive.graph)
    for name, tensor in archive.params.items():
        memory.arrays[archive.graph.inputs[name]][...] = tensor.array
    return memory


def step_ffi(check):
    functions = check.archive.graph.functions()
    defined = symbols(check.objects, "--defined-only")
    missing = [name for name in functions if f"__tvm_ffi_{name}" not in defined]
    if len(missing) == len(functions) and not check.archive.extension:
        raise Absent("no function is exported as __tvm_ffi_NAME")
    demand(not missing, f"not exported as __tvm_ffi_NAME: {missing}")
    said = []
    for who, with_tvm in (("tvm-ffi", False), ("beside TVM's runtime", True)):
        said.append(check.judge(who, isolated(in_ffi, check, with_tvm)))
    return f"{len(functions)} functions, {', '.join(said)}"


def in_ffi(check, with_tvm):
    if with_tvm:
        os.environ["TVM_USE_RUNTIME_LIB"] = "1"
        import tvm.runtime  # noqa: F401
    call, memory = Ffi(check.library), prepared(check.archive)
    return [memory.run(inputs, call) for inputs in check.runs()]


def step_host(check):
    has_registry = host.has_registry(check.objects)
    demand(has_registry or not check.archive.extension, "there is no TVMSystemLibEntryPoint")
    said, note = [], "; there is no TVMSystemLibEntryPoint"
    for with_slots in [True, False] if check.archive.extension else [True]:
        program = host.build(check, with_slots)
        for how in ("name", "registry") if has_registry else ("name",):
            label = f"by {how}{'' if with_slots else ', empty slots'}"
            runs, text = host.run(check, program, how, check.runs())
            note = f"; it counts in {text.strip()}" if text else note
            # TVM 0.8, which wrote version 5, knows no other.
            demand(check.archive.version > 5 or "16 bits" not in text, "the registry counts in 16 bits")
            said.append(check.judge(label, runs))
    return ", ".join(said) + note


STEPS = {name.removeprefix("step_"): step for name, step in list(globals().items())
         if name.startswith("step_")}
# Steps that have nothing to run where none is linked.
LINKED = {"dlr", "shared", "reject", "packed", "ffi", "host"}
