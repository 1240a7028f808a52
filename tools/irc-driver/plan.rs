//! ARK plans of models.
use crate::{console::Console, error::Error, input};
use irc::{
    Model,
    planner::{self, NodeDiagnostic, Planner, Target},
};
use irc_ark_format::{
    model::{self, Document},
    plan,
};
use irc_ark_model::ArkModel;
use irc_diag::{Diagnostic, Severity, Sink, Source};
use std::path::Path;

/// The flags of the planner.
pub struct Planning<'a> {
    /// `--arch`.
    pub arch: &'a str,
    /// `--processors`.
    pub processors: Option<u32>,
    /// `--planner`.
    pub planner: irc_cli::Planner,
    /// `--config-rules`.
    pub rules: Option<&'a Path>,
}

/// The options of the planner, and the file of the rules.
pub struct Options {
    /// The options of the planner.
    pub planner: planner::Options,
    rules: Option<Source>,
}

/// The options of the flags; warnings about the rules are shown on the console.
pub fn options(console: &Console, flags: &Planning<'_>) -> Result<Options, Error> {
    let of_flag = |flag: &str, error: String| Error::Usage(format!("{flag}: {error}"));
    let architecture =
        planner::architecture(flags.arch).map_err(|error| of_flag("--arch", error))?;
    let target = Target::new(architecture, flags.processors.map(i64::from))
        .map_err(|error| of_flag("--processors", error))?;
    let planner = match flags.planner {
        irc_cli::Planner::Irc => Planner::Irc,
        irc_cli::Planner::Ark => Planner::Ark,
    };
    let options = planner::Options { planner, ..planner::Options::new(target) };
    let Some(path) = flags.rules else { return Ok(Options { planner: options, rules: None }) };
    let name = path.to_string_lossy();
    let source = input::source(&name, &input::read(&name)?);
    let mut sink = Sink::new();
    let Some(rules) = planner::rules::read(&source, &mut sink) else {
        return Err(Error::Diagnostics(source, sink.into_diagnostics()));
    };
    console.diagnostics(&source, sink.diagnostics());
    Ok(Options { planner: planner::Options { rules, ..options }, rules: Some(source) })
}

/// The plan of a model as JSON; the planner's warnings are shown on the console.
pub fn plan(console: &Console, source: &Source, options: &Options) -> Result<String, Error> {
    let mut sink = Sink::new();
    let Some(document) = model::parse(source, &model::Options::default(), &mut sink) else {
        return Err(Error::Diagnostics(source.clone(), sink.into_diagnostics()));
    };
    plan_document(console, source, &document, options)
}

/// The plan, as JSON, of the ARK model that a model was converted to. The ops have the origins of the model's nodes as
/// names.
pub fn plan_converted(
    console: &Console,
    model: &Model<'_>,
    ark: &ArkModel,
    options: &Options,
) -> Result<String, Error> {
    let place = |found: NodeDiagnostic, severity| {
        let diagnostic = Diagnostic::new(severity, "ark-plan", found.message);
        let mut diagnostic = match found.node.and_then(|index| ark.model.nodes.get(index)) {
            Some(node) => diagnostic.path(&node.op.name),
            None => diagnostic,
        };
        model.locate(std::slice::from_mut(&mut diagnostic));
        diagnostic
    };
    plan_of(console, (&model.source(), &ark.model), options, place)
}

fn plan_document(
    console: &Console,
    source: &Source,
    document: &Document,
    options: &Options,
) -> Result<String, Error> {
    let place = |found, severity| diagnostic(found, severity, source, document);
    plan_of(console, (source, &document.model), options, place)
}

fn plan_of(
    console: &Console,
    (source, model): (&Source, &model::Model),
    options: &Options,
    place: impl Fn(NodeDiagnostic, Severity) -> Diagnostic,
) -> Result<String, Error> {
    if let Some(rules) = &options.rules {
        let found = options.planner.rules.diagnostics(model);
        if found.iter().any(Diagnostic::is_error) {
            return Err(Error::Diagnostics(rules.clone(), found));
        }
        console.diagnostics(rules, &found);
    }
    let placed = |diagnostics: Vec<NodeDiagnostic>, severity| -> Vec<Diagnostic> {
        diagnostics.into_iter().map(|found| place(found, severity)).collect()
    };
    let planned = planner::plan(model, &options.planner).map_err(|diagnostics| {
        Error::Diagnostics(source.clone(), placed(diagnostics, Severity::Error))
    })?;
    console.diagnostics(source, &placed(planned.warnings, Severity::Warning));
    Ok(plan::write(&planned.plan))
}

/// A planner's diagnostic, located in the user's file.
fn diagnostic(
    found: NodeDiagnostic,
    severity: Severity,
    source: &Source,
    document: &Document,
) -> Diagnostic {
    let diagnostic = Diagnostic::new(severity, "ark-plan", found.message);
    let Some(index) = found.node else { return diagnostic };
    let Some(origin) = document.origins.get(index) else { return diagnostic };
    let diagnostic = diagnostic.path(document.source_path(&format!("$.Nodes[{index}].Op")));
    let text = source.text().get(origin.offset..origin.offset + origin.len).unwrap_or_default();
    let line = text.find('\n').unwrap_or(text.len());
    diagnostic.at(origin.offset..origin.offset + line.max(1), "this node")
}
