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
use super::queries::Fused;
use crate::attributes::{Algorithm, GRAPH, KERNEL, Schedule};
use crate::{fusion::Kind, lowering::tl_to_graph::tl_to_graph, machine::in_context};
use irc_diag::{Diagnostic, Sink, Source};
use irc_json::{At, Format, Node, Reader};
use irc_mlir::{attr, read};
use irc_tensor::Tensor;
use irc_tl::{Constant, Graph};
use std::{collections::BTreeMap, sync::Arc};

/// The kind of file, and the version of its form.
const FORMAT_NAME: &str = "irc-tuning";
const VERSION: i64 = 1;

/// The code of diagnostics.
const CODE: &str = "tuning";

static FORMAT: Format = Format { file: "tuning file", ..Format::of(CODE) };

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
fn key(name: &str, text: &str) -> String {
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
    r.report(Diagnostic::error(CODE, message), node.span(), at, "");
    None
}

/// A kernel whose schedule has choices.
#[derive(Clone, Debug)]
pub struct Tunable {
    /// Its name in a [`Tuning`].
    pub key: String,
    /// What it computes, with random constants.
    pub graph: Graph,
    /// Number of launches in the program; in loops they may be more.
    pub launches: u64,
}

impl Tunable {
    /// Choices to measure; not all of them apply to every kernel.
    pub fn candidates(&self) -> Vec<Schedule> {
        let mut found = vec![];
        for algorithm in Algorithm::ALL.map(Some) {
            let of = Schedule { algorithm, ..Schedule::default() };
            found.push(of);
            found.extend(ROWS.map(|rows| Schedule { rows: Some(rows), ..of }));
            found.extend(DEPTHS.map(|depth| Schedule { depth: Some(depth), ..of }));
        }
        found
    }
}

/// Rows of tiles to measure.
const ROWS: [i64; 7] = [2, 4, 6, 7, 8, 10, 14];

/// Depths of blocks to measure.
const DEPTHS: [i64; 4] = [128, 256, 512, 2048];

/// The kernels of a program whose schedules have choices: products and convolutions of known sizes.
pub(crate) fn tunables(fused: &Fused) -> Vec<Tunable> {
    let tunable = |(symbol, text): (&String, &Arc<str>)| {
        let graph = graph_of(text)?;
        let launches = fused.uses.get(symbol).map_or(1, |used| used.launches);
        Some(Tunable { key: key(&name_of(symbol), text), graph, launches })
    };
    fused.kernels.iter().filter_map(tunable).collect()
}

/// The name of a kernel without the hash at the end of its symbol.
fn name_of(symbol: &str) -> String {
    symbol.rsplit_once('_').map_or(symbol, |(name, _)| name).to_owned()
}

/// The graph of the text of a kernel with a product or convolution, with random constants.
fn graph_of(text: &str) -> Option<Graph> {
    in_context(|context| {
        let module = irc_mlir::parse_module(context, text)?;
        let kernel = read::body_ops(module.as_operation()).into_iter().next()?;
        let info = KERNEL.read(&kernel).filter(|info| info.kind == Kind::Contraction.name())?;
        let (types, _) = read::signature(&kernel)?;
        let mut weights = vec![];
        let attributes = types.iter().enumerate().map(|(index, ty)| {
            if !info.constants.contains(&index) {
                return Some("{}".to_owned());
            }
            let ty = irc_dialects::tl::type_of(*ty).ok()?.known()?;
            weights.push(Constant::of(&Tensor::random(ty, index as u64).ok()?));
            Some(format!("{{tl.weight = {} : i64}}", weights.len() - 1))
        });
        let attributes: Vec<String> = attributes.collect::<Option<_>>()?;
        let attributes = attr::parse(context, &format!("[{}]", attributes.join(", ")));
        irc_mlir::set_attribute(kernel, "arg_attrs", attributes);
        GRAPH.write(kernel, ());
        tl_to_graph(module.as_operation(), &weights).ok()
    })
    .ok()
}
