//! Any bytes: the readers of Gemini schedules and frontend files never panic, explain what they
//! reject, place what they find, and write back what they accept; emission of any schedule ends.

use irc_diag::{Sink, Source, render};
use irc_gemini_format::schedule::Limits;
use irc_gemini_format::{FileKind, Options, check_pair, frontend, schedule, source};

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let Ok(source) = source("fuzz.json", bytes) else { return };
    match FileKind::of(source.text()) {
        Some(FileKind::Frontend) => read_frontend(&source),
        _ => read_schedule(&source),
    }
}

fn read_schedule(source: &Source) {
    let options = Options::default();
    let mut sink = Sink::new();
    let checked = schedule::parse(source, &options, &mut sink);
    finish(source, sink, checked.is_none());
    let form = Options { validate: false, ..options };
    let Some(read) = schedule::parse(source, &form, &mut Sink::new()) else { return };
    schedule::check(&read, &Limits { l2_blocks: 1, wl0_units: 1 });
    let text = schedule::write(&read);
    let again = schedule::parse(&Source::new("again", &text), &form, &mut Sink::new());
    assert_eq!(again.as_ref(), Some(&read), "written and read again");
    let layers = carried_layers();
    if let Some(layers) = &layers {
        check_pair(&read, layers);
    }
    if let Err(found) = irc_npu_emit::emit(&read, layers.as_ref()) {
        assert!(
            found.iter().all(|diagnostic| diagnostic.diagnostic.path.is_some()),
            "every diagnostic has a path"
        );
    }
}

fn read_frontend(source: &Source) {
    let options = Options::default();
    let mut sink = Sink::new();
    let checked = frontend::parse(source, &options, &mut sink);
    finish(source, sink, checked.is_none());
    if let Some(read) = checked {
        let text = frontend::write(&read);
        let again = frontend::parse(&Source::new("again", &text), &options, &mut Sink::new());
        assert_eq!(again, Some(read), "written and read again");
    }
}

fn finish(source: &Source, sink: Sink, rejected: bool) {
    assert_eq!(rejected, sink.has_errors(), "rejected if and only if explained");
    let found = sink.into_diagnostics();
    let unplaced = found.iter().find(|diagnostic| {
        diagnostic.primary_span().is_none() && diagnostic.code != "too-many-diagnostics"
    });
    assert_eq!(unplaced, None, "every diagnostic has a place");
    render(source, &found, false, 80);
}

/// The layers of a schedule in the data of the format's tests.
fn carried_layers() -> Option<frontend::Frontend> {
    let text = include_str!("../../formats/gemini/tests/data/frontend.json");
    frontend::parse(&Source::new("layers", text), &Options::default(), &mut Sink::new())
}
