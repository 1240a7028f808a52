"""What the graph and the metadata of an archive must say, found out without irc."""
from archive import Failure, demand

GRAPH_KEYS = {"nodes", "arg_nodes", "heads", "attrs", "node_row_ptr"}
LISTS = {"dltype": "list_str", "storage_id": "list_int", "shape": "list_shape",
         "device_index": "list_int"}


def check_form(archive):
    """Raises where a client would reject or compute wrongly; gives notes of sizes that are not true."""
    check_graph(archive.graph.document)
    check_calls(archive.graph)
    check_params(archive)
    if archive.extension:
        archive.check_hashes()
    wrong = [f"{what} {stated}, not {true}" for what, stated, true in sizes(archive) if stated != true]
    # TVM's own are wrong in known ways.
    demand(not (wrong and archive.extension), "sizes are not true: " + "; ".join(wrong))
    return f"{len(wrong)} sizes of TVM are not true: {'; '.join(wrong[:3])}" if wrong else "sizes are true"


def check_graph(graph):
    demand(set(graph) == GRAPH_KEYS, f"keys of the graph are {sorted(graph)}")
    rows = [0]
    for index, node in enumerate(graph["nodes"]):
        attrs = node.get("attrs", {})
        demand(set(node) <= {"op", "name", "inputs", "attrs"}, f"node {index} has other keys")
        demand(all(isinstance(value, str) for value in attrs.values()), f"node {index}: no string")
        demand(all(each[0] < index for each in node["inputs"]), f"node {index} reads a later one")
        if node["op"] == "null":
            demand(not attrs and not node["inputs"], f"input {index} has inputs")
        else:
            counted = (attrs["num_inputs"], attrs["flatten_data"])
            demand(counted == (str(len(node["inputs"])), "0"), f"node {index} counts {counted}")
        rows.append(rows[-1] + int(attrs.get("num_outputs", 1)))
    demand(graph["node_row_ptr"] == rows, "node_row_ptr does not follow from the nodes")
    nulls = [index for index, node in enumerate(graph["nodes"]) if node["op"] == "null"]
    demand(sorted(graph["arg_nodes"]) == nulls, "arg_nodes are not the inputs")
    for name, (kind, values) in graph["attrs"].items():
        demand(LISTS.get(name) == kind, f"the list {name} is unknown, or no {kind}")
        demand(len(values) == rows[-1], f"the list {name} has {len(values)} of {rows[-1]} elements")


def check_calls(graph):
    """Runs the graph on storages that know what lies in them."""
    held = {graph.entries[entry].storage: entry for entry in graph.inputs.values()}
    demand(len(held) == len(graph.inputs), "two inputs lie in one storage")
    for call in graph.calls:
        for entry in call.reads:
            demand(held.get(graph.entries[entry].storage) == entry,
                   f"{call.function} reads entry {entry}, which is not there")
        reads = {graph.entries[entry].storage for entry in call.reads}
        for entry in call.writes:
            storage = graph.entries[entry].storage
            demand(storage not in reads, f"{call.function} writes what it reads, storage {storage}")
            held[storage] = entry
    # Inputs are read again by the next run, outputs by the caller.
    for entry in [*graph.inputs.values(), *graph.outputs]:
        demand(held[graph.entries[entry].storage] == entry, f"entry {entry} is gone when the run ends")


def check_params(archive):
    for name, tensor in archive.params.items():
        demand(name in archive.graph.inputs, f"parameter {name} is no input of the graph")
        entry = archive.graph.entries[archive.graph.inputs[name]]
        found, expected = (tensor.dtype, list(tensor.array.shape)), (entry.dtype, entry.shape)
        demand(found == expected, f"parameter {name} is {found}, the graph's {expected}")


def sizes(archive):
    """Each size as what, stated, true."""
    graph, memory = archive.graph, archive.module["memory"]
    functions = memory["functions"]
    if len(functions["main"]) != 1:
        raise Failure("sizes of several devices are not checked")
    bytes_of = lambda entries: sum(graph.entries[entry].bytes for entry in set(entries))
    of_params = [entry for name, entry in graph.inputs.items() if name in archive.params]
    of_io = [*(set(graph.inputs.values()) - set(of_params)), *graph.outputs]
    scratch = {}
    for index, entry in enumerate(graph.entries):
        if index not in {*of_params, *of_io}:
            scratch[entry.storage] = max(entry.bytes, scratch.get(entry.storage, 0))
    stated = {each["function_name"]: each["workspace"][0]["workspace_size_bytes"]
              for each in functions["operator_functions"] if each["workspace"]}
    missing = set(graph.functions()) - {each["function_name"] for each in functions["operator_functions"]}
    demand(not missing, f"the workspace of {sorted(missing)} is not stated")
    most = max((stated.get(name, 0) for name in graph.functions()), default=0)
    main = functions["main"][0]
    yield "constants", main["constants_size_bytes"], bytes_of(of_params)
    yield "inputs and outputs", main["io_size_bytes"], bytes_of(of_io)
    yield "workspace", main["workspace_size_bytes"], sum(scratch.values()) + most
    storages = graph.storages()
    for each in memory["sids"]:
        storage = each["storage_id"]
        yield f"storage {storage}", each["size_bytes"], storages.pop(storage, None)
    demand(not storages, f"storages {sorted(storages)} are not in the metadata")
