//! Measured choices of the schedules of kernels, in a file.
//!
//! ```json
//! {
//!   "format": "irc-tuning",
//!   "version": 1,
//!   "processor": "znver4",
//!   "kernels": {
//!     "irc_conv_add_relu_64x56x56_0123456789abcdef": {"algorithm": "product", "rows": 7, "depth": 512}
//!   }
//! }
//! ```
//!
//! A kernel is named by its symbol in code of the default schedule, which profiles show: its ops, the shape of its result and
//! a hash of its text and of the processor. So the choices hold for every model with the same kernel.
use super::kernel;
use crate::{
    attributes::{Algorithm, Schedule},
    codegen::{Backend, Target},
};
use irc_diag::{Diagnostic, Sink, Source, clip};
use irc_json::{At, Format, Node, Object, Reader};
use std::collections::{BTreeMap, BTreeSet};

/// The kind of file, and the version of its form.
const FORMAT_NAME: &str = "irc-tuning";
const VERSION: i64 = 1;

static FORMAT: Format = Format { file: "tuning file", ..Format::of("tuning") };

/// The keys of a file, and of the choices of a kernel.
const KEYS: [&str; 4] = ["format", "version", "processor", "kernels"];
const CHOICES: [&str; 3] = ["algorithm", "rows", "depth"];

/// Choices by kernel, measured on a processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tuning {
    /// The name of the processor that the kernels were compiled for.
    pub processor: String,
    /// The choices that are faster than those of the cost model.
    pub kernels: BTreeMap<String, Schedule>,
}

/// What a tuning chooses of a program's kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuned {
    /// The kernels of the tuning that the program has.
    pub kernels: BTreeSet<String>,
    /// Those for which an algorithm is chosen, but which are no convolutions.
    pub without_algorithm: BTreeSet<String>,
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
            let mut reader = Reader::new(&mut sink, &FORMAT, true);
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

    /// Rejects the tuning for code of another processor.
    pub fn check_processor(&self, target: &Target) -> Option<Diagnostic> {
        let (measured, own) = (&self.processor, &target.cpu);
        let message =
            format!("the schedules were measured on {measured}, and this code is for {own}");
        let found = Diagnostic::error("tuning-processor", message).path("$.processor");
        let help = "irc tune measures on this machine; --target-cpu names another processor";
        (measured != own).then(|| found.help(help))
    }

    /// Rejects choices that the kernels of a program do not have, and a tuning without any of its kernels. A note names the
    /// number of kernels that the program does not have.
    pub fn check(&self, tuned: &Tuned) -> Vec<Diagnostic> {
        let (count, found) = (self.kernels.len(), tuned.kernels.len());
        let message = match found {
            0 => format!(
                "the tuning is of another model: the program has none of its {count} kernels"
            ),
            _ => format!("the program has {found} of the {count} kernels"),
        };
        let help = "irc tune measures the program that returns a model's outputs, for the sizes that --shape states";
        let mut diagnostics: Vec<Diagnostic> = vec![];
        if found < count {
            diagnostics.push(match found {
                0 => Diagnostic::error("tuning-model", message).path("$.kernels").help(help),
                _ => Diagnostic::note("tuning-model", message).path("$.kernels"),
            });
        }
        diagnostics.extend(tuned.without_algorithm.iter().map(|kernel| {
            let at = At::ROOT;
            let (kernels, shown) = (at.key("kernels"), clip(kernel));
            let at = kernels.key(kernel).key("algorithm").to_string();
            Diagnostic::error(
                "tuning",
                format!("{shown} is no convolution, and has no choice of algorithms"),
            )
            .path(at)
        }));
        diagnostics
    }

    /// Adds locations in the file to diagnostics of these checks.
    pub fn locate(source: &Source, diagnostics: &mut [Diagnostic]) {
        irc_json::place(source.text(), &FORMAT, diagnostics);
    }

    /// The choices for the kernel with a text at the tensor level, and its name here.
    pub(crate) fn of(&self, text: &str, target: &Target) -> Option<(String, Schedule)> {
        // Hashing the texts of all kernels takes time.
        if self.kernels.is_empty() {
            return None;
        }
        // Schedules are measured in code of LLVM.
        let key = kernel::symbol_of(text, &target.clone().with_backend(Backend::LLVM));
        let schedule = *self.kernels.get(&key)?;
        Some((key, schedule))
    }
}

fn tuning(r: &mut Reader<'_>, tree: &Node<'_>) -> Option<Tuning> {
    let object = r.object(tree, &At::ROOT)?;
    expect_known(r, &object, &KEYS);
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
    expect_known(r, &object, &CHOICES);
    let mut schedule = Schedule::default();
    if let Some(name) = object.get("algorithm") {
        let place = object.at.key("algorithm");
        schedule.algorithm = Algorithm::from_name(r.string(name, &place)?);
        if schedule.algorithm.is_none() {
            let names = Algorithm::ALL.map(Algorithm::name).join(", ");
            return wrong(r, name, &place, format!("expected one of {names}"));
        }
    }
    let rows = ("rows", &mut schedule.rows, Schedule::MAX_ROWS);
    for (key, slot, most) in [rows, ("depth", &mut schedule.depth, MAX_DEPTH)] {
        if let Some(value) = object.get(key) {
            let expected = format!("a whole number from 1 to {most}");
            let place = object.at.key(key);
            let number: i64 = r.integer(value, &place, &expected)?;
            if !(1..=most).contains(&number) {
                r.out_of_range(&expected, value, &place);
                return None;
            }
            *slot = Some(number);
        }
    }
    Some(schedule)
}

/// The maximum depth of a block: more than that of any panel that fits in a cache.
const MAX_DEPTH: i64 = 1 << 16;

/// Reports the keys of an object that the format does not have.
fn expect_known(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, known: &[&str]) {
    for member in object.members.iter().filter(|member| !known.contains(&&*member.key)) {
        let message = format!("unknown key `{}`", clip(&member.key));
        r.unknown(member, object.at, known, ("tuning", message));
    }
}

/// Reports a wrong value.
fn wrong<T>(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>, message: String) -> Option<T> {
    r.report(Diagnostic::error("tuning", message), node.span(), at, "");
    None
}
