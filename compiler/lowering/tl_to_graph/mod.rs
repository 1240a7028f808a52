//! Reads a program of the tensor level in MLIR as a graph: the inverse of [`super::graph_to_tl`].
//!
//! The module contains only functions. `@main`, or the only one that is not private, becomes the graph.
//! Those that `tl.if`, `tl.loop` and `tl.call` name become nested graphs, and calls of one function
//! share one. Inputs and outputs are named by `tl.name`, or by their position (`arg0`, `result0`) if
//! they have none. Arguments with `tl.weight` or `tl.value` are constants; inputs with `tl.preserved`
//! are those of [`Graph::preserved`].
//!
//! A symbol is the extent of the first argument, or result of `tl.if`, `tl.loop` or `tl.call`, that has
//! it as a dimension in `#tl.dims`, or the result of a `tl.size`. A node's origin is the name in its
//! location, or the position in the file if it has none.
//!
//! Programs are read before `fuse`: groups and launches of kernels are errors, as are all other ops
//! without a node in graphs. All errors are reported, each at its op.
mod body;
mod constants;

use crate::attributes::STRINGS;
use body::Body;
use constants::Constants;
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Attribute, BlockLike, BlockRef, OperationLike, OperationRef, PassError, RegionLike,
    melior::ir::attribute::DictionaryAttribute, read, string_value,
};
use irc_tensor::unescape;
use irc_tl::{Constant, Graph, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of ops. Functions that `tl.if` and `tl.loop` name are copied, so a short text can
/// describe a graph of any size.
const MAX_NODES: usize = 1 << 24;

/// Maximum depth of nested functions.
const MAX_DEPTH: usize = 128;

/// The graph of a module.
///
/// `weights` are the constants numbered by arguments with `tl.weight` whose elements are not in
/// `tl.value`: the result of [`weights`](super::graph_to_tl::weights) for a module that was just written,
/// empty for a text.
///
/// # Errors
/// After a diagnostic at every op that has no representation in a graph.
pub fn tl_to_graph(module: OperationRef<'_, '_>, weights: &[Constant]) -> Result<Graph, PassError> {
    let functions = functions(module)?;
    let main = main_of(module, &functions)?;
    let constants = Constants::read(main, weights)?;
    let mut reader = Reader {
        functions,
        constants,
        met: BTreeSet::new(),
        called: BTreeMap::new(),
        open: read::string(&main, "sym_name").into_iter().collect(),
        scopes: vec![],
        nodes: 0,
        failed: None,
    };
    let bindings = reader.constants.of_main(main);
    let graph = reader.function(main, &bindings);
    let strings = strings_of(main);
    match reader.failed {
        Some(failed) => Err(failed),
        None => Ok(Graph { strings: strings?, ..graph? }),
    }
}

/// The strings of a program.
fn strings_of(main: OperationRef<'_, '_>) -> Result<Vec<Arc<[u8]>>, PassError> {
    let mut strings = vec![];
    for text in STRINGS.read(&main).unwrap_or_default() {
        let message =
            || format!("tl.strings: expected \\\\ or \\xHH after a backslash in '{text}'");
        let bytes = unescape(&text).ok_or_else(|| PassError::at(&main, message()))?;
        strings.push(bytes.into());
    }
    Ok(strings)
}

/// The functions of a module by name.
fn functions<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
) -> Result<BTreeMap<String, OperationRef<'c, 'a>>, PassError> {
    let mut functions = BTreeMap::new();
    let mut failed = None;
    for op in read::body_ops(module) {
        let name = read::op_name(&op);
        match read::string(&op, "sym_name").filter(|_| name == func::FUNC) {
            Some(symbol) => drop(functions.insert(symbol, op)),
            None => {
                let message = format!("expected a function of tl ops, found '{name}'");
                failed = Some(PassError::at(&op, message));
            }
        }
    }
    failed.map_or(Ok(functions), Err)
}

/// `@main`, or the only function that is not private.
fn main_of<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    functions: &BTreeMap<String, OperationRef<'c, 'a>>,
) -> Result<OperationRef<'c, 'a>, PassError> {
    if let Some(main) = functions.get("main") {
        return Ok(*main);
    }
    let is_private = |op: &OperationRef<'c, 'a>| {
        read::string(op, "sym_visibility").as_deref() == Some("private")
    };
    let mut public = functions.values().filter(|op| !is_private(op));
    match (public.next(), public.next()) {
        (Some(main), None) => Ok(*main),
        (None, _) => Err(PassError::at(&module, "expected a function @main, found none")),
        (Some(_), Some(other)) => {
            let message = "expected one function that is not private, or one named @main";
            Err(PassError::at(other, message))
        }
    }
}

/// The binding of a parameter: the number of a constant, or `None` for an input of the graph.
type Binding = Option<usize>;

/// A call of a function: its name, the bindings of its parameters, and the symbols of its
/// parameters that are known at the call.
type Callee = (String, Vec<Binding>, Vec<Arc<str>>);

struct Reader<'c, 'a> {
    functions: BTreeMap<String, OperationRef<'c, 'a>>,
    constants: Constants,
    /// The constants that have a node in some graph so far.
    met: BTreeSet<usize>,
    /// The graphs of functions that were called.
    called: BTreeMap<Callee, Arc<Graph>>,
    /// The functions that are being read, outermost first.
    open: Vec<String>,
    /// The symbols that each of them has defined so far.
    scopes: Vec<BTreeSet<Arc<str>>>,
    nodes: usize,
    failed: Option<PassError>,
}

impl<'c: 'a, 'a> Reader<'c, 'a> {
    /// Reports an error and continues.
    fn error(&mut self, op: OperationRef<'c, 'a>, message: impl AsRef<str>) {
        self.failed = Some(PassError::at(&op, message));
    }

    /// The graph of a function, given the bindings of its parameters.
    fn function(
        &mut self,
        function: OperationRef<'c, 'a>,
        bindings: &[Binding],
    ) -> Result<Graph, PassError> {
        let block = block_of(function)?;
        self.scopes.push(BTreeSet::new());
        let graph = Body::new(self, function, block, bindings).and_then(Body::read);
        self.scopes.pop();
        graph
    }

    /// Whether a symbol is known here.
    fn knows(&self, symbol: &Arc<str>) -> bool {
        self.scopes.iter().any(|scope| scope.contains(symbol))
    }

    /// Defines a symbol here; returns whether it was unknown.
    fn define(&mut self, symbol: &Arc<str>) -> bool {
        let is_new = !self.knows(symbol);
        if let Some(scope) = self.scopes.last_mut().filter(|_| is_new) {
            scope.insert(symbol.clone());
        }
        is_new
    }

    /// The graph of a function that an op names.
    fn nested(
        &mut self,
        op: OperationRef<'c, 'a>,
        name: &str,
        bindings: &[Binding],
    ) -> Result<Graph, PassError> {
        let Some(function) = self.functions.get(name).copied() else {
            return Err(PassError::at(&op, format!("no function is named @{name}")));
        };
        if self.open.iter().any(|open| open == name) {
            return Err(PassError::at(&op, format!("@{name} runs itself, which has no graph")));
        }
        if self.open.len() == MAX_DEPTH {
            let message = format!("functions name one another to a depth of over {MAX_DEPTH}");
            return Err(PassError::at(&op, message));
        }
        self.open.push(name.to_owned());
        let graph = self.function(function, bindings);
        self.open.pop();
        graph
    }

    /// The graph of a function that a `tl.call` names; equal calls share one.
    fn called(
        &mut self,
        op: OperationRef<'c, 'a>,
        callee: Callee,
    ) -> Result<Arc<Graph>, PassError> {
        if let Some(graph) = self.called.get(&callee) {
            return Ok(graph.clone());
        }
        let graph = Arc::new(self.nested(op, &callee.0, &callee.1)?);
        self.called.insert(callee, graph.clone());
        Ok(graph)
    }

    /// Counts an op; fails if there are too many.
    fn count(&mut self, op: OperationRef<'c, 'a>) -> Result<(), PassError> {
        self.nodes += 1;
        if self.nodes <= MAX_NODES {
            return Ok(());
        }
        let message = format!("the functions that ops name come to over {MAX_NODES} ops");
        Err(PassError::at(&op, message))
    }
}

/// The only block of a function.
fn block_of<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Result<BlockRef<'c, 'a>, PassError> {
    let region = function.region(0).ok();
    let block = region.and_then(|region| region.first_block());
    let missing = || PassError::at(&function, "expected a function with a body, found none");
    let block = block.ok_or_else(missing)?;
    match block.next_in_region() {
        None => Ok(block),
        Some(_) => Err(PassError::at(&function, "expected a function of one block, found several")),
    }
}

/// The type of a value in MLIR.
fn type_of(ty: irc_mlir::Type<'_>) -> Result<Type, String> {
    tl::type_of(ty)
}

/// The attributes of a function's arguments (`arg_attrs`) or results (`res_attrs`), by position.
fn port_attributes<'c: 'a, 'a>(
    function: &OperationRef<'c, 'a>,
    list: &str,
) -> Vec<Option<DictionaryAttribute<'c>>> {
    let all = read::elements(function, list).unwrap_or_default();
    all.into_iter().map(|attribute| DictionaryAttribute::try_from(attribute).ok()).collect()
}

/// An entry of the attributes of an argument or result.
fn entry<'c>(
    attributes: &[Option<DictionaryAttribute<'c>>],
    index: usize,
    name: &str,
) -> Option<Attribute<'c>> {
    attributes.get(index)?.as_ref()?.element_by_name(name)
}

/// The name of an argument or result.
fn port_name(
    attributes: &[Option<DictionaryAttribute<'_>>],
    index: usize,
    default: &str,
) -> String {
    let name = entry(attributes, index, "tl.name").and_then(string_value);
    name.unwrap_or_else(|| format!("{default}{index}"))
}
