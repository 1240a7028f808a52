//! Embeds modules of Common IR in ONNX files, and extracts them.
//!
//! An ONNX file with an embedded module of Common IR is marked by a property of the model, and
//! yields that module when it is read. Parts that ONNX cannot represent are stored either in additional
//! fields, which readers of ONNX skip, or in properties, which tools of ONNX preserve.

use std::collections::BTreeSet;

use irc_diag::{Diagnostic, Sink};

use crate::model::{
    Body, Dim, Entries, Graph, Module, Node, Opset, Path, ProducerVersion, Schema, Shape, Type,
    Value,
};

/// Version of Common IR in an embedded module; its presence marks the file.
const IR_VERSION: &str = "common_ir.ir_version";
const IMPORTS: &str = "common_ir.imported_libraries";
const ARG_COUNTS: &str = "common_ir.input_arg_count";
const CONTROL_INPUTS: &str = "common_ir.control_input";
const SHAPE: &str = "common_ir.shape";

/// The first IR version with types within functions, and properties everywhere.
const ONNX_IR_VERSION: i64 = 10;

/// The operators in files of Common IR's time are those of ONNX's first operator set.
const ONNX_OPSET: i64 = 1;

/// Converts a module of Common IR to ONNX; `with_fields` keeps parts that have additional fields.
pub(crate) fn to_onnx(mut module: Module, with_fields: bool, sink: &mut Sink) -> Module {
    if module.schema == Schema::Onnx {
        return module;
    }
    let own = module.qualified_name();
    module.schema = Schema::Onnx;
    let metadata = &mut module.metadata;
    let version = metadata.ir_version.replace(ONNX_IR_VERSION);
    let version = version.map(|version| version.to_string()).unwrap_or_default();
    metadata.properties.push((IR_VERSION.into(), version));
    if let Some(version) = &mut metadata.producer_version {
        *version = ProducerVersion::Text(version.text());
    }
    name_functions(&mut module, &own);
    let mut domains = BTreeSet::from([None]);
    module
        .visit_bodies_mut(&mut |body, at| body_to_onnx(body, at, with_fields, &mut domains, sink));
    let opset = |domain: Option<String>| Opset { domain, version: ONNX_OPSET };
    module.opsets = domains.into_iter().map(opset).collect();
    for function in &mut module.functions {
        function.opsets.clone_from(&module.opsets);
    }
    if !with_fields {
        lose_declarations(&mut module, sink);
        let imports = std::mem::take(&mut module.imports);
        put_list(&mut module.metadata.properties, IMPORTS, &imports, "\n");
    }
    module
}

/// ONNX has no declarations; a call of a declared operator would be undefined.
fn lose_declarations(module: &mut Module, sink: &mut Sink) {
    let declared: BTreeSet<String> =
        std::mem::take(&mut module.operators).into_iter().filter_map(|own| own.name).collect();
    let mut called = None;
    module.visit_bodies_mut(&mut |body, _| {
        let mut names = body.nodes.iter().map(|node| &node.op);
        called = called.take().or_else(|| names.find(|name| declared.contains(*name)).cloned());
    });
    match called {
        Some(name) => {
            let message = format!("ONNX cannot represent declarations, but nodes call '{name}'");
            let diagnostic =
                Diagnostic::error("cir-unwritable", message).path(Path::ROOT.to_string());
            sink.push(diagnostic.help("--common-ir-fields writes them in additional fields"));
        }
        None => {
            report_omitted(!declared.is_empty(), "declarations of operators", &Path::ROOT, sink)
        }
    }
}

/// Gives functions of the file, and their calls, a domain, which ONNX requires.
fn name_functions(module: &mut Module, own: &str) {
    let local = module.functions.iter().filter(|function| function.domain.is_none());
    let local: BTreeSet<String> = local.filter_map(|function| function.name.clone()).collect();
    for function in &mut module.functions {
        function.domain.get_or_insert_with(|| own.into());
    }
    module.visit_bodies_mut(&mut |body, _| {
        for node in body.nodes {
            if node.domain.is_none() && local.contains(&node.op) {
                node.domain = Some(own.into());
            }
        }
    });
}

fn body_to_onnx(
    body: Body<'_>,
    at: &Path<'_>,
    with_fields: bool,
    domains: &mut BTreeSet<Option<String>>,
    sink: &mut Sink,
) {
    let Body { nodes, values: [inputs, outputs, values] } = body;
    for (index, node) in nodes.iter_mut().enumerate() {
        domains.insert(node.domain.clone());
        spread(node);
        if with_fields {
            continue;
        }
        let at = at.index("node", index);
        report_omitted(!node.input_types.is_empty(), "types of a node's inputs", &at, sink);
        node.input_types.clear();
        for (name, ty) in node.outputs.iter().zip(std::mem::take(&mut node.output_types)) {
            values.push(Value { name: Some(name.clone()), ..ty });
        }
        let counts: Vec<String> = node.arg_counts.drain(..).map(|n| n.to_string()).collect();
        put_list(&mut node.properties, ARG_COUNTS, &counts, ",");
        let control = std::mem::take(&mut node.control_inputs);
        put_list(&mut node.properties, CONTROL_INPUTS, &control, "\n");
    }
    for value in inputs.iter_mut().chain(outputs).chain(values) {
        hide_shape(value, with_fields);
    }
}

/// Gives parameters without an argument an empty input, since ONNX counts by position.
fn spread(node: &mut Node) {
    if !node.arg_counts.contains(&0) || !counts_match(&node.arg_counts, node.inputs.len()) {
        return;
    }
    let mut rest = std::mem::take(&mut node.inputs).into_iter();
    for count in &node.arg_counts {
        match usize::try_from(*count).unwrap_or_default() {
            0 => node.inputs.push(String::new()),
            count => node.inputs.extend(rest.by_ref().take(count)),
        }
    }
    // ONNX omits trailing inputs instead.
    let used = node.inputs.iter().rposition(|input| !input.is_empty());
    node.inputs.truncate(used.map_or(0, |index| index + 1));
}

/// The reverse of [`spread`].
fn gather(node: &mut Node) {
    let named = node.inputs.iter().filter(|input| !input.is_empty()).count();
    if node.arg_counts.contains(&0) && counts_match(&node.arg_counts, named) {
        node.inputs.retain(|input| !input.is_empty());
    }
}

/// Whether parameters take as many inputs as there are.
fn counts_match(counts: &[i32], inputs: usize) -> bool {
    let sum: Option<usize> = counts.iter().map(|count| usize::try_from(*count).ok()).sum();
    sum == Some(inputs)
}

/// Moves a shape that ONNX cannot represent to a property.
fn hide_shape(value: &mut Value, with_fields: bool) {
    if let Some(Type::Tensor(tensor) | Type::Sparse(tensor)) = &mut value.ty
        && value.shape.is_none()
    {
        let is_wild = |dim: &Dim| matches!(dim, Dim::Wildcard(_));
        value.shape = tensor.shape.take_if(|shape| shape.dims.iter().any(is_wild));
    }
    if let Some(shape) = value.shape.take_if(|_| !with_fields) {
        value.properties.push((SHAPE.into(), shape.to_string()));
    }
}

fn show_shape(value: &mut Value) {
    let Some(text) = take(&mut value.properties, SHAPE) else { return };
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    let dim = |text: &str| match text.parse() {
        Ok(size) => Dim::Size(size),
        Err(_) if text == "?" => Dim::Unknown,
        Err(_) => Dim::from(text),
    };
    let dims = inner.split(',').filter(|text| !text.is_empty()).map(dim);
    let shape = Some(Shape { dims: dims.collect(), denotations: vec![] });
    match &mut value.ty {
        Some(Type::Tensor(tensor) | Type::Sparse(tensor)) if tensor.shape.is_none() => {
            tensor.shape = shape;
        }
        _ => value.shape = shape,
    }
}

/// Extracts the module of Common IR embedded in a model of ONNX; other models are unchanged.
pub(crate) fn from_onnx(mut module: Module) -> Module {
    let Some(version) = take(&mut module.metadata.properties, IR_VERSION) else { return module };
    module.schema = Schema::CommonIr;
    module.metadata.ir_version = version.parse().ok();
    let version = &mut module.metadata.producer_version;
    if let Some(number) = version.as_ref().and_then(ProducerVersion::number) {
        *version = Some(ProducerVersion::Number(number));
    }
    module.imports.extend(take_list(&mut module.metadata.properties, IMPORTS, "\n"));
    module.opsets.clear();
    let own = module.qualified_name();
    forget_names(&mut module, &own);
    module.visit_bodies_mut(&mut |body, _| body_from_onnx(body));
    module
}

/// Whether the properties of a model mark an embedded module.
pub(crate) fn is_carried(properties: &Entries) -> bool {
    properties.iter().any(|entry| entry.0 == IR_VERSION)
}

/// Removes the domain of the file from its functions and their calls.
fn forget_names(module: &mut Module, own: &str) {
    for function in &mut module.functions {
        function.domain = function.domain.take().filter(|domain| domain != own);
        function.opsets.clear();
    }
    module.visit_bodies_mut(&mut |body, _| {
        for node in body.nodes {
            node.domain = node.domain.take().filter(|domain| domain != own);
        }
    });
}

fn body_from_onnx(body: Body<'_>) {
    let Body { nodes, values: [inputs, outputs, values] } = body;
    inputs.iter_mut().chain(outputs).chain(values.iter_mut()).for_each(show_shape);
    let known: std::collections::BTreeMap<String, Value> =
        values.drain(..).filter_map(|value| Some((value.name.clone()?, value))).collect();
    for node in nodes {
        let counts = take_list(&mut node.properties, ARG_COUNTS, ",");
        node.arg_counts.extend(counts.iter().filter_map(|count| count.parse::<i32>().ok()));
        node.control_inputs.extend(take_list(&mut node.properties, CONTROL_INPUTS, "\n"));
        gather(node);
        if node.output_types.is_empty() {
            node.output_types = types_of(&node.outputs, &known);
        }
    }
}

/// Types of the values with these names, up to the last that is known.
fn types_of(names: &[String], known: &std::collections::BTreeMap<String, Value>) -> Vec<Value> {
    let last = names.iter().rposition(|name| known.contains_key(name));
    let named = names.iter().take(last.map_or(0, |index| index + 1));
    let ty = |name: &String| Value { name: None, ..known.get(name).cloned().unwrap_or_default() };
    named.map(ty).collect()
}

/// Converts a module of ONNX to Common IR; parts that cannot be represented are reported, or left for
/// the writer to reject.
pub(crate) fn to_common_ir(mut module: Module, sink: &mut Sink) -> Module {
    if module.schema == Schema::CommonIr {
        return module;
    }
    module.schema = Schema::CommonIr;
    module.metadata.ir_version = Some(1);
    let has_newer = module.opsets.iter().any(|opset| opset.version != ONNX_OPSET);
    report_omitted(has_newer, "versions of operator sets", &Path::ROOT.index("opset", 0), sink);
    module.opsets.clear();
    let is_text = module.metadata.producer_version.as_ref();
    let is_text = is_text.is_some_and(|version| version.number().is_none());
    report_omitted(is_text, "the producer's version, which is not a number,", &Path::ROOT, sink);
    if let Some(Graph { doc, .. }) = &mut module.graph {
        let doc = doc.take();
        if module.metadata.doc.is_none() {
            module.metadata.doc = doc;
        } else {
            report_omitted(
                doc.is_some(),
                "documentation of the graph beside the model's",
                &Path::GRAPH,
                sink,
            );
        }
    }
    module.visit_bodies_mut(&mut |body, _| {
        // ONNX Runtime accepts any order, Common IR only this one.
        crate::order::sort(body.nodes);
        for node in body.nodes.iter_mut().filter(|node| node.arg_counts.is_empty()) {
            if node.inputs.iter().any(String::is_empty) {
                node.arg_counts =
                    node.inputs.iter().map(|name| i32::from(!name.is_empty())).collect();
                gather(node);
            }
        }
        body_from_onnx(body);
    });
    module
}

/// Reports that a part is omitted, if it is present.
pub(crate) fn report_omitted(is_there: bool, what: &str, at: &Path<'_>, sink: &mut Sink) {
    if is_there {
        let message = format!("{what} cannot be represented in this format and are omitted");
        sink.push(Diagnostic::warning("cir-lost", message).path(at.to_string()));
    }
}

fn put_list(properties: &mut Entries, key: &str, list: &[String], separator: &str) {
    if !list.is_empty() {
        properties.push((key.into(), list.join(separator)));
    }
}

fn take(properties: &mut Entries, key: &str) -> Option<String> {
    let index = properties.iter().position(|entry| entry.0 == key)?;
    Some(properties.remove(index).1)
}

fn take_list(properties: &mut Entries, key: &str, separator: &str) -> Vec<String> {
    let text = take(properties, key);
    text.map(|text| text.split(separator).map(String::from).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_inputs_are_counted_or_empty() {
        let rows: [(&[i32], &[&str], &[&str]); 4] = [
            (&[1, 0, 1], &["a", "b"], &["a", "", "b"]),
            (&[1, 0], &["a"], &["a"]),
            (&[2, 1], &["a", "b", "c"], &["a", "b", "c"]),
            (&[0, 0, 2], &["a", "b"], &["", "", "a", "b"]),
        ];
        for (counts, inputs, spreaded) in rows {
            let before =
                Node { arg_counts: counts.to_vec(), ..Node::new("F", inputs.to_vec(), ["y"]) };
            let mut node = before.clone();
            spread(&mut node);
            assert_eq!(node.inputs, spreaded);
            gather(&mut node);
            assert_eq!(node, before);
        }
    }
}
