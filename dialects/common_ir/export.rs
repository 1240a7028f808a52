//! Exports a module of MLIR to a module of the format.
use super::{
    attributes,
    read::{
        self, Fields, integer, numbers, op_entries, op_list, op_number, op_opsets, op_text,
        op_texts,
    },
    tensors,
    types::Types,
    values,
};
use irc_common_format::model::{
    Function, Graph, Metadata, Module, Node, Operator, Path, ProducerVersion, Quantization, Schema,
    Signature, SparseTensor, Tensor, Type, Value,
};
use irc_mlir::{
    Attribute, OperationLike, OperationRef, PassError, ValueLike, context_of,
    read::{
        array_element, attribute, body_ops, defining_op, op_name, owner_of_argument, result_number,
    },
    string_value,
};
use std::collections::{BTreeMap, HashMap};

/// A module of the format and the ops it was exported from.
pub struct Exported<'c, 'a> {
    /// The module.
    pub module: Module,
    root: OperationRef<'c, 'a>,
    places: BTreeMap<String, OperationRef<'c, 'a>>,
}

impl<'c, 'a> Exported<'c, 'a> {
    /// The op of an item of the module, given by its path: the closest op that contains the item.
    pub fn op_of(&self, path: &str) -> OperationRef<'c, 'a> {
        let ends = path.char_indices().filter(|(_, c)| *c == '.').map(|(at, _)| at);
        let ends: Vec<usize> = ends.chain([path.len()]).collect();
        let known = ends.into_iter().rev().find_map(|end| self.places.get(&path[..end]));
        known.copied().unwrap_or(self.root)
    }
}

/// The single `common_ir.module` in a builtin module.
///
/// # Errors
/// After a diagnostic, if there is none or more than one.
pub fn module_op<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
) -> Result<OperationRef<'c, 'a>, PassError> {
    let ops = body_ops(module);
    let mut found = ops.into_iter().filter(|op| op_name(op) == "common_ir.module");
    match (found.next(), found.next()) {
        (Some(op), None) => Ok(op),
        (None, _) => Err(PassError::at(&module, "expected a common_ir.module, found none")),
        (Some(_), Some(other)) => {
            Err(PassError::at(&other, "expected one common_ir.module, found another"))
        }
    }
}

/// Exports a `common_ir.module`.
///
/// # Errors
/// After a diagnostic at each invalid op.
pub fn export<'c: 'a, 'a>(root: OperationRef<'c, 'a>) -> Result<Exported<'c, 'a>, PassError> {
    let mut exporter = Exporter {
        types: Types::new(context_of(&root)),
        places: BTreeMap::new(),
        scopes: vec![],
        failed: None,
    };
    let module = exporter.module(root);
    match (exporter.failed, module) {
        (None, Some(module)) => Ok(Exported { module, root, places: exporter.places }),
        (failed, _) => Err(failed.unwrap_or_else(|| PassError::at(&root, "is not a module"))),
    }
}

/// The name of a value, from the op that defines it.
pub(super) fn name_of(value: irc_mlir::Value<'_, '_>) -> Option<String> {
    if let Some((owner, index)) = owner_of_argument(value) {
        return values::name_of(array_element(attribute(&owner, "inputs")?, index)?);
    }
    let owner = defining_op(value)?;
    match op_name(&owner).as_str() {
        "common_ir.node" => {
            let outputs = attribute(&owner, "outputs")?;
            string_value(array_element(outputs, result_number(value)?)?)
        }
        "common_ir.sparse_initializer" => sparse_name(owner),
        _ => op_text(owner, "value_name").ok().flatten(),
    }
}

/// The values that an op defines for its siblings or its body, with their names.
pub(super) fn defined<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
) -> Vec<(irc_mlir::Value<'c, 'a>, Option<String>)> {
    let values: Vec<irc_mlir::Value<'c, 'a>> = match op_name(&op).as_str() {
        "common_ir.graph" | "common_ir.function" => arguments(op),
        _ => {
            let results = (0..op.result_count()).filter_map(|index| op.result(index).ok());
            results.map(|value| irc_mlir::rebind(value.into())).collect()
        }
    };
    values.into_iter().map(|value| (value, name_of(value))).collect()
}

fn sparse_name(op: OperationRef<'_, '_>) -> Option<String> {
    let value = attribute(&op, "value")?;
    let fields = Fields::of(value, "a sparse tensor", &["dims", "indices", "values"]).ok()?;
    let values = crate::attributes::entries(fields.get("values")?).ok()?;
    let name = values.into_iter().find(|(name, _)| name == "name")?.1;
    string_value(name)
}

/// The arguments of the single block of an op.
pub(super) fn arguments<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Vec<irc_mlir::Value<'c, 'a>> {
    use irc_mlir::{BlockLike, RegionLike};
    let block = op.region(0).ok().and_then(|region| region.first_block());
    let Some(block) = block else { return vec![] };
    let argument = |index| Some(irc_mlir::rebind(block.argument(index).ok()?.into()));
    (0..block.argument_count()).filter_map(argument).collect()
}

/// The types of the values of a graph or function, by name.
struct Scope(HashMap<String, Option<Type>>);

#[derive(Default)]
struct Body {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    values: Vec<Value>,
    initializers: Vec<Tensor>,
    sparse: Vec<SparseTensor>,
    nodes: Vec<Node>,
}

struct Exporter<'c, 'a> {
    types: Types<'c>,
    places: BTreeMap<String, OperationRef<'c, 'a>>,
    scopes: Vec<Scope>,
    failed: Option<PassError>,
}

impl<'c: 'a, 'a> Exporter<'c, 'a> {
    /// Reports errors of an op, and continues.
    fn checked<T>(&mut self, op: OperationRef<'c, 'a>, found: Result<T, String>) -> Option<T> {
        found.map_err(|message| self.failed = Some(PassError::at(&op, message))).ok()
    }

    fn module(&mut self, root: OperationRef<'c, 'a>) -> Option<Module> {
        let module = header(root);
        let mut module = self.checked(root, module)?;
        for op in body_ops(root) {
            match op_name(&op).as_str() {
                "common_ir.declare" => {
                    let index = module.operators.len();
                    self.places.insert(Path::ROOT.index("operator", index).to_string(), op);
                    let operator = operator(&mut self.types, op);
                    module.operators.extend(self.checked(op, operator));
                }
                "common_ir.function" => {
                    let index = module.functions.len();
                    let function = self.function(op, &Path::ROOT.index("function", index));
                    module.functions.push(function?);
                }
                "common_ir.graph" if module.graph.is_none() => {
                    module.graph = Some(self.graph(op, &Path::GRAPH)?);
                }
                _ => {
                    let message = "expected declarations, functions and one graph in a module";
                    self.checked::<()>(op, Err(message.to_owned()));
                }
            }
        }
        Some(module)
    }

    fn function(&mut self, op: OperationRef<'c, 'a>, path: &Path<'_>) -> Option<Function> {
        let Body { inputs, outputs, values, nodes, .. } = self.body(op, path)?;
        let about = function_header(&mut self.types, op);
        let about = self.checked(op, about)?;
        Some(Function { inputs, outputs, values, nodes, ..about })
    }

    fn graph(&mut self, op: OperationRef<'c, 'a>, path: &Path<'_>) -> Option<Graph> {
        let Body { inputs, outputs, values, initializers, sparse, nodes } = self.body(op, path)?;
        let about = graph_header(op);
        let about = self.checked(op, about)?;
        let sparse_initializers = sparse;
        Some(Graph { inputs, outputs, values, initializers, sparse_initializers, nodes, ..about })
    }

    fn body(&mut self, op: OperationRef<'c, 'a>, path: &Path<'_>) -> Option<Body> {
        self.places.insert(path.to_string(), op);
        let (scope, ops) = (self.scope(op), body_ops(op));
        let scope = self.checked(op, scope)?;
        self.scopes.push(scope);
        let mut body = Body::default();
        let inputs = self.inputs(op);
        body.inputs = self.checked(op, inputs).unwrap_or_default();
        let values = self.scoped(op, "values");
        body.values = self.checked(op, values).unwrap_or_default();
        for inner in ops {
            match op_name(&inner).as_str() {
                "common_ir.initializer" => {
                    let at = path.index("initializer", body.initializers.len());
                    self.places.insert(at.to_string(), inner);
                    let tensor = self.initializer(inner);
                    body.initializers.extend(self.checked(inner, tensor));
                }
                "common_ir.sparse_initializer" => {
                    let at = path.index("sparse_initializer", body.sparse.len());
                    self.places.insert(at.to_string(), inner);
                    let sparse = self.sparse(inner);
                    body.sparse.extend(self.checked(inner, sparse));
                }
                "common_ir.node" => {
                    let at = path.index("node", body.nodes.len());
                    self.places.insert(at.to_string(), inner);
                    // An invalid op keeps its index, so that later ones are not shifted.
                    body.nodes.push(self.node(inner, &at).unwrap_or_default());
                }
                "common_ir.output" => {
                    let outputs = self.scoped(inner, "outputs");
                    body.outputs = self.checked(inner, outputs).unwrap_or_default();
                }
                "common_ir.undefined" => {}
                other => {
                    let message = format!("expected ops of a graph, found '{other}'");
                    self.checked::<()>(inner, Err(message));
                }
            }
        }
        self.scopes.pop();
        Some(body)
    }

    fn scope(&mut self, op: OperationRef<'c, 'a>) -> Result<Scope, String> {
        let mut types = HashMap::new();
        let inner: Vec<_> = body_ops(op)
            .into_iter()
            .filter(|op| !matches!(op_name(op).as_str(), "common_ir.undefined" | "common_ir.graph"))
            .collect();
        // Constants precede nodes, wherever they are in the body.
        let is_node = |op: &OperationRef<'_, '_>| op_name(op) == "common_ir.node";
        let (nodes, constants): (Vec<_>, Vec<_>) = inner.into_iter().partition(is_node);
        for op in [op].into_iter().chain(constants).chain(nodes) {
            for (value, name) in defined(op) {
                let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
                let ty = self.types.of_mlir(value.r#type())?;
                types.entry(name).or_insert(ty);
            }
        }
        Ok(Scope(types))
    }

    fn known(&self, name: Option<String>) -> Option<Type> {
        let name = name.filter(|name| !name.is_empty())?;
        self.scopes.iter().rev().find_map(|Scope(types)| types.get(&name)).cloned().flatten()
    }

    fn inputs(&mut self, op: OperationRef<'c, 'a>) -> Result<Vec<Value>, String> {
        let (inputs, arguments) = (op_list(op, "inputs")?, arguments(op));
        if inputs.len() != arguments.len() {
            let (expected, found) = (arguments.len(), inputs.len());
            return Err(format!(
                "expected {expected} 'inputs', one for each argument, found {found}"
            ));
        }
        let input = |(input, argument): (Attribute<'c>, irc_mlir::Value<'c, 'a>)| {
            let known = self.types.of_mlir(argument.r#type())?;
            values::from_attribute(&mut self.types, input, known.as_ref())
        };
        inputs.into_iter().zip(arguments).map(input).collect()
    }

    /// Descriptions of values other than SSA values.
    fn scoped(&mut self, op: OperationRef<'c, 'a>, name: &str) -> Result<Vec<Value>, String> {
        let value = |attribute| {
            let known = self.known(values::name_of(attribute));
            values::from_attribute(&mut self.types, attribute, known.as_ref())
        };
        op_list(op, name)?.into_iter().map(value).collect()
    }

    fn initializer(&mut self, op: OperationRef<'c, 'a>) -> Result<Tensor, String> {
        let value = attribute(&op, "value").ok_or("expected the 'value' of an initializer")?;
        let ty = op.result(0).map_err(|error| error.to_string())?.r#type();
        let tensor = tensors::from_attribute(&mut self.types, value, Some(ty))?;
        Ok(Tensor { name: op_text(op, "value_name")?, ..tensor })
    }

    fn sparse(&mut self, op: OperationRef<'c, 'a>) -> Result<SparseTensor, String> {
        let value = attribute(&op, "value").ok_or("expected the 'value' of an initializer")?;
        tensors::sparse_from_attribute(&mut self.types, value)
    }

    fn node(&mut self, op: OperationRef<'c, 'a>, path: &Path<'_>) -> Option<Node> {
        let graphs = self.node_graphs(op, path)?;
        let node = node_of(&mut self.types, op, graphs);
        self.checked(op, node)
    }

    /// The graphs in a node; their contents are located by the attributes that hold them.
    fn node_graphs(
        &mut self,
        op: OperationRef<'c, 'a>,
        path: &Path<'_>,
    ) -> Option<Vec<Option<Graph>>> {
        let inner = body_ops(op);
        let places = graph_places(op, inner.len());
        let graph = |(inner, (name, field, index)): (_, (String, String, Option<usize>))| {
            let at = path.key("attribute", &name);
            let at = match index {
                Some(index) => at.index(&field, index),
                None => at.field(&field),
            };
            Some(Some(self.graph(inner, &at)?))
        };
        inner.into_iter().zip(places).map(graph).collect()
    }
}

/// Exports a `common_ir.node` with these graphs.
///
/// # Errors
/// An invalid operand or attribute.
pub(super) fn node_of<'c: 'a, 'a>(
    types: &mut Types<'c>,
    op: OperationRef<'c, 'a>,
    mut graphs: Vec<Option<Graph>>,
) -> Result<Node, String> {
    let attributes = literals(types, op, &mut graphs)?;
    if graphs.iter().any(Option::is_some) {
        return Err("expected an attribute for each graph in the node".to_owned());
    }
    let arg_counts = attribute(&op, "arg_counts").map(|counts| numbers(counts, "arg_counts"));
    let arg_counts = arg_counts.transpose()?.unwrap_or_default().into_iter();
    let arg_counts = arg_counts.map(|count| {
        i32::try_from(count).map_err(|_| format!("expected a count of 32 bits, found {count}"))
    });
    Ok(Node {
        name: op_text(op, "node_name")?,
        domain: op_text(op, "domain")?,
        op: op_text(op, "op_type")?.unwrap_or_default(),
        overload: op_text(op, "overload")?,
        inputs: operands(op)?,
        outputs: op_texts(op, "outputs")?,
        attributes,
        arg_counts: arg_counts.collect::<Result<_, _>>()?,
        control_inputs: op_texts(op, "control_inputs")?,
        input_types: seen_types(types, op, "input_types")?,
        output_types: seen_types(types, op, "output_types")?,
        doc: op_text(op, "doc")?,
        properties: op_entries(op, "metadata")?,
    })
}

/// The names of a node's inputs: those of its operands, and empty ones for omitted inputs.
fn operands(op: OperationRef<'_, '_>) -> Result<Vec<String>, String> {
    let absent = attribute(&op, "absent").map(|absent| numbers(absent, "absent"));
    let absent = absent.transpose()?.unwrap_or_default();
    let mut named = vec![];
    for index in 0..op.operand_count() {
        let value = op.operand(index).map_err(|error| error.to_string())?;
        named.push(name_of(value).ok_or_else(|| format!("operand {index} has no name"))?);
    }
    let mut named = named.into_iter();
    let count = op.operand_count() + absent.len();
    let name = |index: usize| {
        if absent.contains(&(index as i64)) { Some(String::new()) } else { named.next() }
    };
    let names: Option<Vec<String>> = (0..count).map(name).collect();
    names
        .filter(|_| named.next().is_none())
        .ok_or_else(|| format!("expected distinct indices below {count} in 'absent'"))
}

fn seen_types<'c: 'a, 'a>(
    types: &mut Types<'c>,
    op: OperationRef<'c, 'a>,
    name: &str,
) -> Result<Vec<Value>, String> {
    let value = |(index, value)| {
        let known = match op.result(index) {
            Ok(result) if name == "output_types" => types.of_mlir(result.r#type())?,
            _ => None,
        };
        values::from_attribute(types, value, known.as_ref())
    };
    op_list(op, name)?.into_iter().enumerate().map(value).collect()
}

/// Name of the attribute, field and index in a list, of each graph in a node.
fn graph_places(op: OperationRef<'_, '_>, count: usize) -> Vec<(String, String, Option<usize>)> {
    let mut places = vec![(String::new(), "g".to_owned(), None); count];
    for attribute in op_list(op, "attrs").unwrap_or_default() {
        let Ok(entries) = crate::attributes::entries(attribute) else { continue };
        let entry = |wanted: &str| entries.iter().find(|(name, _)| name == wanted);
        let name = entry("name").and_then(|(_, name)| string_value(*name)).unwrap_or_default();
        let one = entry("g").and_then(|(_, index)| integer(*index));
        let several = entry("graphs").and_then(|(_, list)| crate::attributes::integers(*list));
        let mut set = |index: i64, field: &str, at| {
            let place = usize::try_from(index).ok().and_then(|index| places.get_mut(index));
            if let Some(place) = place {
                *place = (name.clone(), field.to_owned(), at);
            }
        };
        if let Some(index) = one {
            set(index, "g", None);
        }
        for (at, index) in several.into_iter().flatten().enumerate() {
            set(index, "graphs", Some(at));
        }
    }
    places
}

/// Exports a `common_ir.declare`.
///
/// # Errors
/// An invalid attribute.
pub(super) fn operator<'c>(
    types: &mut Types<'c>,
    op: OperationRef<'c, '_>,
) -> Result<Operator, String> {
    let signatures = op_list(op, "signatures")?.into_iter();
    Ok(Operator {
        name: op_text(op, "operator_name")?,
        domain: op_text(op, "domain")?,
        signatures: signatures.map(|one| signature(types, one)).collect::<Result<_, _>>()?,
        doc: op_text(op, "doc")?,
    })
}

fn signature<'c>(types: &mut Types<'c>, attribute: Attribute<'c>) -> Result<Signature, String> {
    let fields = Fields::of(attribute, "a signature", &["inputs", "outputs", "attributes", "doc"])?;
    let mut values = |name| {
        let list = fields.list(name)?.into_iter();
        list.map(|value| values::from_attribute(types, value, None)).collect::<Result<_, _>>()
    };
    Ok(Signature {
        inputs: values("inputs")?,
        outputs: values("outputs")?,
        attributes: values("attributes")?,
        doc: fields.text("doc")?,
    })
}

/// Exports a `common_ir.function` without its body.
///
/// # Errors
/// An invalid attribute.
pub(super) fn function_header<'c>(
    types: &mut Types<'c>,
    op: OperationRef<'c, '_>,
) -> Result<Function, String> {
    Ok(Function {
        name: op_text(op, "function_name")?,
        domain: op_text(op, "domain")?,
        overload: op_text(op, "overload")?,
        attributes: literals(types, op, &mut [])?,
        opsets: op_opsets(op)?,
        doc: op_text(op, "doc")?,
        properties: op_entries(op, "metadata")?,
        ..Function::default()
    })
}

/// The attributes of an op, whose graphs are taken out of `graphs`.
///
/// # Errors
/// An invalid attribute.
pub(super) fn literals<'c>(
    types: &mut Types<'c>,
    op: OperationRef<'c, '_>,
    graphs: &mut [Option<Graph>],
) -> Result<Vec<irc_common_format::model::Attribute>, String> {
    let list = op_list(op, "attrs")?.into_iter();
    list.map(|one| attributes::from_attribute(types, one, graphs)).collect()
}

/// Exports the header of a `common_ir.module`.
///
/// # Errors
/// An invalid attribute.
pub(super) fn header(op: OperationRef<'_, '_>) -> Result<Module, String> {
    let schema = match op_text(op, "schema")?.as_deref() {
        Some("common_ir") => Schema::CommonIr,
        Some("onnx") => Schema::Onnx,
        other => {
            let found = other.unwrap_or("nothing");
            return Err(format!("expected the schema common_ir or onnx, found {found}"));
        }
    };
    let version = attribute(&op, "producer_version").map(|version| {
        let number = integer(version).map(ProducerVersion::Number);
        number
            .map_or_else(|| read::text(version, "producer_version").map(ProducerVersion::Text), Ok)
    });
    let metadata = Metadata {
        name: op_text(op, "module_name")?,
        domain: op_text(op, "domain")?,
        ir_version: op_number(op, "ir_version")?,
        model_version: op_number(op, "model_version")?,
        author: op_text(op, "author")?,
        license: op_text(op, "license")?,
        producer: op_text(op, "producer")?,
        producer_version: version.transpose()?,
        doc: op_text(op, "doc")?,
        properties: op_entries(op, "metadata")?,
    };
    let (imports, opsets) = (op_texts(op, "imports")?, op_opsets(op)?);
    Ok(Module { schema, metadata, imports, opsets, ..Module::default() })
}

/// Exports a `common_ir.graph` without its body.
///
/// # Errors
/// An invalid attribute.
pub(super) fn graph_header(op: OperationRef<'_, '_>) -> Result<Graph, String> {
    let quantization = |attribute| {
        let fields = Fields::of(attribute, "a quantization", &["tensor", "parameters"])?;
        Ok::<_, String>(Quantization {
            tensor: fields.text("tensor")?,
            parameters: fields.entries("parameters")?,
        })
    };
    Ok(Graph {
        name: op_text(op, "graph_name")?,
        doc: op_text(op, "doc")?,
        quantizations: op_list(op, "quantizations")?
            .into_iter()
            .map(quantization)
            .collect::<Result<_, _>>()?,
        properties: op_entries(op, "metadata")?,
        ..Graph::default()
    })
}
