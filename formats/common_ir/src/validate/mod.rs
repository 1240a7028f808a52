//! Validates modules: the rules of Common IR, and those of them that apply to ONNX.
//!
//! Before: a module as it was read, and the libraries it imports. After: every violation of a rule is
//! a diagnostic at its item's path, whose code and message name the rule. The module is unchanged.
//! Takes time linear in the module.

mod body;
mod call;
mod declaration;
mod document;
mod markup;
mod name;
mod recursion;
mod signature;
mod symbols;
mod tensor;
mod types;
mod typing;

use irc_diag::{Diagnostic, Severity, Sink};

use crate::library::Libraries;
use crate::model::{Module, Path, Schema};
use crate::rules::diagnostic;

pub use crate::rules::{Level, Rule};
pub(crate) use symbols::{Callee, Symbols};
pub use tensor::data_error;

/// The intended use of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Either.
    #[default]
    Any,
    /// The root of a computation: a graph.
    Root,
}

/// Options of validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValidateOptions {
    /// How strict validation is.
    pub level: Level,
    /// The intended use.
    pub role: Role,
    /// Whether bare names of undeclared operators refer to the standard library.
    pub implicit_std: bool,
}

/// Validates a module, and the libraries it imports; every violation of a rule goes to `sink`.
///
/// A diagnostic in a library is at the import that leads to it, with its location in a note.
pub fn validate(
    module: &Module,
    libraries: &Libraries,
    options: &ValidateOptions,
    sink: &mut Sink,
) {
    check(module, libraries, options, sink);
    for library in libraries.iter() {
        let mut found = Sink::new();
        let as_library = ValidateOptions { role: Role::Any, ..*options };
        check(&library.module, libraries, &as_library, &mut found);
        sink.extend(
            found.into_diagnostics().into_iter().map(|diagnostic| library.relocate(diagnostic)),
        );
    }
    recursion::report(module, libraries, options, sink);
}

fn check(module: &Module, libraries: &Libraries, options: &ValidateOptions, sink: &mut Sink) {
    let symbols = Symbols::new(module, libraries, options.implicit_std);
    let mut checker = Checker {
        module,
        symbols: &symbols,
        options,
        sink,
        body: None,
        hints: MAX_HINTS,
        worded: 0,
    };
    checker.document();
    checker.bundled(libraries);
    checker.declarations();
    checker.bodies();
}

/// The state of validation.
pub(crate) struct Checker<'c> {
    module: &'c Module,
    symbols: &'c Symbols<'c>,
    options: &'c ValidateOptions,
    sink: &'c mut Sink,
    /// Domain of the function whose body is checked.
    body: Option<&'c str>,
    /// Number of hints that may still be computed: each takes time.
    hints: usize,
    /// Number of detailed diagnostics so far.
    worded: usize,
}

/// Maximum number of detailed diagnostics: further ones would hardly be read, and take time.
const MAX_WORDED: usize = 5000;

/// Maximum number of diagnostics with a hint.
const MAX_HINTS: usize = 32;

impl Checker<'_> {
    /// Whether the module is an ONNX model.
    fn is_onnx(&self) -> bool {
        self.module.schema == Schema::Onnx
    }

    /// Whether one more hint may be computed.
    fn may_hint(&mut self) -> bool {
        self.hints = self.hints.saturating_sub(1);
        self.hints > 0
    }

    /// The severity of a violation of a rule here; `None` if the rule is not checked.
    fn severity(&self, rule: Rule) -> Option<Severity> {
        rule.severity(self.options.level, self.module.schema)
    }

    /// Reports a violation.
    fn report(&mut self, rule: Rule, at: &Path<'_>, message: impl std::fmt::Display) {
        self.report_with(rule, at, message, |diagnostic| diagnostic);
    }

    /// Reports a violation with further changes to the diagnostic.
    fn report_with(
        &mut self,
        rule: Rule,
        at: &Path<'_>,
        message: impl std::fmt::Display,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let Some(severity) = self.severity(rule) else { return };
        self.worded += 1;
        let found = match self.worded > MAX_WORDED {
            true => diagnostic(rule, severity, at, format_args!("violated: {}", rule.title())),
            false => more(diagnostic(rule, severity, at, message)),
        };
        self.sink.push(found);
    }

    /// Reports at most a warning.
    fn warn(&mut self, rule: Rule, at: &Path<'_>, message: impl std::fmt::Display) {
        if let Some(severity) = self.severity(rule) {
            let severity = severity.max(Severity::Warning);
            self.sink.push(diagnostic(rule, severity, at, message));
        }
    }
}
