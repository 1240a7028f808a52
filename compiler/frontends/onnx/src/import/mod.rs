//! Imports modules as graphs of the tensor level.

mod functions;
mod inputs;
mod meaning;
mod rejections;
mod scope;
mod support;

pub use functions::Calls;
pub use inputs::open_sizes;
pub use rejections::{newer_sets, rejections};
pub use support::unsupported;

use crate::diagnostic::{NodeDiagnostic, NodeDiagnosticKind};
use crate::item::{Item, Structure};
use functions::Functions;
use inputs::Symbols;
use irc_common_format::model::{self, Module, Path, Schema};
use irc_tl::{Builder, Constant, Graph, Results};
use scope::Scope;
use std::collections::{BTreeMap, BTreeSet};

/// Options of the import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Values of inputs: the program is specialised for them, and checks them at run time. For inputs
    /// that its structure depends on.
    pub values: BTreeMap<String, Constant>,
    /// Shapes of inputs, which refine those of the model. Sizes with the same name in the model are equal
    /// in other inputs too. An input without a declared type has elements of `f32`. A name of [`open_sizes`] that is no
    /// input has one extent, the size.
    pub shapes: BTreeMap<String, Vec<i64>>,
    /// How inputs other than tensors are composed of tensors.
    pub structures: BTreeMap<String, Structure>,
    /// How calls of the module's functions are imported.
    pub calls: Calls,
    /// Whether control inputs are ignored. No value depends on them.
    pub ignore_control_inputs: bool,
    /// Whether sizes that are computed at run time are those that the model states for values in its graph,
    /// which is then checked at run time. Without it, stated sizes are used only if the program cannot be
    /// imported otherwise: models in use state wrong ones, and ONNX Runtime ignores them.
    pub assume_stated_shapes: bool,
    /// Whether sizes must be known when the program is compiled: the program is then specialised for the values of short
    /// inputs from which sizes are computed, [`Imported::size_inputs`].
    pub known_sizes: bool,
    /// Which values the program returns. `All` are the graph's outputs, followed by all results of its nodes,
    /// in order.
    pub results: Results,
}

/// A module at the tensor level.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The program. Inputs and outputs have the names of the model's; an initializer that is also an
    /// input is not an input of the program, but has its default in [`Imported::defaults`].
    pub graph: Graph,
    /// Optional inputs, and their default values.
    pub defaults: BTreeMap<String, Constant>,
    /// How inputs and outputs other than tensors are composed of tensors of the graph.
    pub structures: BTreeMap<String, Structure>,
    /// With [`ImportOptions::known_sizes`], short inputs from whose values sizes are computed.
    pub size_inputs: BTreeSet<String>,
    /// Harmless deviations from what the model states: [`NodeDiagnosticKind::StatedShape`].
    pub warnings: Vec<NodeDiagnostic>,
}

/// Lowers a module's graph to the tensor level.
///
/// # Errors
/// All nodes that cannot be lowered, in order, except those that depend on another such node.
pub fn import(module: &Module, options: &ImportOptions) -> Result<Imported, Vec<NodeDiagnostic>> {
    let Some(graph) = &module.graph else {
        return Err(vec![whole("the file is a library: it has no graph")]);
    };
    let first = import_graph(module, graph, options, options.assume_stated_shapes);
    let needs_sizes = |diagnostics: &Vec<NodeDiagnostic>| {
        let needs = |one: &NodeDiagnostic| {
            matches!(
                one.kind,
                NodeDiagnosticKind::NeedsValue(_) | NodeDiagnosticKind::NeedsShape(_)
            )
        };
        // What the model states of sizes is checked at run time, by computing with sizes.
        !options.assume_stated_shapes && !options.known_sizes && diagnostics.iter().any(needs)
    };
    match first {
        Err(diagnostics) if needs_sizes(&diagnostics) => import_graph(module, graph, options, true),
        imported => imported,
    }
}

fn import_graph(
    module: &Module,
    graph: &model::Graph,
    options: &ImportOptions,
    assumes_stated_shapes: bool,
) -> Result<Imported, Vec<NodeDiagnostic>> {
    let functions = Functions::of(module, options.calls, !options.ignore_control_inputs);
    let mut importer = Importer {
        options,
        builder: Builder::new(),
        diagnostics: vec![],
        warnings: vec![],
        structures: BTreeMap::new(),
        symbols: Symbols::default(),
        short: BTreeSet::new(),
    };
    let mut scope = Scope::of_graph(&functions, graph, opsets(module), assumes_stated_shapes);
    let defaults = importer.define_initializers(graph, &mut scope);
    importer.define_inputs(graph, &mut scope, &defaults);
    let path = Path::GRAPH;
    scope.nodes(&mut importer.builder, &graph.nodes, &path, &mut importer.diagnostics);
    importer.define_outputs(graph, &scope);
    importer.define_intermediates(graph, &scope);
    if importer.diagnostics.is_empty() {
        let size_inputs =
            if options.known_sizes { importer.size_inputs() } else { BTreeSet::new() };
        let Importer { builder, structures, warnings, .. } = importer;
        let mut graph = builder.finish();
        graph.prune();
        return Ok(Imported { graph, defaults, structures, size_inputs, warnings });
    }
    Err(importer.diagnostics)
}

/// The versions of the operator sets that a module imports, by domain.
pub(crate) fn opsets(module: &Module) -> BTreeMap<String, i64> {
    let imported = module.opsets.iter().map(|opset| {
        let domain = crate::operator::canonical(opset.domain.as_deref().unwrap_or_default());
        (domain.to_owned(), opset.version)
    });
    let mut opsets: BTreeMap<String, i64> = imported.collect();
    // Before operator sets had versions, there was one; Common IR still has none.
    if module.schema == Schema::CommonIr || module.opsets.is_empty() {
        opsets.entry(crate::ONNX.to_owned()).or_insert(1);
    }
    opsets
}

fn whole(message: impl Into<String>) -> NodeDiagnostic {
    NodeDiagnostic::new("graph", "graph", NodeDiagnosticKind::Invalid, message)
}

struct Importer<'o> {
    options: &'o ImportOptions,
    builder: Builder,
    diagnostics: Vec<NodeDiagnostic>,
    warnings: Vec<NodeDiagnostic>,
    structures: BTreeMap<String, Structure>,
    symbols: Symbols,
    /// Inputs of few elements, such as a shape.
    short: BTreeSet<String>,
}

impl Importer<'_> {
    fn define_outputs(&mut self, graph: &model::Graph, scope: &Scope<'_>) {
        let results = &self.options.results;
        let named: Option<BTreeSet<&str>> = match results {
            Results::Named(names) => Some(names.iter().map(String::as_str).collect()),
            Results::All | Results::Outputs => None,
        };
        for (index, output) in graph.outputs.iter().enumerate() {
            if named.as_ref().is_some_and(|named| !named.contains(output.name())) {
                continue;
            }
            let wrong = match scope.item(output.name()) {
                Some(item) => {
                    self.define_output(output.name(), item);
                    scope.contradiction(&self.builder, output, item)
                }
                None if self.diagnostics.is_empty() => {
                    Some((NodeDiagnosticKind::Invalid, "no node computes it".to_owned()))
                }
                None => None,
            };
            let Some((kind, message)) = wrong else { continue };
            let path = Path::GRAPH.index("output", index).to_string();
            let diagnostic =
                NodeDiagnostic::new(path, format!("output '{}'", output.name()), kind, message);
            match diagnostic.kind {
                NodeDiagnosticKind::StatedShape => self.warnings.push(diagnostic),
                _ => self.diagnostics.push(diagnostic),
            }
        }
    }

    /// Declares results of nodes as outputs, if the options request it.
    fn define_intermediates(&mut self, graph: &model::Graph, scope: &Scope<'_>) {
        let mut known: BTreeSet<&str> = graph.outputs.iter().map(model::Value::name).collect();
        let computed: Vec<&str> =
            graph.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str).collect();
        let wanted: Vec<&str> = match &self.options.results {
            Results::Outputs => return,
            Results::All => computed,
            Results::Named(names) => {
                let computed: BTreeSet<&str> = computed.into_iter().collect();
                for name in names.iter().map(String::as_str) {
                    if !known.contains(name) && !computed.contains(name) {
                        let message = format!("no node computes '{name}'");
                        self.diagnostics.push(whole(message));
                    }
                }
                names.iter().map(String::as_str).filter(|name| computed.contains(name)).collect()
            }
        };
        for name in wanted {
            if let Some(item) = scope.item(name).filter(|_| !name.is_empty() && known.insert(name))
            {
                let item = item.clone();
                self.define_output(name, &item);
            }
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

/// Whether a dimension has a name: exporters write `?`, `None` and `-1` for unrelated sizes.
pub(crate) fn is_name(name: &str) -> bool {
    name.contains(|c: char| c.is_alphanumeric()) && !matches!(name, "None" | "-1")
}

/// A name that is valid in expressions of sizes.
pub(crate) fn symbol_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut symbol: String = name.chars().map(plain).collect();
    if !symbol.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        symbol.insert(0, '_');
    }
    symbol
}
