//! The document as a whole: metadata, documentation, imports.

use super::{Checker, Role, Rule, markup};
use crate::model::{Graph, Metadata, Module, Path, ProducerVersion};

/// The newest version of ONNX's format that is known.
const NEWEST_ONNX: i64 = 14;

impl Checker<'_> {
    pub(super) fn document(&mut self) {
        let Module { metadata, graph, .. } = self.module;
        self.role(graph.as_ref());
        self.metadata(metadata);
        let at = Path::ROOT;
        self.doc(metadata.doc.as_deref(), &at.field("metadata").field("doc"));
        if let Some(doc) = &metadata.license {
            self.doc(Some(doc), &at.field("metadata").field("license"));
        }
        for (index, import) in self.module.imports.iter().enumerate() {
            if let Some(error) = crate::library::reference_error(import) {
                let message = format_args!("import `{import}` {error}");
                self.report(Rule::R60, &at.index("import", index), message);
            }
        }
    }

    fn role(&mut self, graph: Option<&Graph>) {
        let is_empty = |graph: &Graph| {
            graph.nodes.is_empty() && graph.inputs.is_empty() && graph.outputs.is_empty()
        };
        let has_symbols = !self.module.operators.is_empty() || !self.module.functions.is_empty();
        let is_library = match graph {
            None => self.options.role == Role::Root,
            // A file that was detected as a graph by its field order may be none.
            Some(graph) => is_empty(graph) && has_symbols && !self.is_onnx(),
        };
        if is_library {
            let message = "the document is a library: it has functions or operators and no graph";
            self.report(Rule::R15, &Path::ROOT, message);
        }
    }

    fn metadata(&mut self, metadata: &Metadata) {
        let kind = if self.module.is_library() { "library" } else { "graph" };
        let root = Path::ROOT;
        let at = root.field("metadata");
        match metadata.name.as_deref() {
            None | Some("") => {
                self.report(Rule::R03, &root, format_args!("the {kind} has no name"));
            }
            Some(name) => {
                self.name(&format!("the name of the {kind}"), Some(name), &at.field("name"))
            }
        }
        match metadata.domain.as_deref() {
            None | Some("") => {
                self.report(Rule::R04, &root, format_args!("the {kind} has no domain"));
            }
            Some(domain) => self.domain(domain, &at.field("domain")),
        }
        self.versions(metadata, &at);
        if metadata.doc.as_deref().is_none_or(|doc| doc.trim().is_empty()) {
            self.report(Rule::R10, &root, format_args!("the {kind} is not documented"));
        }
    }

    fn versions(&mut self, metadata: &Metadata, at: &Path<'_>) {
        let newest = if self.is_onnx() { NEWEST_ONNX } else { 1 };
        match metadata.ir_version {
            None => self.report(Rule::R07, &Path::ROOT, "the version of the format is missing"),
            Some(version) if !(1..=newest).contains(&version) => {
                let known = if newest == 1 { "1".to_owned() } else { format!("1 to {newest}") };
                let message =
                    format_args!("unknown version {version} of the format, expected {known}");
                self.report(Rule::R07, &at.field("ir_version"), message);
            }
            Some(_) => {}
        }
        if metadata.model_version.is_none() {
            self.report(Rule::R08, &Path::ROOT, "the version of the model is missing");
        }
        if let Some(ProducerVersion::Text(text)) = &metadata.producer_version {
            let message =
                format_args!("`producer_version` is the text `{text}`, expected a number");
            self.report(Rule::R09, &at.field("producer_version"), message);
        }
    }

    /// Checks a documentation string.
    pub(super) fn doc(&mut self, doc: Option<&str>, at: &Path<'_>) {
        let Some(doc) = doc.filter(|_| !self.is_onnx()) else { return };
        if let Some(tag) = markup::html(doc) {
            self.report(Rule::R11, at, format_args!("the documentation contains HTML: `{tag}`"));
        } else if let Some(found) = markup::other_markup(doc) {
            self.report(Rule::R12, at, format_args!("the documentation contains {found}"));
        }
    }
}
