//! ARK models.
use super::{Document, ImportOptions, Imported, InputFile, Parsed};
use irc_ark_format::model::{self, Document as Model};
use irc_diag::{Diagnostic, Sink, Source};
use irc_dialects::ark::{Origins, import};
use irc_mlir::{Context, Module};
use std::{ops::Range, sync::Arc};

struct ArkModel {
    model: Model,
    source: Source,
    options: ImportOptions,
}

/// Reads an ARK model.
pub fn parse(file: &InputFile) -> Parsed {
    let source = Source::from_bytes(&file.name, &file.bytes);
    let mut sink = Sink::new();
    let options = model::Options { strict: file.options.strict, ..Default::default() };
    let model = model::parse(&source, &options, &mut sink);
    let diagnostics = sink.into_diagnostics();
    let document = model.map(|model| {
        let options = file.options.clone();
        Arc::new(ArkModel { model, source: source.clone(), options }) as Arc<dyn Document>
    });
    Parsed { document, source, diagnostics: diagnostics.into() }
}

impl Document for ArkModel {
    fn import(&self) -> Result<Imported, Vec<Diagnostic>> {
        let options = irc_ark_frontend::ImportOptions {
            results: self.options.results.clone(),
            accumulate: self.options.accumulate,
        };
        irc_ark_frontend::import(&self.model.model, &options).map(Imported::from)
    }

    fn dialect<'c>(&self, context: &'c Context) -> Option<Module<'c>> {
        let file = self.source.file_name();
        let origins = Origins { file: Some(file), nodes: &self.model.origins };
        Some(import(context, &self.model.model, origins))
    }

    fn locate(&self, diagnostics: &mut [Diagnostic]) {
        for diagnostic in diagnostics.iter_mut().filter(|one| one.labels.is_empty()) {
            let Some(path) = diagnostic.path.take() else { continue };
            if let Some(span) = self.span(&path) {
                *diagnostic = diagnostic.clone().at(span, "this op");
            }
            diagnostic.path = Some(self.model.source_path(&path));
        }
    }

    fn ark(&self) -> Option<&Model> {
        Some(&self.model)
    }
}

impl ArkModel {
    /// The span of the first line of the node that a path points into.
    fn span(&self, path: &str) -> Option<Range<usize>> {
        let index: usize = path.strip_prefix("$.Nodes[")?.split(']').next()?.parse().ok()?;
        let origin = self.model.origins.get(index)?;
        let text = self.source.text().get(origin.offset..origin.offset + origin.len)?;
        let line = text.find('\n').unwrap_or(text.len());
        Some(origin.offset..origin.offset + line.max(1))
    }
}
