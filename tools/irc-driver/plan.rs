//! ARK plans of models.
use crate::{console::Console, stop::Stop};
use irc::planner::{self, Finding, Target};
use irc_ark_format::{
    model::{self, Document},
    plan,
};
use irc_diag::{Diagnostic, Sink, Source};

/// The target that `--arch` and `--processors` name.
pub fn target(arch: &str, processors: Option<u32>) -> Result<Target, Stop> {
    let architecture = planner::architecture(arch).map_err(Stop::Usage)?;
    Target::new(architecture, processors.map(i64::from)).map_err(Stop::Usage)
}

/// The plan of a model as JSON; the planner's warnings are on the console.
pub fn plan(console: &Console, source: &Source, target: &Target) -> Result<String, Stop> {
    let mut sink = Sink::new();
    let Some(document) = model::parse(source, &model::Options::default(), &mut sink) else {
        return Err(Stop::Findings(source.clone(), sink.into_diagnostics()));
    };
    let placed = |findings: Vec<Finding>, severity| -> Vec<Diagnostic> {
        let place = |finding| diagnostic(finding, severity, source, &document);
        findings.into_iter().map(place).collect()
    };
    let planned = planner::plan(&document.model, target).map_err(|findings| {
        Stop::Findings(source.clone(), placed(findings, irc_diag::Severity::Error))
    })?;
    console.findings(source, &placed(planned.warnings, irc_diag::Severity::Warning));
    Ok(plan::write(&planned.plan))
}

/// A planner's finding in the user's file.
fn diagnostic(
    finding: Finding,
    severity: irc_diag::Severity,
    source: &Source,
    document: &Document,
) -> Diagnostic {
    let diagnostic = Diagnostic::new(severity, "ark-plan", finding.message);
    let Some(index) = finding.node else { return diagnostic };
    let diagnostic = diagnostic.path(document.source_path(&format!("$.Nodes[{index}].Op")));
    let Some(origin) = document.origins.get(index) else { return diagnostic };
    let text = source.text().get(origin.offset..origin.offset + origin.len).unwrap_or_default();
    let line = text.find('\n').unwrap_or(text.len());
    diagnostic.at(origin.offset..origin.offset + line.max(1), "this node")
}
