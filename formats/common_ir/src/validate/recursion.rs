//! Recursive functions, across all documents.

use std::collections::HashMap;

use irc_diag::{Diagnostic, Sink};

use super::{Callee, Rule, Symbols, ValidateOptions, diagnostic};
use crate::flow::{cycle_through, cycles};
use crate::library::Libraries;
use crate::model::{Function, Module, Node, Path};

/// Reports each cycle of calls once, at its first function.
pub(super) fn report(
    module: &Module,
    libraries: &Libraries,
    options: &ValidateOptions,
    sink: &mut Sink,
) {
    let Some(severity) = Rule::R35.severity(options.level, module.schema) else { return };
    let documents: Vec<&Module> =
        std::iter::once(module).chain(libraries.iter().map(|library| &library.module)).collect();
    let (functions, edges) = calls(&documents, libraries);
    let component = cycles(functions.len(), &edges);
    let mut seen = std::collections::BTreeSet::new();
    for (index, (document, at, function)) in functions.iter().enumerate() {
        if component[index].is_none_or(|ring| !seen.insert(ring)) {
            continue;
        }
        // Each search takes time linear in all calls.
        let ring = match seen.len() <= MAX_RINGS {
            true => cycle_through(index as u32, &edges, &component),
            false => vec![index as u32],
        };
        let mut names: Vec<&str> =
            ring.iter().map(|member| name(functions[*member as usize].2)).collect();
        names.push(name(function));
        let message = format!("function `{}` calls itself: {}", name(function), names.join(" -> "));
        let found = diagnostic(Rule::R35, severity, &Path::ROOT.index("function", *at), message);
        sink.push(place(found, *document, libraries));
    }
}

/// Rings whose functions are named.
const MAX_RINGS: usize = 16;

fn place(found: Diagnostic, document: usize, libraries: &Libraries) -> Diagnostic {
    let library = document.checked_sub(1).and_then(|index| libraries.iter().nth(index));
    match library {
        Some(library) => library.relocate(found),
        None => found,
    }
}

fn name(function: &Function) -> &str {
    function.name.as_deref().unwrap_or_default()
}

/// A function with the index of its document and its index there.
type Place<'m> = (usize, usize, &'m Function);

/// All functions, and the calls between them.
fn calls<'m>(
    documents: &[&'m Module],
    libraries: &'m Libraries,
) -> (Vec<Place<'m>>, Vec<(u32, u32)>) {
    let mut functions: Vec<Place<'m>> = vec![];
    for (document, module) in documents.iter().enumerate() {
        let own = module.functions.iter().enumerate();
        functions.extend(own.map(|(index, function)| (document, index, function)));
    }
    let numbers: HashMap<*const Function, u32> = functions
        .iter()
        .enumerate()
        .map(|(number, (_, _, function))| (std::ptr::from_ref(*function), number as u32))
        .collect();
    let mut edges = vec![];
    let mut symbols: Option<(usize, Symbols<'_>)> = None;
    for (number, (document, _, function)) in functions.iter().enumerate() {
        if symbols.as_ref().is_none_or(|(of, _)| of != document) {
            symbols = Some((*document, Symbols::new(documents[*document], libraries, false)));
        }
        let Some((_, symbols)) = &symbols else { continue };
        let body = function.domain.as_deref();
        each_node(&function.nodes, &mut |node| {
            if let Some(Callee::Function(called)) = symbols.called(node, body)
                && let Some(to) = numbers.get(&std::ptr::from_ref(called))
            {
                edges.push((number as u32, *to));
            }
        });
    }
    (functions, edges)
}

/// Calls `visit` for each node, including those of graphs in attributes.
fn each_node(nodes: &[Node], visit: &mut dyn FnMut(&Node)) {
    for node in nodes {
        visit(node);
        for attribute in &node.attributes {
            attribute.value.graphs().iter().for_each(|graph| each_node(&graph.nodes, visit));
        }
    }
}
