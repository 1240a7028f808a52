//! Structural checks of `common_ir` ops: names and values agree, and each op represents an item
//! of the format. The rules of the formats are checked on the module.
use super::{
    export::{self, defined, name_of},
    read::{op_list, op_texts},
    tensors,
    types::Types,
    values,
};
use irc_common_format::model::Graph;
use irc_mlir::{
    OperationLike, OperationRef, ValueLike, context_of,
    read::{attribute, body_ops, identity, op_name},
    walk_collect,
};
use std::collections::{BTreeMap, BTreeSet};

/// Checks one `common_ir` op.
///
/// # Errors
/// An invalid op.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    let mut types = Types::new(context_of(&op));
    match op_name(&op).as_str() {
        "common_ir.module" => verify_module(op),
        "common_ir.declare" => export::operator(&mut types, op).map(|_| ()),
        "common_ir.function" => {
            export::function_header(&mut types, op)?;
            verify_body(&mut types, op)
        }
        "common_ir.graph" => {
            export::graph_header(op)?;
            verify_body(&mut types, op)
        }
        "common_ir.initializer" => verify_initializer(&mut types, op),
        "common_ir.sparse_initializer" => verify_sparse(&mut types, op),
        "common_ir.node" => verify_node(&mut types, op),
        "common_ir.output" => verify_output(op),
        _ => Ok(()),
    }
}

fn verify_module(op: OperationRef<'_, '_>) -> Result<(), String> {
    export::header(op)?;
    let names: Vec<String> = body_ops(op).iter().map(op_name).collect();
    let known = ["common_ir.declare", "common_ir.function", "common_ir.graph"];
    if let Some(other) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("expected declarations, functions and a graph, found '{other}'"));
    }
    match names.iter().filter(|name| *name == "common_ir.graph").count() {
        0 | 1 => Ok(()),
        count => Err(format!("expected one graph at most, found {count}")),
    }
}

/// Checks that arguments have an entry each, names are unique, and uses refer to the values of their names.
fn verify_body<'c: 'a, 'a>(types: &mut Types<'c>, op: OperationRef<'c, 'a>) -> Result<(), String> {
    let (expected, found) = (export::arguments(op).len(), op_list(op, "inputs")?.len());
    if expected != found {
        return Err(format!("expected {expected} 'inputs', one for each argument, found {found}"));
    }
    for argument in export::arguments(op) {
        types.of_mlir(argument.r#type())?;
    }
    let (arguments, mut own) = (defined(op), BTreeMap::new());
    for (value, name) in arguments {
        define(&mut own, identity(value), name)?;
    }
    let inputs: BTreeSet<String> = own.keys().cloned().collect();
    let mut direct: BTreeSet<usize> = own.values().copied().collect();
    for inner in body_ops(op) {
        let is_constant = matches!(
            op_name(&inner).as_str(),
            "common_ir.initializer" | "common_ir.sparse_initializer"
        );
        for (value, name) in defined(inner) {
            direct.insert(identity(value));
            // A constant named like an input is its default.
            let is_default = is_constant && name.as_ref().is_some_and(|name| inputs.contains(name));
            if !is_default {
                define(&mut own, identity(value), name)?;
            }
        }
    }
    verify_uses(op, &own, &direct)
}

fn define(
    own: &mut BTreeMap<String, usize>,
    value: usize,
    name: Option<String>,
) -> Result<(), String> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(()) };
    match own.insert(name.clone(), value) {
        None => Ok(()),
        Some(_) => Err(format!("defines the name '{name}' twice")),
    }
}

/// In a graph and those nested in it, a name that the graph defines refers to the graph's value, unless a
/// nested graph defines it again.
fn verify_uses(
    op: OperationRef<'_, '_>,
    own: &BTreeMap<String, usize>,
    direct: &BTreeSet<usize>,
) -> Result<(), String> {
    let inside = walk_collect(op, |_| true);
    let within = inside.iter().skip(1).flat_map(|inner| defined(*inner));
    let nested: BTreeSet<usize> =
        within.map(|(value, _)| identity(value)).filter(|value| !direct.contains(value)).collect();
    for inner in inside {
        for index in 0..inner.operand_count() {
            let Ok(value) = inner.operand(index) else { continue };
            let Some(name) = name_of(value) else { continue };
            let meant = own.get(&name).copied().unwrap_or(identity(value));
            if meant != identity(value) && !nested.contains(&identity(value)) {
                return Err(format!("expected uses of its own '{name}', found one of another"));
            }
        }
    }
    Ok(())
}

fn verify_initializer<'c: 'a, 'a>(
    types: &mut Types<'c>,
    op: OperationRef<'c, 'a>,
) -> Result<(), String> {
    let value = attribute(&op, "value").ok_or("expected the 'value' of an initializer")?;
    let ty = op.result(0).map_err(|error| error.to_string())?.r#type();
    tensors::check(types, value, ty)
}

fn verify_sparse<'c: 'a, 'a>(
    types: &mut Types<'c>,
    op: OperationRef<'c, 'a>,
) -> Result<(), String> {
    let value = attribute(&op, "value").ok_or("expected the 'value' of an initializer")?;
    let sparse = tensors::sparse_from_attribute(types, value)?;
    let (expected, found) = (
        types.mlir(Some(&tensors::type_of_sparse(&sparse))),
        op.result(0).map_err(|error| error.to_string())?.r#type(),
    );
    if expected == found {
        return Ok(());
    }
    Err(format!("expected a result of type {expected}, found {found}"))
}

fn verify_node<'c: 'a, 'a>(types: &mut Types<'c>, op: OperationRef<'c, 'a>) -> Result<(), String> {
    let (expected, found) = (op.result_count(), op_texts(op, "outputs")?.len());
    if expected != found {
        return Err(format!("expected {expected} 'outputs', one for each result, found {found}"));
    }
    for index in 0..expected {
        let result = op.result(index).map_err(|error| error.to_string())?;
        types.of_mlir(result.r#type())?;
    }
    let inner = body_ops(op);
    if let Some(other) = inner.iter().map(op_name).find(|name| name != "common_ir.graph") {
        return Err(format!("expected graphs in a node, found '{other}'"));
    }
    let graphs = vec![Some(Graph::default()); inner.len()];
    export::node_of(types, op, graphs).map(|_| ())
}

fn verify_output(op: OperationRef<'_, '_>) -> Result<(), String> {
    let outputs = op_list(op, "outputs")?;
    if outputs.len() != op.operand_count() {
        let (expected, found) = (op.operand_count(), outputs.len());
        return Err(format!("expected {expected} 'outputs', one for each operand, found {found}"));
    }
    for (index, output) in outputs.into_iter().enumerate() {
        let value = op.operand(index).map_err(|error| error.to_string())?;
        let (expected, found) = (name_of(value), values::name_of(output));
        if expected != found {
            let shown =
                |name: Option<String>| name.map_or("none".into(), |name| format!("'{name}'"));
            let (expected, found) = (shown(expected), shown(found));
            return Err(format!("expected the name {expected} of output {index}, found {found}"));
        }
    }
    Ok(())
}
