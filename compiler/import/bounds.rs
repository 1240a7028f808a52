//! Bounds of dimensions that models leave open: the program checks them when it runs, and archives reserve memory for the
//! largest values.
use super::Imported;
use irc_diag::Diagnostic;
use irc_tl::{Check, Dim, Relation};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::Arc,
};

/// The bounds of dimensions, by name.
pub type Bounds = BTreeMap<String, RangeInclusive<i64>>;

impl Imported {
    /// Bounds dimensions of inputs: a run with another value ends with a message that names the input.
    ///
    /// # Errors
    /// `import-dimension` for each dimension that no input has.
    pub(crate) fn bound(
        &mut self,
        bounds: &Bounds,
        shapes: &BTreeMap<String, Vec<i64>>,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut places: BTreeMap<Arc<str>, &str> = BTreeMap::new();
        for (name, value) in &self.graph.inputs {
            for dim in &self.graph.types[value.0].dims {
                for symbol in dim.symbols().into_iter().filter(|it| *dim == Dim::symbol(it)) {
                    places.entry(symbol).or_insert(name);
                }
            }
        }
        let unknown: Vec<Diagnostic> = bounds
            .keys()
            .filter(|name| !places.contains_key(name.as_str()))
            .map(|name| unknown(name, places.keys(), shapes))
            .collect();
        if !unknown.is_empty() {
            return Err(unknown);
        }
        for (name, range) in bounds {
            let (input, dim) = (places[name.as_str()], Dim::symbol(name));
            let (least, most) = (*range.start(), *range.end());
            let ends = [(least.into(), dim.clone(), "{right}"), (dim, most.into(), "{left}")];
            for (left, right, found) in ends {
                let expected = format!("expected {name} between {least} and {most}");
                let message = format!("input '{input}': {expected}, found {found}");
                self.graph.checks.push(Check { left, right, relation: Relation::AtMost, message });
            }
        }
        self.bounds.clone_from(bounds);
        Ok(())
    }
}

fn unknown<'s>(
    name: &str,
    known: impl Iterator<Item = &'s Arc<str>>,
    shapes: &BTreeMap<String, Vec<i64>>,
) -> Diagnostic {
    let known: BTreeSet<&str> = known.map(|name| &**name).collect();
    let message = format!("no input has a dimension '{name}'");
    let mut diagnostic = Diagnostic::error("import-dimension", message);
    if !shapes.is_empty() {
        let stated: Vec<String> = shapes.keys().map(|name| format!("'{name}'")).collect();
        let note = format!("the sizes of {} are stated, and have no bounds", stated.join(", "));
        diagnostic = diagnostic.with_note(note);
    }
    match known.is_empty() {
        true => diagnostic.help("all sizes of the inputs are fixed"),
        false => {
            let known: Vec<&str> = known.into_iter().collect();
            diagnostic.help(format!("the dimensions are {}", known.join(", ")))
        }
    }
}
