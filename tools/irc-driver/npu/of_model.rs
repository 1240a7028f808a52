//! Whether a schedule or a program is of a model: if not, one sentence names both and the first difference.
use super::reasons::{advised, first, is_of_nodes};
use crate::error::Error;
use irc::{
    Model, NpuValues,
    npu::{Layers, Operand, fingerprint, known_layers, stated_layers, stated_splits},
    npu_schedule::Splits,
};
use irc_diag::{Diagnostic, counted};
use irc_gemini_format::{frontend::Frontend, schedule::Schedule};
use irc_npu::{Op, Program, registers::Registers};
use irc_npu_emit::KnownLayer;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The commands that write programs of models.
pub const WRITES: &str = "irc compile MODEL --target …, or irc compile SCHEDULE --model MODEL, writes the program of a model";

/// A file and the model that it should be of, by name.
#[derive(Clone, Copy)]
pub struct Pair<'n> {
    /// The file with the schedule or the program.
    pub file: &'n str,
    /// The file with the model.
    pub model: &'n str,
}

impl Pair<'_> {
    fn no_schedule(&self, difference: &str) -> Error {
        Error::problem(format!("{} is not a schedule of {}: {difference}", self.file, self.model))
    }

    fn no_program(&self, difference: &str) -> Error {
        let message = format!("{} is not a program of {}: {difference}", self.file, self.model);
        Error::problem(message).help(WRITES)
    }
}

/// The layers of a model that a schedule is of, in the pieces that it states.
///
/// # Errors
/// If the layers of the schedule are others; what the NPU does not compute of a model that it may be of.
pub fn layers(
    pair: Pair<'_>,
    schedule: &Schedule,
    model: &Model<'_>,
) -> Result<(Arc<Layers>, Splits), Error> {
    let whole = model.npu_layers();
    let whole = whole.map_err(|error| not_computed(pair, schedule, model, error))?;
    let splits = stated_splits(names(schedule), &whole.network);
    let layers = model.npu_layers_in_pieces(&splits);
    let layers = layers.map_err(|error| pair.no_schedule(&first(&error)))?;
    match schedule_difference(schedule, &layers) {
        Some(difference) => Err(pair.no_schedule(&difference)),
        None => Ok((layers, splits)),
    }
}

/// The index of the part of a model that a schedule is of.
pub fn part(pair: Pair<'_>, schedule: &Schedule, parts: &[Model<'_>]) -> Result<usize, Error> {
    let own = results(schedule);
    let in_pieces = |part: &Model<'_>| {
        let whole = part.npu_layers()?;
        let splits = stated_splits(names(schedule), &whole.network);
        Ok::<_, irc::Error>(part.npu_layers_in_pieces(&splits).unwrap_or(whole))
    };
    let all = parts.iter().map(in_pieces).collect::<Result<Vec<_>, _>>()?;
    let named: Vec<_> = all.iter().map(|layers| places(layers)).collect();
    let is_same = |layers: &BTreeMap<&str, usize>| {
        layers.len() == own.len() && own.iter().all(|(name, _)| layers.contains_key(name))
    };
    let first = own.first().map_or("", |(name, _)| *name);
    let has_first = |layers: &BTreeMap<&str, usize>| layers.contains_key(first);
    let found = named.iter().position(is_same).or_else(|| named.iter().position(has_first));
    let no_part =
        || pair.no_schedule(&format!("no part that the NPU computes has a layer `{first}`"));
    let found = found.ok_or_else(no_part)?;
    layers(pair, schedule, &parts[found])?;
    Ok(found)
}

/// The error about a model of which the NPU does not compute all: with advice for the schedule of a part, or else that
/// the schedule is of another model.
pub fn not_computed(
    pair: Pair<'_>,
    schedule: &Schedule,
    model: &Model<'_>,
    error: irc::Error,
) -> Error {
    let is_of_part = || {
        let parts = model.npu_division().map(|division| division.parts());
        parts.is_ok_and(|parts| part(pair, schedule, &parts).is_ok())
    };
    match !is_of_nodes(&error) || is_of_part() {
        true => advised(error).into(),
        false => pair.no_schedule(&not_all(&error)),
    }
}

/// What the NPU does not compute first.
fn not_all(error: &irc::Error) -> String {
    format!("the NPU does not compute all of the model: {}", first(error))
}

/// The diagnostics of a schedule and a frontend file: if their layers differ, the first difference only.
pub fn check_pair(pair: Pair<'_>, schedule: &Schedule, frontend: &Frontend) -> Vec<Diagnostic> {
    let all = irc_gemini_format::check_pair(schedule, frontend);
    let is_other = |found: &&Diagnostic| {
        matches!(found.code, "gem-m1-layer" | "gem-m2-extent" | "gem-m3-unscheduled")
    };
    let count = all.iter().filter(is_other).count();
    let Some(first) = all.iter().find(is_other) else { return all };
    let Pair { file, model } = pair;
    let message = format!("{file} is not a schedule of {model}: {}", first.message);
    let found = Diagnostic { message, ..first.clone() };
    vec![match count - 1 {
        0 => found,
        more => found.with_note(counted(more, "more difference")),
    }]
}

/// The names of the layers of workloads.
fn names(schedule: &Schedule) -> impl Iterator<Item = &str> {
    schedule.workloads().map(|(_, _, workload)| workload.layer_name.as_str())
}

/// The layers of a schedule in the order of its workloads, with the channels, rows and columns of their results.
fn results(schedule: &Schedule) -> Vec<(&str, [i64; 3])> {
    let mut all: Vec<(&str, [i64; 3])> = vec![];
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, _, workload) in schedule.workloads() {
        let name = workload.layer_name.as_str();
        let place = *places.entry(name).or_insert(all.len());
        if place == all.len() {
            all.push((name, [0; 3]));
        }
        for (axis, size) in all[place].1.iter_mut().enumerate() {
            *size = (*size).max(workload.extent.axis(axis + 1).1.saturating_add(1));
        }
    }
    all
}

/// The first difference between the layers of a schedule and those of a model, in the order of the schedule.
fn schedule_difference(schedule: &Schedule, layers: &Layers) -> Option<String> {
    let nodes = layers.network.nodes();
    let places = places(layers);
    let stated = stated_layers(schedule);
    let known = known_layers(&layers.network, &layers.facts(), &[]);
    let made = sizes(layers);
    let mut seen = BTreeSet::new();
    for (name, found) in results(schedule) {
        let Some(&place) = places.get(name) else {
            return Some(format!("the model has no layer `{name}`"));
        };
        seen.insert(place);
        let expected = made[place];
        if found != expected {
            return Some(format!(
                "the result of layer `{name}` is {found:?} in the schedule, and {expected:?} in the model"
            ));
        }
        if let Some((stated, known)) = stated.get(name).zip(known.get(name)) {
            let (found, expected) = (window(stated), window(known));
            if found != expected {
                return Some(format!(
                    "layer `{name}` has {found} in the schedule, and {expected} in the model"
                ));
            }
        }
    }
    let missing = (0..nodes.len()).find(|place| !seen.contains(place))?;
    Some(format!("the schedule has no layer `{}`", nodes[missing].layer.name))
}

/// The indices of layers by name.
fn places(layers: &Layers) -> BTreeMap<&str, usize> {
    let nodes = layers.network.nodes().iter().enumerate();
    nodes.map(|(index, node)| (node.layer.name.as_str(), index)).collect()
}

/// The channels, rows and columns of the results of layers.
fn sizes(layers: &Layers) -> Vec<[i64; 3]> {
    let made = layers.network.nodes().iter().map(|node| node.layer.output);
    made.map(|made| [made.channels, made.rows, made.columns].map(signed)).collect()
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn window(layer: &KnownLayer) -> String {
    let KnownLayer { kernel, stride, padding, groups, .. } = layer;
    format!("a window {kernel:?}, strides {stride:?}, padding {padding:?}, groups {groups}")
}

/// Rejects a program that states other layers than those of the model.
///
/// # Errors
/// If the program is of another model; what the NPU does not compute of a model that it may be of.
pub fn expect_program(pair: Pair<'_>, program: &Program, model: &Model<'_>) -> Result<(), Error> {
    let Some(stated) = &program.model else { return Ok(()) };
    let layers = match model.npu_layers() {
        Ok(layers) => layers,
        Err(error) if is_of_nodes(&error) => {
            return Err(pair.no_program(&not_all(&error)));
        }
        Err(error) => return Err(error.into()),
    };
    let splits = splits_of(pair, program)?;
    // Other models may not have layers that can be split so.
    let layers = model.npu_layers_in_pieces(&splits).unwrap_or(layers);
    match stated.layers == fingerprint(&layers, &splits, &[], layers.images).layers {
        true => Ok(()),
        false => Err(pair.no_program(&program_difference(program, &layers))),
    }
}

/// The pieces into which layers are split in a program.
fn splits_of(pair: Pair<'_>, program: &Program) -> Result<Splits, Error> {
    let stated = program.model.as_ref().and_then(|model| model.splits.as_deref());
    let splits = stated.unwrap_or_default().parse();
    splits.map_err(|why: String| Error::problem(format!("{}: splits: {why}", pair.file)))
}

/// The first difference between the layers of a program and those of a model, in the order of its instructions. A
/// program has numbers in place of names: those of the layers in the order of their names.
fn program_difference(program: &Program, layers: &Layers) -> String {
    let nodes = layers.network.nodes();
    let instructions = program.cores.iter().flat_map(|core| &core.code);
    let last = instructions.map(|instruction| instruction.origin.slyr).max().unwrap_or(-1);
    let count = usize::try_from(last.saturating_add(1)).unwrap_or(0);
    if count != nodes.len() {
        return format!(
            "the program has {}, and the model {}",
            counted(count, "layer"),
            nodes.len()
        );
    }
    let mut places: Vec<usize> = (0..nodes.len()).collect();
    places.sort_by_key(|&place| &nodes[place].layer.name);
    let (made, read) = (sizes(layers), inputs(layers));
    for core in &program.cores {
        let mut registers = Registers::default();
        for instruction in &core.code {
            // The simulator reports errors of registers.
            let _ = registers.write(instruction);
            let number = usize::try_from(instruction.origin.slyr).ok();
            let Some(&place) = number.and_then(|number| places.get(number)) else { continue };
            let found = match &instruction.op {
                Op::StaMov(op) => set(&registers.sta, op.rs).map(|cfg| ("stores", cfg.d_tile)),
                Op::LdaMov(op) => set(&registers.lda, op.rs)
                    .filter(|cfg| cfg.bas == ACTIVATIONS)
                    .map(|cfg| ("loads", cfg.s_tile)),
                _ => None,
            };
            let Some((verb, found)) = found else { continue };
            let found = found.map(i64::from);
            let expected = match verb {
                "stores" => vec![made[place]],
                _ => operands(layers, place, &made, &read),
            };
            if !expected.contains(&found) {
                let name = &nodes[place].layer.name;
                let expected: Vec<String> =
                    expected.iter().map(|size| format!("{size:?}")).collect();
                return format!(
                    "layer `{name}` {verb} {found:?} in the program, and {} in the model",
                    expected.join(" or ")
                );
            }
        }
    }
    "its layers have other names, windows or operands".into()
}

/// The memory of activations in DRAM.
const ACTIVATIONS: u32 = 0;

fn set<T>(sets: &[Option<T>], number: u32) -> Option<&T> {
    sets.get(number as usize)?.as_ref()
}

/// The channels, rows and columns of the inputs of a network, as far as any layer reads them.
fn inputs(layers: &Layers) -> BTreeMap<&str, [i64; 3]> {
    let mut all: BTreeMap<&str, [i64; 3]> = BTreeMap::new();
    for (node, origin) in layers.network.nodes().iter().zip(&layers.origins) {
        for operand in &origin.operands {
            let Operand::Value { name, channels, .. } = operand else { continue };
            let own = [channels.end, node.input.rows, node.input.columns].map(signed);
            let size = all.entry(name.as_str()).or_insert(own);
            size.iter_mut().zip(own).for_each(|(size, own)| *size = (*size).max(own));
        }
    }
    all
}

/// The sizes of what a layer reads.
fn operands(
    layers: &Layers,
    place: usize,
    made: &[[i64; 3]],
    read: &BTreeMap<&str, [i64; 3]>,
) -> Vec<[i64; 3]> {
    let origin = &layers.origins[place];
    let of = origin.operands.iter().filter_map(|operand| match operand {
        Operand::Layer(layer) => made.get(*layer).copied(),
        Operand::Value { name, .. } => read.get(name.as_str()).copied(),
    });
    let of_weights = layers.network.nodes()[place].weights.iter().map(|&layer| made[layer]);
    let mut all: Vec<[i64; 3]> = of.chain(of_weights).collect();
    all.dedup();
    all
}

/// What the layers of a model compute whose program is run, if the program has its numbers.
///
/// # Errors
/// If the program has the numbers of another model, or none; every layer without numbers of a model that it may be of.
pub fn values_of_program(
    pair: Pair<'_>,
    program: &Program,
    model: &Model<'_>,
) -> Result<Arc<NpuValues>, Error> {
    let values = match model.npu_values(&splits_of(pair, program)?) {
        Ok(values) => values,
        Err(error) if program.model.is_some() && is_of_nodes(&error) => {
            let why = format!("it has the numbers of a quantised model, and {}", first(&error));
            return Err(pair.no_program(&why));
        }
        Err(error) => return Err(error.into()),
    };
    let expected = values.fingerprint(values.layers.images);
    let Some(found) = &program.model else {
        let message = format!(
            "{} states no model: it may have placeholder constants, or those of another model",
            pair.file
        );
        return Err(Error::problem(message).help(WRITES));
    };
    if found.numbers != expected.numbers {
        return Err(pair.no_program("it has the scales and zero points of another model"));
    }
    if !found.images.is_multiple_of(expected.images) {
        return Err(Error::problem(format!(
            "{} computes {} at once, and {} has {}",
            pair.file,
            counted(found.images, "image"),
            pair.model,
            counted(expected.images, "image")
        ))
        .help("compile the program for a multiple of the images of the model"));
    }
    Ok(values)
}
