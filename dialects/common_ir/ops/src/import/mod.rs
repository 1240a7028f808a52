//! Modules as graphs of the tensor level.

mod functions;
mod item;
mod scope;
mod support;

pub use item::{Item, Structure};
pub use scope::Region;
pub(crate) use scope::Scope;
pub use support::unsupported;

use crate::data::{dtype_of, tensor_of};
use functions::Functions;
use irc_common_format::model::{self, Module, Path, Schema};
use irc_tl::{
    Builder, Combine, Comparison, Compute, Constant, DType, Dim, Graph, Relation, Scalar, Type,
    ValueId,
};
use std::collections::BTreeMap;
use std::fmt;

/// How to import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Values that inputs are taken to have: the program is made for them, and stops when it runs on
    /// others. For inputs that its structure depends on.
    pub values: BTreeMap<String, Constant>,
    /// Shapes that inputs are taken to have, where the model leaves the rank open.
    pub shapes: BTreeMap<String, Vec<i64>>,
    /// How inputs that are no tensors are made of tensors.
    pub structures: BTreeMap<String, Structure>,
}

/// A module at the tensor level.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The program. Inputs and outputs have the names of the model's; an initializer that is also an
    /// input is none, but the default of [`Imported::defaults`].
    pub graph: Graph,
    /// Inputs that need not be given, and their values then.
    pub defaults: BTreeMap<String, Constant>,
    /// How inputs and outputs that are no tensors are made of tensors of the graph.
    pub structures: BTreeMap<String, Structure>,
}

/// What is wrong with a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The node's path in the module, such as `graph.node[3]`.
    pub path: String,
    /// The node, as a reader knows it: its operator and name.
    pub node: String,
    /// What kind of thing it is.
    pub kind: FindingKind,
    /// What is wrong.
    pub message: String,
}

/// Kinds of [`Finding`]s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    /// No operator of that name, domain and version is known.
    UnknownOperator,
    /// The operator cannot be written so.
    Unsupported,
    /// The node is not as its operator says.
    Invalid,
    /// The structure of the program depends on these inputs of the model, which have no value in
    /// [`ImportOptions::values`]. Empty when it depends on something computed from no input.
    NeedsValue(Vec<String>),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path, self.node, self.message)
    }
}

/// Writes a module's graph at the tensor level.
///
/// # Errors
/// Every node that cannot be written, in order; nodes that depend on one of those are not mentioned.
pub fn import(module: &Module, options: &ImportOptions) -> Result<Imported, Vec<Finding>> {
    let Some(graph) = &module.graph else {
        return Err(vec![whole("the file is a library: it has no graph")]);
    };
    let functions = Functions::of(module);
    let mut importer = Importer {
        options,
        builder: Builder::new(),
        findings: vec![],
        structures: BTreeMap::new(),
    };
    let mut scope = Scope::of_graph(&functions, graph, opsets(module));
    let defaults = importer.define_inputs(graph, &mut scope);
    let path = Path::GRAPH;
    scope.nodes(&mut importer.builder, &graph.nodes, &path, &mut importer.findings);
    importer.define_outputs(graph, &scope);
    if importer.findings.is_empty() {
        let Importer { builder, structures, .. } = importer;
        return Ok(Imported { graph: builder.finish(), defaults, structures });
    }
    Err(importer.findings)
}

/// The versions of the operator sets a module means, by domain.
pub(crate) fn opsets(module: &Module) -> BTreeMap<String, i64> {
    let imported = module.opsets.iter().map(|opset| {
        let domain = crate::operator::canonical(opset.domain.as_deref().unwrap_or_default());
        (domain.to_owned(), opset.version)
    });
    let mut opsets: BTreeMap<String, i64> = imported.collect();
    // Before operator sets had versions, there was one; Common IR has none to this day.
    if module.schema == Schema::CommonIr || module.opsets.is_empty() {
        opsets.entry(crate::ONNX.to_owned()).or_insert(1);
    }
    opsets
}

fn whole(message: impl Into<String>) -> Finding {
    Finding {
        path: "graph".into(),
        node: "graph".into(),
        kind: FindingKind::Invalid,
        message: message.into(),
    }
}

struct Importer<'o> {
    options: &'o ImportOptions,
    builder: Builder,
    findings: Vec<Finding>,
    structures: BTreeMap<String, Structure>,
}

impl Importer<'_> {
    fn define_inputs(
        &mut self,
        graph: &model::Graph,
        scope: &mut Scope<'_>,
    ) -> BTreeMap<String, Constant> {
        let mut defaults = BTreeMap::new();
        for (index, tensor) in graph.initializers.iter().enumerate() {
            let name = tensor.name.clone().unwrap_or_default();
            match tensor_of(tensor) {
                Ok(constant) => {
                    // An initializer that is an input as well is a default, which callers rarely
                    // replace; the program is made for it.
                    let is_input = graph.inputs.iter().any(|input| input.name() == name);
                    if is_input {
                        defaults.insert(name.clone(), constant.clone());
                    }
                    let value = self.builder.constant(constant);
                    scope.define(&name, value);
                }
                Err(message) => self.findings.push(Finding {
                    path: Path::GRAPH.index("initializer", index).to_string(),
                    node: format!("initializer '{name}'"),
                    kind: FindingKind::Unsupported,
                    message,
                }),
            }
        }
        for (index, input) in graph.inputs.iter().enumerate() {
            if defaults.contains_key(input.name()) {
                continue;
            }
            if let Err(message) = self.define_input(input, scope) {
                self.findings.push(Finding {
                    path: Path::GRAPH.index("input", index).to_string(),
                    node: format!("input '{}'", input.name()),
                    kind: FindingKind::Unsupported,
                    message,
                });
            }
        }
        defaults
    }

    fn define_input(&mut self, input: &model::Value, scope: &mut Scope<'_>) -> Result<(), String> {
        if !matches!(input.ty, Some(model::Type::Tensor(_)) | None) {
            return self.define_structure(input, scope);
        }
        let ty = self.input_type(input)?;
        let value = self.define_tensor(input.name(), ty)?;
        scope.define(input.name(), value);
        Ok(())
    }

    /// An input that is a sequence or an optional: its tensors are the inputs.
    fn define_structure(
        &mut self,
        input: &model::Value,
        scope: &mut Scope<'_>,
    ) -> Result<(), String> {
        let name = input.name();
        let ty = input.ty.as_ref().map_or("nothing".to_owned(), model::Type::to_string);
        let Some(structure) = self.options.structures.get(name) else {
            return Err(format!("{ty}: give how many values it holds, and their types"));
        };
        let mut values = vec![];
        for (name, ty) in structure.flatten(name) {
            values.push(self.define_tensor(&name, ty)?);
        }
        let mut values = values.into_iter();
        let mut next = || values.next().expect("one value was made for each tensor");
        scope.define_item(name, structure.build(&mut next));
        self.structures.insert(name.to_owned(), structure.clone());
        Ok(())
    }

    fn define_tensor(&mut self, name: &str, mut ty: Type) -> Result<ValueId, String> {
        let given = self.options.values.get(name);
        if let Some(constant) = given {
            let found = Type::from(constant.ty.clone());
            if found.dtype != ty.dtype || found.rank() != ty.rank() {
                return Err(format!("expected a value of {ty}, found {found}"));
            }
            ty = found;
        }
        let value = self.builder.input(name, ty);
        match given {
            None => Ok(value),
            Some(constant) => self.specialise(name, value, constant),
        }
    }

    /// The value an input is taken to have, and the check that it has it.
    fn specialise(
        &mut self,
        name: &str,
        value: ValueId,
        constant: &Constant,
    ) -> Result<ValueId, String> {
        let known = self.builder.constant(constant.clone());
        let ty = self.builder.ty(value).clone();
        let at = || -> Vec<Scalar> { (0..ty.rank()).map(Scalar::Loop).collect() };
        let differs = Scalar::load(0, at()).compare(Comparison::Ne, Scalar::load(1, at()));
        let count = Compute::reduce([], Combine::Sum, ty.dims.clone(), differs.cast(DType::I64));
        let written = self.builder.compute(count, &[value, known]).and_then(|count| {
            let differing = self.builder.elements_or_symbols(count)?;
            let message = format!("input '{name}' is not what the model was compiled for");
            self.builder.require(&differing[0], Relation::Equal, &Dim::Known(0), &message)
        });
        written.map_err(|error| error.to_string())?;
        Ok(known)
    }

    fn input_type(&mut self, input: &model::Value) -> Result<Type, String> {
        let Some(model::Type::Tensor(tensor)) = &input.ty else {
            let found = input.ty.as_ref().map_or("nothing".to_owned(), model::Type::to_string);
            return Err(format!("expected a tensor, found {found}"));
        };
        if tensor.element == model::ElementType::String {
            return Err("strings are not supported".to_owned());
        }
        let dtype = dtype_of(tensor.element)
            .ok_or_else(|| format!("elements of type {} are not supported", tensor.element))?;
        if let Some(shape) = self.options.shapes.get(input.name()) {
            let known: Vec<Dim> = shape.iter().map(|size| Dim::Known(*size)).collect();
            return Ok(Type::new(dtype, known));
        }
        let Some(shape) = tensor.shape.as_ref().or(input.shape.as_ref()) else {
            return Err("its rank is not known; give the shape of the input".to_owned());
        };
        let mut dims = vec![];
        for (axis, dim) in shape.dims.iter().enumerate() {
            dims.push(match dim {
                model::Dim::Size(size) if *size >= 0 => Dim::Known(*size),
                model::Dim::Variable(name) => Dim::symbol(&symbol_name(name)),
                model::Dim::Size(_) | model::Dim::Unknown => {
                    let name = format!("{}_{axis}", symbol_name(input.name()));
                    Dim::symbol(&name)
                }
                model::Dim::Wildcard(_) => {
                    return Err("its rank is not known; give the shape of the input".to_owned());
                }
            });
        }
        Ok(Type::new(dtype, dims))
    }

    fn define_outputs(&mut self, graph: &model::Graph, scope: &Scope<'_>) {
        for (index, output) in graph.outputs.iter().enumerate() {
            let message = match scope.item(output.name()) {
                Some(item) => {
                    self.define_output(output.name(), item);
                    scope.contradiction(&self.builder, output, item)
                }
                None if self.findings.is_empty() => Some("no node makes it".to_owned()),
                None => None,
            };
            self.findings.extend(message.map(|message| Finding {
                path: Path::GRAPH.index("output", index).to_string(),
                node: format!("output '{}'", output.name()),
                kind: FindingKind::Invalid,
                message,
            }));
        }
    }

    fn define_output(&mut self, name: &str, item: &Item) {
        let structure = item.structure(&self.builder);
        for ((name, _), value) in structure.flatten(name).into_iter().zip(item.tensors()) {
            self.builder.output(name, value);
        }
        if !matches!(structure, Structure::Tensor(_)) {
            self.structures.insert(name.to_owned(), structure);
        }
    }
}

/// A name that an expression of sizes can hold.
pub(crate) fn symbol_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut symbol: String = name.chars().map(plain).collect();
    if !symbol.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        symbol.insert(0, '_');
    }
    symbol
}
