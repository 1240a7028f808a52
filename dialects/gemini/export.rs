//! Exports ops to schedules and frontend files.
use super::{
    nested::{AS, Container, ID, KEYS, Nested, OTHERS, SINGLE, under, usual},
    values::{from_attribute, from_pairs},
};
use crate::attributes::{op_integer, op_text, text};
use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_gemini_format::{
    Options,
    frontend::{self, Frontend},
    schedule::{self, Schedule},
};
use irc_json::{At, Json, Layout};
use irc_mlir::{
    OperationLike, OperationRef, PassError, emit_warning,
    read::{array_elements, body_ops, op_name},
};
use std::collections::HashMap;

/// The ops of a schedule's workloads: by index of the core, by workload.
pub type Workloads<'c, 'a> = Vec<Vec<OperationRef<'c, 'a>>>;

/// A schedule and the ops it was exported from.
pub struct Scheduled<'c, 'a> {
    /// The schedule.
    pub schedule: Schedule,
    /// The ops of its workloads.
    pub workloads: Workloads<'c, 'a>,
}

/// Exports a `gemini.schedule`.
///
/// # Errors
/// After diagnostics at the ops concerned: those of the format, and with
/// `options.validate` those of the checks of schedules. Warnings are emitted as well.
pub fn schedule<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    options: &Options,
) -> Result<Scheduled<'c, 'a>, PassError> {
    let schedule = read(op, |source, sink| schedule::parse(source, options, sink))?;
    let cores = body_ops(op).into_iter().filter(|op| op_name(op) == "gemini.core");
    Ok(Scheduled { schedule, workloads: cores.map(body_ops).collect() })
}

/// Exports a `gemini.frontend`.
///
/// # Errors
/// As [`schedule()`].
pub fn frontend(op: OperationRef<'_, '_>, options: &Options) -> Result<Frontend, PassError> {
    read(op, |source, sink| frontend::parse(source, options, sink))
}

/// Parses the text of the file, and reports diagnostics at the ops that they are about.
fn read<T>(
    op: OperationRef<'_, '_>,
    parse: impl Fn(&Source, &mut Sink) -> Option<T>,
) -> Result<T, PassError> {
    let source = Source::new("", object(op)?.print(Layout::Indented));
    let mut sink = Sink::new();
    let read = parse(&source, &mut sink);
    report(op, &sink.into_diagnostics())?;
    read.ok_or_else(|| PassError::at(&op, "the op is not a valid file of its format"))
}

/// A nested op, and its place in the object of its parent.
struct Child<'c, 'a> {
    op: OperationRef<'c, 'a>,
    key: String,
    container: Container,
    /// Its key in a map.
    id: Option<String>,
}

fn children<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Result<Vec<Child<'c, 'a>>, PassError> {
    let parent = op_name(&op);
    let child = |op| child(&parent, op).map_err(|message| PassError::at(&op, message));
    body_ops(op).into_iter().map(child).collect()
}

fn child<'c: 'a, 'a>(parent: &str, op: OperationRef<'c, 'a>) -> Result<Child<'c, 'a>, String> {
    let name = op_name(&op);
    let (key, container) = match (parent, name.as_str()) {
        ("gemini.schedule", "gemini.core") => (op_integer(op, ID)?.to_string(), Container::Alone),
        ("gemini.frontend", "gemini.layer") => (op_text(op, ID)?, Container::Alone),
        (_, name) => {
            let usual = usual(parent, name);
            let named = op.attribute(AS).ok().and_then(text);
            let row = named.map_or(usual, |key| under(parent, &key));
            let row = row.filter(|row| row.child == name);
            let Nested { key, container, .. } =
                row.ok_or_else(|| format!("a '{name}' cannot be in a '{parent}'"))?;
            ((*key).to_owned(), *container)
        }
    };
    let id = (container == Container::Map).then(|| op_text(op, ID)).transpose()?;
    Ok(Child { op, key, container, id })
}

/// The JSON value of an op: for a core the list of its workloads, else an object.
fn value(op: OperationRef<'_, '_>) -> Result<Json, PassError> {
    if op_name(&op) == "gemini.core" {
        return Ok(Json::Array(body_ops(op).into_iter().map(object).collect::<Result<_, _>>()?));
    }
    object(op)
}

fn object(op: OperationRef<'_, '_>) -> Result<Json, PassError> {
    let located = |message: String| PassError::at(&op, message);
    let mut members = attributes(op).map_err(located)?;
    for child in children(op)? {
        let value = value(child.op)?;
        put(&mut members, &child, value).map_err(|message| PassError::at(&child.op, message))?;
    }
    sort(op, &mut members).map_err(located)?;
    Ok(Json::Object(members))
}

type Members = Vec<(Box<str>, Json)>;

/// The keys that are attributes of an op.
fn attributes(op: OperationRef<'_, '_>) -> Result<Members, String> {
    let mut members = vec![];
    for (name, attribute) in op.attributes() {
        let name = name.as_string_ref().as_str().unwrap_or_default();
        match name {
            OTHERS => members.extend(from_pairs(attribute)?),
            name if name == ID || name.contains('.') => {}
            name => members.push((name.into(), from_attribute(attribute)?)),
        }
    }
    Ok(members)
}

/// Adds the value of a child under its key.
fn put(members: &mut Members, child: &Child<'_, '_>, value: Json) -> Result<(), String> {
    let Child { op, key, container, id } = child;
    let found = members.iter_mut().find(|(other, _)| **other == **key).map(|(_, value)| value);
    let is_single = *container == Container::Alone || op.has_attribute(SINGLE);
    match (found, id) {
        (None, None) if is_single => members.push((key.as_str().into(), value)),
        (None, None) => members.push((key.as_str().into(), Json::Array(vec![value]))),
        (None, Some(id)) => {
            let map = Json::Object(vec![(id.as_str().into(), value)]);
            members.push((key.as_str().into(), map));
        }
        (Some(Json::Array(all)), None) if !is_single => all.push(value),
        (Some(Json::Object(all)), Some(id)) => all.push((id.as_str().into(), value)),
        _ => return Err(format!("there is another op or attribute for '{key}'")),
    }
    Ok(())
}

/// Sorts keys by the order that the op states; other keys come last.
fn sort(op: OperationRef<'_, '_>, members: &mut Members) -> Result<(), String> {
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let Ok(keys) = op.attribute(KEYS) else { return Ok(()) };
    let keys: Option<Vec<String>> =
        array_elements(keys).and_then(|keys| keys.into_iter().map(text).collect());
    let keys = keys.ok_or_else(|| format!("expected strings in '{KEYS}'"))?;
    let places: HashMap<&str, usize> =
        keys.iter().enumerate().map(|(place, key)| (key.as_str(), place)).collect();
    members.sort_by_key(|(key, _)| places.get(&**key).copied().unwrap_or(usize::MAX));
    Ok(())
}

/// Reports every diagnostic about a `gemini.schedule` or `gemini.frontend` at the innermost op that contains
/// its path, which starts at the root of the file, with or without `$`.
///
/// # Errors
/// After the diagnostics, if one of them is an error.
pub fn report(op: OperationRef<'_, '_>, diagnostics: &[Diagnostic]) -> Result<(), PassError> {
    if diagnostics.is_empty() {
        return Ok(());
    }
    let mut places = vec![];
    collect(op, &At::ROOT, &mut places);
    let mut failed = Ok(());
    for diagnostic in diagnostics {
        let path = match diagnostic.path.as_deref().unwrap_or("$") {
            path if path.starts_with('$') => path.to_owned(),
            path => format!("$.{path}"),
        };
        let holds = |(place, _): &&(String, _)| {
            let rest = path.strip_prefix(place.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let found = places.iter().filter(holds).max_by_key(|(place, _)| place.len());
        let (place, op) = found.map_or(("$", op), |(place, op)| (place.as_str(), *op));
        let message = message(diagnostic, path.strip_prefix(place).unwrap_or_default());
        match diagnostic.severity {
            Severity::Error => failed = Err(PassError::at(&op, message)),
            _ => emit_warning(&op, &message),
        }
    }
    failed
}

/// The message of a diagnostic at a path within an op, and its code.
fn message(diagnostic: &Diagnostic, place: &str) -> String {
    let place = place.strip_prefix('.').unwrap_or(place);
    let colon = if place.is_empty() { "" } else { ": " };
    let help = diagnostic.help.as_deref().map_or(String::new(), |help| format!("; {help}"));
    format!("{place}{colon}{}{help} [{}]", diagnostic.message, diagnostic.code)
}

/// The paths of all ops in the file.
fn collect<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    at: &At<'_>,
    places: &mut Vec<(String, OperationRef<'c, 'a>)>,
) {
    places.push((at.to_string(), op));
    let mut counts: HashMap<String, usize> = HashMap::new();
    if op_name(&op) == "gemini.core" {
        for (index, op) in body_ops(op).into_iter().enumerate() {
            collect(op, &at.index(index), places);
        }
        return;
    }
    for Child { op, key, container, id } in children(op).unwrap_or_default() {
        let at = at.key(&key);
        match (container, &id) {
            (_, Some(id)) => collect(op, &at.key(id), places),
            (Container::List, _) if !op.has_attribute(SINGLE) => {
                let count = counts.entry(key.clone()).or_default();
                collect(op, &at.index(*count), places);
                *count += 1;
            }
            _ => collect(op, &at, places),
        }
    }
}
