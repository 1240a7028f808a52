"""What a client must reject: an archive spoilt in one way each. One that takes it did not look."""
import copy
import json

from archive import LIST_MAGIC, TENSOR_MAGIC, demand
from library import link


def controls(check):
    """Files of models by what is wrong with them, as model.so, model.json, model.params.

    `check` has the archive, its objects and a folder.
    """
    archive, folder = check.archive, check.folder
    graph, params = archive.bytes(archive.graph_path), archive.bytes(archive.params_path)
    library = check.library
    linked = [*check.objects, *check.added]
    yield "a function is missing", without_function(linked, archive, folder), graph, params
    for what, spoilt in flipped(params):
        yield what, library, graph, spoilt
    yield "an attribute is a number", library, spoil(graph, number), params
    yield "flatten_data is missing", library, spoil(graph, unflattened), params
    yield "a list of the graph is unknown", library, spoil(graph, extra_list), params
    if archive.params:
        yield "parameters end early", library, graph, params[:-8]


def flipped(params):
    """Parameters with one bit of a magic number flipped."""
    for what, magic in (("list", LIST_MAGIC), ("tensor", TENSOR_MAGIC)):
        at = params.find(magic.to_bytes(8, "little"))
        if at >= 0:
            spoilt = params[:at] + bytes([params[at] ^ 1]) + params[at + 1:]
            yield f"the magic of the {what} is flipped", spoilt


def without_function(objects, archive, folder):
    """The library linked again, with one function that nobody outside can see."""
    hidden = archive.graph.functions()[0]
    script = folder / "hidden.map"
    script.write_text(f"{{ global: *; local: {hidden}; }};\n")
    return link(objects, folder / "hidden.so", f"-Wl,--version-script={script}", "-Wl,-Bsymbolic")


def spoil(graph, change):
    document = json.loads(graph)
    before = copy.deepcopy(document)
    change(document, next(node for node in document["nodes"] if node["op"] == "tvm_op"))
    demand(document != before, "nothing was spoilt")
    return json.dumps(document).encode()


def number(_, node):
    node["attrs"]["num_inputs"] = int(node["attrs"]["num_inputs"])


def unflattened(_, node):
    del node["attrs"]["flatten_data"]


def extra_list(document, _):
    document["attrs"]["of_nobody"] = ["list_str", ["x"] * len(document["attrs"]["shape"][1])]
