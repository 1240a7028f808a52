//! Any bytes: the model reader never panics, explains what it rejects, and writes back what it
//! accepts.

use irc_ark_format::model::{self, Options};
use irc_diag::{Sink, Source, render, to_json};

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let source = Source::from_bytes("fuzz.model.json", bytes);
    let mut sink = Sink::new();
    let document = model::parse(&source, &Options::default(), &mut sink);
    assert_eq!(document.is_none(), sink.has_errors(), "rejected if and only if explained");
    let found = sink.into_diagnostics();
    assert!(found.iter().all(|diagnostic| diagnostic.primary_span().is_some()
        || diagnostic.code == "too-many-diagnostics"));
    render(&source, &found, false, 80);
    to_json(&source, &found);
    if let Some(document) = document {
        assert_eq!(model::validate(&document.model).iter().find(|f| f.is_error()), None);
        model::hazards(&document.model);
        model::buffer_bytes(document.model.tensors());
        let text = model::write(&document.model);
        let again =
            model::parse(&Source::new("again", &text), &Options::default(), &mut Sink::new());
        assert_eq!(again.map(|again| again.model), Some(document.model));
    }
}
