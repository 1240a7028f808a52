//! Calls of operators and functions, and the types of their results.

use std::rc::Rc;

use irc_diag::Diagnostic;

use super::body::Scope;
use super::signature::{self, Call, Mismatch};
use super::typing::{applied, better, fits, shape_of, type_of};
use super::{Callee, Checker, Rule};
use crate::model::{AttributeValue, Function, Node, Operator, Path, Signature, Type, Value};
use crate::shapes::{Conflict, Kind, ShapePair, Unifier, contradict};

/// Types of the outputs of a call, as far as its declaration determines them.
type Inferred = Vec<Option<Type>>;

impl<'c> Checker<'c> {
    /// Checks a call; `scope` receives the types of its outputs.
    pub(super) fn call<'s>(&mut self, node: &'s Node, scope: &mut Scope<'s>, at: &Path<'_>) {
        let symbols = self.symbols;
        let types: Vec<Option<Rc<Type>>> = node.inputs.iter().map(|name| scope.ty(name)).collect();
        let call = Call { node, types: &types };
        if let Some((index, count)) =
            node.arg_counts.iter().enumerate().find(|(_, count)| **count < 0)
        {
            let message =
                format_args!("{} gives parameter {index} {count} inputs", node.describe(at));
            self.report(Rule::R46, &at.index("arg_count", index), message);
        }
        let inferred = match symbols.called(node, self.body) {
            None => {
                self.undeclared(node, at);
                vec![]
            }
            Some(Callee::Function(function)) => self.call_function(&call, function, at),
            Some(Callee::Operator(operator)) => self.call_operator(&call, operator, at),
        };
        self.tuple_index(&call, at);
        self.conclude(node, &types, inferred, scope, at);
    }

    fn undeclared(&mut self, node: &Node, at: &Path<'_>) {
        let domain = node.domain.as_deref().unwrap_or_default();
        let rule = if domain.is_empty() { Rule::R70 } else { Rule::R65 };
        if self.severity(rule).is_none() {
            return;
        }
        let near = match self.may_hint() {
            true => self.symbols.near(node, self.body),
            false => vec![],
        };
        let hint = |diagnostic: Diagnostic| match near.is_empty() {
            true => diagnostic,
            false => diagnostic.with_note(format!("there is `{}`", near.join("`, `"))),
        };
        let op = &node.op;
        if op.is_empty() {
            self.report(rule, at, format_args!("{} has no operator", node.describe(at)));
        } else if domain.is_empty() {
            let message =
                format_args!("`{op}`, which {} calls, is not declared", node.describe(at));
            self.report_with(rule, at, message, hint);
        } else {
            let what = if self.symbols.knows_library(domain) {
                "has no such symbol"
            } else {
                "is not imported"
            };
            let message = format_args!("`{}` is undefined: `{domain}` {what}", node.symbol());
            self.report_with(rule, at, message, hint);
        }
    }

    fn call_function(&mut self, call: &Call<'_>, function: &Function, at: &Path<'_>) -> Inferred {
        let node = call.node;
        let (inputs, outputs) = (function.inputs.len(), function.outputs.len());
        let differs = |found: usize, expected: usize| match self.is_onnx() {
            true => found > expected,
            false => found != expected,
        };
        let lists =
            [("inputs", node.inputs.len(), inputs), ("outputs", node.outputs.len(), outputs)];
        for (what, found, expected) in lists {
            if differs(found, expected) {
                let message = format_args!(
                    "{} has {found} {what}, its function {expected}",
                    node.describe(at)
                );
                self.report(Rule::R47, at, message);
                return vec![];
            }
        }
        let negative = node.arg_counts.iter().any(|count| *count < 0);
        let ones = node.arg_counts.iter().all(|count| *count == 1);
        let is_plain = node.arg_counts.is_empty() || (ones && node.arg_counts.len() == inputs);
        if !is_plain {
            if !negative {
                let message = format_args!(
                    "{} calls a function, whose parameters take one input each",
                    node.describe(at)
                );
                self.report(Rule::R47, &at.index("arg_count", 0), message);
            }
            return vec![];
        }
        self.function_literals(node, function, at);
        let groups = signature::one_each(node.inputs.len());
        let found = signature::unify(call, &function.inputs, &function.outputs, &groups);
        self.settle(call, found, at)
    }

    fn function_literals(&mut self, node: &Node, function: &Function, at: &Path<'_>) {
        for attribute in &node.attributes {
            let name = attribute.name.as_deref().unwrap_or_default();
            let mut declared = function.attributes.iter();
            let declared = declared.find(|declared| declared.name == attribute.name);
            let error = match declared.map(|declared| declared.value.kind()) {
                None => "is not one of its function".to_owned(),
                Some(Some(kind)) if attribute.value.kind().is_some_and(|found| found != kind) => {
                    format!("is not of the kind of its default, `{}`", kind.field())
                }
                Some(_) => continue,
            };
            let message = format_args!("attribute `{name}` of {} {error}", node.describe(at));
            self.report(Rule::R53, &at.key("attribute", name), message);
        }
    }

    fn call_operator(&mut self, call: &Call<'_>, operator: &Operator, at: &Path<'_>) -> Inferred {
        if !self.counts(call.node, operator, at) {
            return vec![];
        }
        let matches: Vec<(&Signature, Result<Inferred, Mismatch<'_>>)> = operator
            .signatures
            .iter()
            .filter_map(|signature| {
                let groups = signature::groups(call.node, signature)?;
                let found = signature::unify(call, &signature.inputs, &signature.outputs, &groups);
                Some((signature, found))
            })
            .collect();
        let sound: Vec<&(&Signature, Result<Inferred, Mismatch<'_>>)> =
            matches.iter().filter(|(_, found)| found.is_ok()).collect();
        let Some(first) = sound.first() else {
            self.no_match(call, &matches, at);
            return vec![];
        };
        let mut complete = sound
            .iter()
            .filter(|(signature, _)| signature::literal_errors(call.node, signature).is_empty());
        let Some((_, found)) = complete.next() else {
            for (name, error) in signature::literal_errors(call.node, first.0) {
                let message =
                    format_args!("attribute `{name}` of {} {error}", call.node.describe(at));
                self.report(Rule::R53, &at.key("attribute", &name), message);
            }
            return first.1.clone().unwrap_or_default();
        };
        if call.is_typed() && complete.next().is_some() {
            let message = format_args!("{} matches several signatures", call.node.describe(at));
            self.warn(Rule::R74, at, message);
        }
        // If several signatures match because types are unknown, the result types are unknown too.
        match call.is_typed() || sound.len() == 1 {
            true => found.clone().unwrap_or_default(),
            false => vec![],
        }
    }

    /// Whether the counts of inputs are valid for matching.
    fn counts(&mut self, node: &Node, operator: &Operator, at: &Path<'_>) -> bool {
        let counts = &node.arg_counts;
        if counts.iter().any(|count| *count < 0) {
            return false;
        }
        let described = || node.describe(at);
        if counts.is_empty() {
            let takes_none = |signature: &Signature| signature.inputs.is_empty();
            if !node.inputs.is_empty() || !operator.signatures.iter().any(takes_none) {
                let message =
                    format_args!("{} does not count the inputs of each parameter", described());
                self.report(Rule::R43, at, message);
            }
            return true;
        }
        let sum: i64 = counts.iter().map(|count| i64::from(*count)).sum();
        let has = |signature: &Signature| signature.inputs.len() == counts.len();
        let at = at.index("arg_count", 0);
        if !operator.signatures.iter().any(has) && !operator.signatures.is_empty() {
            let mut takes: Vec<usize> =
                operator.signatures.iter().map(|signature| signature.inputs.len()).collect();
            takes.sort_unstable();
            takes.dedup();
            let takes: Vec<String> = takes.iter().map(usize::to_string).collect();
            let message = format_args!(
                "{} counts the inputs of {} parameters, its operator has {}",
                described(),
                counts.len(),
                takes.join(" or ")
            );
            self.report(Rule::R44, &at, message);
            return false;
        }
        if sum != node.inputs.len() as i64 && !self.is_onnx() {
            let message = format_args!(
                "the counts of {} add up to {sum}, it has {} inputs",
                described(),
                node.inputs.len()
            );
            self.report(Rule::R45, &at, message);
            return false;
        }
        true
    }

    fn no_match(
        &mut self,
        call: &Call<'_>,
        matches: &[(&Signature, Result<Inferred, Mismatch<'_>>)],
        at: &Path<'_>,
    ) {
        let errors: Vec<&Mismatch<'_>> =
            matches.iter().filter_map(|(_, found)| found.as_ref().err()).collect();
        let shapes: Vec<&&Mismatch<'_>> =
            errors.iter().filter(|error| matches!(error, Mismatch::Shape { .. })).collect();
        // The types single out a signature: report why this one does not match.
        if let [error] = &shapes[..] {
            return self.mismatch(call, error, at);
        }
        if let [error] = &errors[..] {
            return self.mismatch(call, error, at);
        }
        let types: Vec<String> = call.described_types();
        let message = format_args!(
            "{} matches no signature: found ({})",
            call.node.describe(at),
            types.join(", ")
        );
        self.report_with(Rule::R74, at, message, |diagnostic| {
            errors
                .iter()
                .take(MAX_SHOWN)
                .fold(diagnostic, |diagnostic, error| diagnostic.with_note(error.to_string()))
        });
    }

    /// Reports why a call does not match the only candidate.
    fn settle(
        &mut self,
        call: &Call<'_>,
        found: Result<Inferred, Mismatch<'_>>,
        at: &Path<'_>,
    ) -> Inferred {
        found.unwrap_or_else(|error| {
            self.mismatch(call, &error, at);
            vec![]
        })
    }

    fn mismatch(&mut self, call: &Call<'_>, error: &Mismatch<'_>, at: &Path<'_>) {
        let node = call.node;
        match error {
            Mismatch::Count { .. } | Mismatch::Type { .. } => {
                let message = format_args!("{} matches no signature: {error}", node.describe(at));
                self.report(Rule::R74, at, message);
            }
            Mismatch::Shape { input, conflict } => {
                self.conflict(node, *input, conflict, at);
            }
        }
    }

    fn conflict(&mut self, node: &Node, input: usize, conflict: &Conflict, at: &Path<'_>) {
        let rule = rule_of(conflict);
        let other = conflict.first.as_ref();
        let other =
            other.and_then(|first| node.inputs.iter().position(|name| *name == first.value));
        let other = other.filter(|other| *other != input);
        let is_scalar = rule == Rule::R95 && conflict.second.actual.dims.is_empty();
        let also = if is_scalar { ": it is a scalar (R99)" } else { "" };
        let message = format_args!("{}: {conflict}{also}", node.describe(at));
        self.report_with(rule, &at.index("input", input), message, |diagnostic| match other {
            Some(other) => {
                diagnostic.related(at.index("input", other).to_string(), "the other shape")
            }
            None => diagnostic,
        });
    }

    /// Checks that the index of a tuple's element is in range.
    fn tuple_index(&mut self, call: &Call<'_>, at: &Path<'_>) {
        let [Some(ty)] = call.types else { return };
        let Type::Tuple(types) = &**ty else { return };
        let Some(attribute) = call.node.attribute("index") else { return };
        let AttributeValue::Int(index) = attribute.value else { return };
        if index < 0 || index >= types.len() as i64 {
            let message =
                format_args!("{} accesses element {index} of {ty}", call.node.describe(at));
            self.report(Rule::R83, &at.key("attribute", "index"), message);
        }
    }

    /// The known properties of the outputs: by the declaration, and by the node itself.
    fn conclude<'s>(
        &mut self,
        node: &'s Node,
        types: &[Option<Rc<Type>>],
        inferred: Inferred,
        scope: &mut Scope<'s>,
        at: &Path<'_>,
    ) {
        let mut unifier = Unifier::new();
        for (index, (stated, found)) in node.input_types.iter().zip(types).enumerate() {
            let Some(found) = found else { continue };
            if stated.ty.as_ref().is_some_and(|ty| !fits(ty, found)) {
                let message = format_args!(
                    "input {index} of {} is {found}, but the node states otherwise",
                    node.describe(at)
                );
                self.report(Rule::R74, &at.index("input_type", index), message);
                continue;
            }
            let (Some(declared), Some(actual)) = (stated.tensor_shape(), shape_of(found)) else {
                continue;
            };
            let value = node.inputs[index].as_str();
            let site = ShapePair { parameter: value, value, declared, actual };
            if let Err(conflict) = unifier.unify(site) {
                self.conflict(node, index, &conflict, at);
            }
        }
        let mut inferred = inferred.into_iter();
        for (index, name) in node.outputs.iter().enumerate() {
            let inferred = inferred.next().flatten();
            let stated = node.output_types.get(index).and_then(|value| applied(value, &unifier));
            let ty = match (inferred, stated) {
                (Some(inferred), Some(stated)) => {
                    let at = at.index("output_type", index);
                    self.same(name, &stated, &inferred, Rule::R74, &at);
                    better(inferred, stated)
                }
                (Some(ty), None) | (None, Some(ty)) => ty,
                (None, None) => continue,
            };
            scope.set_type(name, Rc::new(ty));
        }
    }

    /// Checks the declared type of an output of a graph or function against its node's result.
    pub(super) fn computed(
        &mut self,
        output: &Value,
        scope: &Scope<'_>,
        is_function: bool,
        at: &Path<'_>,
    ) {
        let (Some(stated), Some(found)) = (type_of(output), scope.ty(output.name())) else {
            return;
        };
        let rule = if is_function { Rule::R34 } else { Rule::R13 };
        self.same(output.name(), &stated, &found, rule, at);
    }

    /// Checks two types of one value against each other.
    fn same(&mut self, name: &str, stated: &Type, found: &Type, rule: Rule, at: &Path<'_>) {
        if !fits(stated, found) {
            let message =
                format_args!("`{name}` is declared {stated}, but its node computes {found}");
            return self.report(rule, at, message);
        }
        if let (Some(a), Some(b)) = (shape_of(stated), shape_of(found))
            && contradict(a, b)
        {
            let message =
                format_args!("`{name}` is declared with shape {a}, but its node computes {b}");
            self.report(Rule::R101, at, message);
        }
    }
}

/// Maximum number of signatures whose mismatches are reported.
const MAX_SHOWN: usize = 8;

/// The rule that a conflict of shapes violates.
fn rule_of(conflict: &Conflict) -> Rule {
    let is_alone = |dims: &[crate::model::Dim]| dims.len() == 1;
    match &conflict.kind {
        Kind::Rank => {
            let second = &conflict.second;
            let is_scalar = second.actual.dims.is_empty() || second.declared.dims.is_empty();
            if is_scalar { Rule::R99 } else { Rule::R74 }
        }
        Kind::TooFew { .. } => Rule::R95,
        Kind::Number { .. } => Rule::R101,
        Kind::Variable { .. } if conflict.has_wildcard() => Rule::R98,
        Kind::Variable { .. } => Rule::R92,
        Kind::Wildcard { .. } => {
            let first = conflict.first.iter().all(|first| is_alone(&first.declared.dims));
            let both = first && is_alone(&conflict.second.declared.dims);
            if both { Rule::R96 } else { Rule::R97 }
        }
    }
}
