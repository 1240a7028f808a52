//! Calls of a module's functions.

use super::{MAX_DEPTH, Scope, diagnostic};
use crate::diagnostic::{NodeDiagnostic, NodeDiagnosticKind};
use crate::import::functions::{self, MAX_NODES};
use crate::import::meaning::inputs_of;
use crate::item::Item;
use crate::operator::canonical;
use irc_common_format::model::{Function, Node, Path, Value};
use irc_tl::{Builder, Dim, NodeKind, Type, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl<'m> Scope<'m> {
    /// Lowers a call: outlined if that is requested and possible, else inlined.
    pub(super) fn call(
        &mut self,
        builder: &mut Builder,
        node: &Node,
        function: &'m Function,
        path: &Path<'_>,
    ) -> Result<(), Vec<NodeDiagnostic>> {
        let invalid =
            |message| Err(vec![diagnostic(node, path, NodeDiagnosticKind::Invalid, message)]);
        if self.depth >= MAX_DEPTH {
            return invalid(format!("calls are nested more than {MAX_DEPTH} deep"));
        }
        if !self.functions.enter(function) {
            return invalid(format!("the calls of functions have more than {MAX_NODES} nodes"));
        }
        let place = self.functions.place(function);
        let outlined = self.functions.is_outlined(place);
        let outlined = outlined.then(|| self.outlined(builder, node, function, place)).flatten();
        let items = match outlined {
            Some(items) => items,
            None => {
                self.functions.inline(place);
                self.inlined(builder, node, function, path)?
            }
        };
        for ((name, item), formal) in node.outputs.iter().zip(items).zip(&function.outputs) {
            match item {
                Some(item) => self.define_item(name, item),
                None if name.is_empty() => {}
                None => return invalid(format!("its function has no output '{}'", formal.name())),
            }
        }
        Ok(())
    }

    fn inlined(
        &self,
        builder: &mut Builder,
        node: &Node,
        function: &'m Function,
        path: &Path<'_>,
    ) -> Result<Vec<Option<Item>>, Vec<NodeDiagnostic>> {
        let mut inside = self.of_function(function);
        for (formal, given) in function.inputs.iter().zip(&*inputs_of(node)) {
            if let Some(item) = self.item(given) {
                inside.define_item(formal.name(), item.clone());
            }
        }
        inside.body(builder, node, function, path)
    }

    /// An outlined call. `None` if the body cannot be lowered without
    /// more knowledge of the arguments.
    fn outlined(
        &self,
        builder: &mut Builder,
        node: &Node,
        function: &'m Function,
        place: usize,
    ) -> Option<Vec<Option<Item>>> {
        let mut inside = self.of_function(function);
        let mut b = builder.within(&format!("f{place}"));
        let mut operands = vec![];
        for (formal, given) in function.inputs.iter().zip(&*inputs_of(node)) {
            let Some(item) = self.item(given) else { continue };
            let within: Result<Item, ()> = item.map(&mut |value| {
                let name = format!("input_{}", operands.len());
                // Small integers may be sizes, which the body needs as known values.
                if builder.elements(value).is_some() {
                    let (within, operand) = b.capture(builder, value, &name);
                    operands.extend(operand.then_some(value));
                    return Ok(within);
                }
                operands.push(value);
                Ok(b.parameter(builder, value, &name))
            });
            inside.define_item(formal.name(), within.ok()?);
        }
        let written = inside.body(&mut b, node, function, &Path::ROOT.index("function", place));
        let items: Vec<Item> = written.ok()?.into_iter().collect::<Option<_>>()?;
        let results: Vec<ValueId> = items.iter().flat_map(Item::tensors).collect();
        let types: Vec<Type> = results.iter().map(|value| b.ty(*value).clone()).collect();
        for (index, value) in results.into_iter().enumerate() {
            b.output(format!("output_{index}"), value);
        }
        let name: Arc<str> = function.name.clone().unwrap_or_default().into();
        let kind = NodeKind::Call { name, body: Arc::new(b.finish()) };
        let types = seen_outside(builder, types);
        let mut results = builder.region(kind, &operands, types).ok()?.into_iter();
        let mut next = |_| results.next().ok_or(());
        let items = items.iter().map(|item| item.map(&mut next).map(Some).ok());
        items.collect()
    }

    /// An empty scope for a function's body.
    fn of_function(&self, function: &'m Function) -> Self {
        let mut opsets = self.opsets.clone();
        for opset in &function.opsets {
            let domain = canonical(opset.domain.as_deref().unwrap_or_default());
            opsets.insert(domain.to_owned(), opset.version);
        }
        Scope {
            functions: self.functions,
            around: None,
            home: function.domain.as_deref(),
            opsets,
            values: BTreeMap::new(),
            declared: BTreeMap::new(),
            failed: BTreeSet::new(),
            made: BTreeMap::new(),
            producers: BTreeMap::new(),
            depth: self.depth + 1,
            assumes_stated_shapes: self.assumes_stated_shapes,
        }
    }

    /// Lowers the body of a function whose inputs are defined, and returns its outputs.
    fn body(
        &mut self,
        builder: &mut Builder,
        call: &Node,
        function: &Function,
        path: &Path<'_>,
    ) -> Result<Vec<Option<Item>>, Vec<NodeDiagnostic>> {
        let mut diagnostics = vec![];
        let nodes = leave_out_missing(functions::body(function, call), function, self);
        self.nodes(builder, &nodes, path, &mut diagnostics);
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        Ok(function.outputs.iter().map(|formal| self.item(formal.name()).cloned()).collect())
    }
}

/// Types of a function's results as its caller sees them: unknown sizes are new symbols.
fn seen_outside(builder: &mut Builder, mut types: Vec<Type>) -> Vec<Type> {
    let mut dim = |dim: &mut Dim| {
        if !builder.knows(dim) {
            *dim = builder.fresh_symbol();
        }
    };
    types.iter_mut().flat_map(|ty| &mut ty.dims).for_each(&mut dim);
    types
}

/// Omits inputs that a call of a function omits from the calls in its body.
fn leave_out_missing(mut body: Vec<Node>, function: &Function, inside: &Scope<'_>) -> Vec<Node> {
    let names = function.inputs.iter().map(Value::name);
    let missing: BTreeSet<&str> = names.filter(|name| inside.item(name).is_none()).collect();
    for input in body.iter_mut().flat_map(|node| &mut node.inputs) {
        if missing.contains(input.as_str()) {
            input.clear();
        }
    }
    body
}
