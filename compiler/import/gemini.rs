//! Frontend files of Gemini: the layers of a network.
use super::{Document, ImportOptions, Imported, InputFile, Parsed};
use irc_diag::{Diagnostic, Sink, Source};
use irc_dialects::gemini;
use irc_gemini_format::{FileKind, Options, frontend};
use irc_mlir::{Context, Location, Module};
use std::sync::Arc;

struct Layers {
    frontend: frontend::Frontend,
    source: Source,
    options: ImportOptions,
}

/// Reads a frontend file.
pub fn parse(file: &InputFile) -> Parsed {
    let source = Source::from_bytes(&file.name, &file.bytes);
    let mut sink = Sink::new();
    let options = Options { strict: file.options.strict, ..Options::default() };
    let layers = frontend::parse(&source, &options, &mut sink);
    let diagnostics = sink.into_diagnostics();
    let document = layers.map(|frontend| {
        let options = file.options.clone();
        Arc::new(Layers { frontend, source: source.clone(), options }) as Arc<dyn Document>
    });
    Parsed { document, source, diagnostics: diagnostics.into() }
}

impl Document for Layers {
    fn import(&self) -> Result<Imported, Vec<Diagnostic>> {
        let results = self.options.results.clone();
        let options = irc_gemini_frontend::ImportOptions { results };
        irc_gemini_frontend::import(&self.frontend, &options).map(Imported::from)
    }

    fn dialect<'c>(&self, context: &'c Context) -> Option<Module<'c>> {
        context.get_or_load_dialect("gemini");
        let whole = Location::new(context, self.source.file_name(), 1, 1);
        let module = Module::new(Location::name(context, "$", whole));
        let mut sink = Sink::new();
        // Locations name the file as in the source.
        let source = Source::new(self.source.file_name(), self.source.text());
        gemini::import(context, module.body(), &source, FileKind::Frontend, &mut sink)?;
        Some(module)
    }

    fn locate(&self, diagnostics: &mut [Diagnostic]) {
        irc_gemini_format::place(&self.source, diagnostics);
    }
}
