//! Measured choices of the schedules of kernels, in a file.
//!
//! ```json
//! {
//!   "format": "irc-tuning",
//!   "version": 1,
//!   "processor": "znver4",
//!   "kernels": {
//!     "conv_add_relu_64x56x56_0123456789abcdef": {"algorithm": "product", "rows": 7, "depth": 512}
//!   }
//! }
//! ```
//!
//! A kernel is named by its ops, the shape of its result and a hash of its text, so that the choices hold for every model
//! with the same kernel.
use crate::attributes::{Algorithm, Schedule};
use irc_diag::{Diagnostic, Sink, Source};
use irc_json::{At, Format, Node, Reader};
use std::collections::BTreeMap;

/// The kind of file, and the version of its form.
const FORMAT_NAME: &str = "irc-tuning";
const VERSION: i64 = 1;

static FORMAT: Format = Format { file: "tuning file", ..Format::of("tuning") };

/// Choices by kernel, measured on a processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tuning {
    /// The name of the processor that the kernels were compiled for.
    pub processor: String,
    /// The choices that are faster than those of the cost model.
    pub kernels: BTreeMap<String, Schedule>,
}

impl Tuning {
    /// Reads a file.
    ///
    /// # Errors
    /// Diagnostics with places in the file.
    pub fn from_json(source: &Source) -> Result<Self, Vec<Diagnostic>> {
        let mut sink = Sink::new();
        let tree = irc_json::parse(source, &FORMAT, &mut sink);
        let tuning = tree.and_then(|tree| {
            let mut reader = Reader::new(&mut sink, &FORMAT, false);
            tuning(&mut reader, &tree)
        });
        match tuning.filter(|_| sink.error_count() == 0) {
            Some(tuning) => Ok(tuning),
            None => Err(sink.into_diagnostics()),
        }
    }

    /// The text of a file.
    pub fn to_json(&self) -> String {
        let mut kernels = serde_json::Map::new();
        for (name, schedule) in &self.kernels {
            let mut choices = serde_json::Map::new();
            if let Some(algorithm) = schedule.algorithm {
                choices.insert("algorithm".to_owned(), algorithm.name().into());
            }
            for (key, value) in [("rows", schedule.rows), ("depth", schedule.depth)] {
                if let Some(value) = value {
                    choices.insert(key.to_owned(), value.into());
                }
            }
            kernels.insert(name.clone(), choices.into());
        }
        let file = serde_json::json!({
            "format": FORMAT_NAME,
            "version": VERSION,
            "processor": self.processor,
            "kernels": kernels,
        });
        format!("{file:#}\n")
    }

    /// The choices for a kernel with this name and text.
    pub(crate) fn of(&self, name: &str, text: &str) -> Option<Schedule> {
        // Hashing the texts of all kernels takes time.
        if self.kernels.is_empty() {
            return None;
        }
        self.kernels.get(&key(name, text)).copied()
    }
}

/// The name of a kernel in a file.
pub(crate) fn key(name: &str, text: &str) -> String {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{name}_{}", &hash[..16])
}

fn tuning(r: &mut Reader<'_>, tree: &Node<'_>) -> Option<Tuning> {
    let object = r.object(tree, &At::ROOT)?;
    let format = r.required(&object, "format")?;
    let at = object.at.key("format");
    if r.string(format, &at)? != FORMAT_NAME {
        return wrong(r, format, &at, format!("expected \"{FORMAT_NAME}\""));
    }
    let version = r.required(&object, "version")?;
    let at = object.at.key("version");
    if r.integer::<i64>(version, &at, "a version")? != VERSION {
        return wrong(r, version, &at, format!("expected version {VERSION}"));
    }
    let processor = r.required(&object, "processor")?;
    let processor = r.string(processor, &object.at.key("processor"))?.to_owned();
    let kernels = r.required(&object, "kernels")?;
    let at = object.at.key("kernels");
    let listed = r.object(kernels, &at)?;
    let mut found = BTreeMap::new();
    for (name, choices) in listed.entries() {
        found.insert(name.to_owned(), schedule(r, choices, &at.key(name))?);
    }
    Some(Tuning { processor, kernels: found })
}

fn schedule(r: &mut Reader<'_>, choices: &Node<'_>, at: &At<'_>) -> Option<Schedule> {
    let object = r.object(choices, at)?;
    let mut schedule = Schedule::default();
    if let Some(name) = object.get("algorithm") {
        let place = object.at.key("algorithm");
        schedule.algorithm = Algorithm::from_name(r.string(name, &place)?);
        if schedule.algorithm.is_none() {
            let names = Algorithm::ALL.map(Algorithm::name).join(", ");
            return wrong(r, name, &place, format!("expected one of {names}"));
        }
    }
    for (key, slot) in [("rows", &mut schedule.rows), ("depth", &mut schedule.depth)] {
        if let Some(value) = object.get(key) {
            let place = object.at.key(key);
            let number: i64 = r.integer(value, &place, "a number")?;
            if number < 1 {
                return wrong(r, value, &place, "expected at least 1".to_owned());
            }
            *slot = Some(number);
        }
    }
    Some(schedule)
}

/// Reports a wrong value.
fn wrong<T>(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>, message: String) -> Option<T> {
    r.report(Diagnostic::error("tuning", message), node.span(), at, "");
    None
}
