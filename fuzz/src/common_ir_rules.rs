//! A graph and its libraries as text, with a line `%%` between them: the validator never panics, each
//! diagnostic has a place, and what is valid is valid after bundling.

use irc_common_format::library::{Libraries, Library, bundle};
use irc_common_format::model::Module;
use irc_common_format::validate::{Level, ValidateOptions, validate};
use irc_common_format::{Document, Format, Options, read};
use irc_diag::{Sink, render};

/// Checks the properties of the module for a text; bytes that are not UTF-8 are skipped.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut parts = text.split("\n%%\n");
    let Some(root) = parts.next().and_then(|text| document(text, "common-ir-text")) else { return };
    let mut libraries = Libraries::none();
    let mut names = vec![root.module.qualified_name()];
    for part in parts {
        let Some(library) = document(part, "common-ir-library-text") else { continue };
        // Two libraries with the same name are rejected when they are loaded.
        if names.contains(&library.module.qualified_name()) {
            continue;
        }
        names.push(library.module.qualified_name());
        let chain = vec!["library".to_owned()];
        libraries.push(Library {
            module: library.module,
            location: chain[0].clone(),
            import: 0,
            chain,
        });
    }
    let errors = |module: &Module, libraries: &Libraries, level| {
        let mut sink = Sink::new();
        let options = ValidateOptions { level, implicit_std: true, ..ValidateOptions::default() };
        validate(module, libraries, &options, &mut sink);
        let mut diagnostics = sink.into_diagnostics();
        assert!(diagnostics.iter().all(
            |diagnostic| diagnostic.path.is_some() || diagnostic.code == "too-many-diagnostics"
        ));
        root.input.place(&mut diagnostics);
        render(&root.input.source(), &diagnostics, false, 80);
        diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count()
    };
    let strict = errors(&root.module, &libraries, Level::Strict);
    assert!(errors(&root.module, &libraries, Level::Compat) <= strict);
    let bundled = bundle(&root.module, &libraries);
    assert!(bundled.imports.is_empty() && bundle(&bundled, &Libraries::none()) == bundled);
    if strict == 0 {
        assert_eq!(errors(&bundled, &Libraries::none(), Level::Strict), 0, "{bundled:?}");
    }
}

fn document(text: &str, format: &str) -> Option<Document> {
    let format = Format::from_name(format)?;
    let mut sink = Sink::new();
    let bytes = text.as_bytes().to_vec().into();
    let found = read("fuzz", bytes, &Options { format, ..Options::default() }, &mut sink);
    found.filter(|_| !sink.has_errors())
}
