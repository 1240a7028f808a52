//! Reads a graph from JSON.
//!
//! Graphs that all clients of the GraphExecutor reject are errors; parts that only some accept, and the
//! [`Graph`] does not represent, are warnings.

use std::ops::Range;

use irc_diag::{Diagnostic, Sink, Source, clip};
use irc_json::{At, Node, Object, Reader, Value};

use super::{Call, Edge, Entry, Graph};
use crate::json::{parse, reader, report};
use crate::types::{DataType, Type};

/// The keys of a graph.
const KEYS: [&str; 5] = ["nodes", "arg_nodes", "heads", "attrs", "node_row_ptr"];

/// The key at which TVM's readers stop, so that it must be the last.
const LAST_KEY: &str = "metadata";

/// Reads a graph; `None` after an error. [`super::check`] validates
/// it further.
pub fn read(source: &Source, sink: &mut Sink) -> Option<Graph> {
    let before = sink.error_count();
    let tree = parse(source, sink)?;
    let graph = graph(&mut reader(sink), source.text(), &tree);
    (sink.error_count() == before).then_some(graph).flatten()
}

fn graph(r: &mut Reader<'_>, text: &str, tree: &Node<'_>) -> Option<Graph> {
    let object = r.object(tree, &At::ROOT)?;
    known_keys(r, &object);
    strings(r, text, tree, &At::ROOT);
    let [nodes, arg_nodes, heads, attrs, row_ptr] = KEYS.map(|key| r.required(&object, key));
    let at = |key| object.at.key(key);
    let nodes = r.list(nodes?, &at("nodes"), node);
    let index = |r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>| {
        r.integer::<usize>(value, at, "the index of a node")
    };
    let inputs = r.list(arg_nodes?, &at("arg_nodes"), index);
    let outputs = r.list(heads?, &at("heads"), edge);
    let entries = entries(r, attrs?, &at("attrs"));
    let row_ptr_at = at("node_row_ptr");
    let rows = r.list(row_ptr?, &row_ptr_at, index);
    let graph = Graph { nodes: nodes?, inputs: inputs?, outputs: outputs?, entries: entries? };
    check_rows(r, &graph, &rows?, row_ptr?, &row_ptr_at);
    Some(graph)
}

fn known_keys(r: &mut Reader<'_>, object: &Object<'_, '_, '_>) {
    let count = object.members.len();
    let members = object.members.iter().enumerate();
    for (index, member) in members.filter(|(_, member)| !KEYS.contains(&&*member.key)) {
        let is_last = index + 1 == count;
        let key = &*member.key;
        let diagnostic = match key == LAST_KEY {
            true if is_last => Diagnostic::warning("mlf-subset-key", format!("`{key}` is ignored")),
            true => {
                let message = format!("clients stop reading at `{key}`, which is not last");
                Diagnostic::error("mlf-graph-key", message)
            }
            false => {
                let message = format!("clients reject the unknown key `{}`", clip(key));
                Diagnostic::error("mlf-graph-key", message)
            }
        };
        r.report(diagnostic, member.key_span(), object.at, "");
    }
}

/// Clients do not support `\u` escapes.
fn strings(r: &mut Reader<'_>, text: &str, node: &Node<'_>, at: &At<'_>) {
    match &node.value {
        Value::String(_) => escape(r, text, node.span(), at),
        Value::Array(elements) => {
            let elements = elements.iter().enumerate();
            elements.for_each(|(index, element)| strings(r, text, element, &at.index(index)));
        }
        Value::Object(members) => {
            for member in members {
                escape(r, text, member.key_span(), at);
                strings(r, text, &member.value, &at.key(&member.key));
            }
        }
        _ => {}
    }
}

fn escape(r: &mut Reader<'_>, text: &str, span: Range<usize>, at: &At<'_>) {
    let mut bytes = text.get(span.clone()).unwrap_or_default().bytes();
    while bytes.any(|byte| byte == b'\\') {
        if bytes.next() == Some(b'u') {
            let diagnostic = Diagnostic::error("mlf-graph-escape", "clients reject `\\u` escapes");
            return r.report(diagnostic, span, at, "");
        }
    }
}

fn node(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<super::Node> {
    let object = r.object(value, at)?;
    for member in object.members.iter().filter(|member| !is_node_key(&member.key)) {
        let message = format!("clients reject the unknown key `{}` of a node", clip(&member.key));
        let diagnostic = Diagnostic::error("mlf-graph-key", message);
        r.report(diagnostic, member.key_span(), at, "");
    }
    let [op, name, inputs] = ["op", "name", "inputs"].map(|key| r.required(&object, key));
    let name = name.and_then(|name| r.string(name, &at.key("name")));
    let inputs = inputs.and_then(|inputs| r.list(inputs, &at.key("inputs"), edge));
    let call = match r.string(op?, &at.key("op"))? {
        "null" => input(r, &object, inputs?),
        "tvm_op" => Some(call(r, &object, inputs?)?),
        other => {
            let message = format!("unknown kind of node `{}`", clip(other));
            let diagnostic = Diagnostic::error("mlf-graph-op", message);
            report(r, diagnostic.help("expected `null` or `tvm_op`"), op?, &at.key("op"));
            return None;
        }
    };
    Some(super::Node { name: name?.into(), call })
}

fn is_node_key(key: &str) -> bool {
    ["op", "name", "inputs", "attrs", "control_deps"].contains(&key)
}

/// Checks that an input has no call.
fn input(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, inputs: Vec<Edge>) -> Option<Call> {
    if !inputs.is_empty() {
        let diagnostic = Diagnostic::error("mlf-graph-op", "an input has inputs itself");
        r.report(diagnostic, object.key_span("inputs"), object.at, "");
    }
    None
}

fn call(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, inputs: Vec<Edge>) -> Option<Call> {
    let place = object.at.key("attrs");
    let attrs = r.required(object, "attrs")?;
    let attrs = r.object(attrs, &place)?;
    let [function, num_inputs, num_outputs, flatten] =
        ["func_name", "num_inputs", "num_outputs", "flatten_data"].map(|key| {
            let value = r.required(&attrs, key)?;
            r.string(value, &place.key(key))
        });
    let mut others = vec![];
    for (key, value) in attrs.entries().filter(|(key, _)| !is_call_key(key)) {
        others.push(r.string(value, &place.key(key)).map(|text| (key.to_owned(), text.to_owned())));
    }
    let mut number = |key: &str, text: Option<&str>| {
        let number = text?.parse::<usize>().ok();
        if number.is_none() {
            let message = format!("`{}` is not a number", clip(text.unwrap_or_default()));
            let diagnostic = Diagnostic::error("mlf-graph-count", message);
            report(r, diagnostic, attrs.get(key)?, &place.key(key));
        }
        number
    };
    let num_inputs = number("num_inputs", num_inputs);
    let outputs = number("num_outputs", num_outputs);
    let flatten = number("flatten_data", flatten);
    if num_inputs? != inputs.len() {
        let message = format!("{} inputs, but `num_inputs` is {}", inputs.len(), num_inputs?);
        let diagnostic = Diagnostic::error("mlf-graph-count", message);
        report(r, diagnostic, attrs.get("num_inputs")?, &place.key("num_inputs"));
    }
    Some(Call {
        function: function?.into(),
        inputs,
        outputs: outputs?,
        flatten: flatten? != 0,
        attributes: others.into_iter().collect::<Option<_>>()?,
    })
}

fn is_call_key(key: &str) -> bool {
    ["func_name", "num_inputs", "num_outputs", "flatten_data"].contains(&key)
}

/// `[node, output]` or `[node, output, version]`.
fn edge(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Edge> {
    let words = r.list(value, at, |r, value, at| r.integer::<usize>(value, at, "an index"))?;
    match words[..] {
        [node, output] | [node, output, _] => Some(Edge { node, output }),
        _ => {
            r.wrong_type("an array of 2 or 3 indices", value, at);
            None
        }
    }
}

fn entries(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Vec<Entry>> {
    let object = r.object(value, at)?;
    for (key, value) in object.entries() {
        extra(r, key, value, &at.key(key));
    }
    let dtypes = r.required(&object, "dltype");
    let dtypes = typed(r, dtypes, "list_str", &at.key("dltype"), dtype);
    let storages = r.required(&object, "storage_id");
    let storages = typed(r, storages, "list_int", &at.key("storage_id"), integer);
    let shapes = r.required(&object, "shape");
    let shapes =
        typed(r, shapes, "list_shape", &at.key("shape"), |r, value, at| r.list(value, at, integer));
    let has_devices = object.get("device_index");
    let devices = typed(r, has_devices, "list_int", &at.key("device_index"), integer);
    let (dtypes, storages, shapes) = (dtypes?, storages?, shapes?);
    let devices = match has_devices {
        Some(_) => devices?.into_iter().map(Some).collect(),
        None => vec![None; dtypes.len()],
    };
    let lengths = [dtypes.len(), storages.len(), shapes.len(), devices.len()];
    if lengths.iter().any(|length| *length != lengths[0]) {
        let message = format!(
            "lists of entries differ in length: {} types, {} storages, {} shapes, {} devices",
            lengths[0], lengths[1], lengths[2], lengths[3]
        );
        r.report(Diagnostic::error("mlf-graph-entries", message), value.open(), at, "");
        return None;
    }
    let types = dtypes.into_iter().zip(shapes).map(|(dtype, shape)| Type { dtype, shape });
    let entry = |((ty, storage), device)| Entry { ty, storage, device };
    Some(types.zip(storages).zip(devices).map(entry).collect())
}

/// Lists that are not represented: clients skip those of integers, and reject others.
fn extra(r: &mut Reader<'_>, key: &str, value: &Node<'_>, at: &At<'_>) {
    if ["dltype", "storage_id", "shape", "device_index"].contains(&key) {
        return;
    }
    let kind = value.elements().and_then(|elements| elements.first()?.text()).unwrap_or_default();
    let diagnostic = match (key, kind) {
        ("storage_scope", _) => {
            let message = "`storage_scope` is ignored; clients before TVM 0.9 reject it";
            Diagnostic::warning("mlf-subset-key", message)
        }
        (_, "list_int" | "size_t") => {
            let message = format!("list `{}` is ignored; TVM's C runtime fails on it", clip(key));
            Diagnostic::warning("mlf-subset-key", message)
        }
        _ => Diagnostic::error("mlf-graph-key", format!("clients reject the list `{}`", clip(key))),
    };
    r.report(diagnostic, value.open(), at, "");
}

/// `[kind, [element, …]]`.
fn typed<'t, T>(
    r: &mut Reader<'_>,
    value: Option<&Node<'t>>,
    kind: &str,
    at: &At<'_>,
    element: impl FnMut(&mut Reader<'_>, &Node<'t>, &At<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let value = value?;
    let expected = format!("[\"{kind}\", […]]");
    let [name, list] = r.array(value, at)? else {
        r.wrong_type(&expected, value, at);
        return None;
    };
    if r.string(name, &at.index(0))? != kind {
        r.wrong_type(&format!("\"{kind}\""), name, &at.index(0));
        return None;
    }
    r.list(list, &at.index(1), element)
}

fn integer(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<i64> {
    r.integer(value, at, "an integer")
}

fn dtype(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<DataType> {
    match r.string(value, at)?.parse() {
        Ok(dtype) => Some(dtype),
        Err(message) => {
            report(r, Diagnostic::error("mlf-graph-dtype", message), value, at);
            None
        }
    }
}

/// Checks `node_row_ptr`, which states the first entry of each node, and the number of entries.
fn check_rows(r: &mut Reader<'_>, graph: &Graph, rows: &[usize], value: &Node<'_>, at: &At<'_>) {
    let expected = graph.first_entries();
    if rows == expected {
        return;
    }
    let first = expected.iter().zip(rows).position(|(expected, row)| expected != row);
    let (index, message) = match first {
        Some(index) => {
            let (expected, found) = (expected[index], rows[index]);
            (
                index,
                format!(
                    "expected entry {expected}, the number of entries of earlier nodes, found {found}"
                ),
            )
        }
        None => {
            let message = format!("expected {} numbers, found {}", expected.len(), rows.len());
            (0, message)
        }
    };
    let diagnostic = Diagnostic::error("mlf-graph-rows", message);
    let place = value.elements().and_then(|elements| elements.get(index)).unwrap_or(value);
    report(r, diagnostic, place, &at.index(index));
}
