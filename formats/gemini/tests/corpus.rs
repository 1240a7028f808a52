//! The published files are read without errors, and written as they were read.

use std::path::Path;

use crate::support::corpus::{corpus, open};
use irc_diag::Sink;
use irc_gemini_format::{FileKind, Options, check_pair, frontend, schedule};

#[test]
fn what_is_read_is_written_back() {
    for path in corpus() {
        let source = open(&path);
        let mut sink = Sink::new();
        let options = Options { validate: false, strict: true };
        let written = match FileKind::of(source.text()) {
            Some(FileKind::Schedule) => {
                schedule::parse(&source, &options, &mut sink).map(|read| schedule::write(&read))
            }
            Some(FileKind::Frontend) => {
                frontend::parse(&source, &options, &mut sink).map(|read| frontend::write(&read))
            }
            None => panic!("{}: neither a schedule nor a frontend file", path.display()),
        };
        let name = path.display();
        let written = written.unwrap_or_else(|| panic!("{name}: {:#?}", sink.diagnostics()));
        assert_eq!(sink.diagnostics(), [], "{name}");
        let without_space = |text: &str| text.replace([' ', '\n', '\r', '\t'], "");
        assert!(without_space(source.text()) == without_space(&written), "{name}");
        // Generated files have the writer's layout; hand-written ones do not.
        let differs = source.text().lines().zip(written.lines()).find(|(a, b)| a != b);
        if source.text().starts_with("{\n   \"") {
            assert_eq!(differs, None, "{name}");
        }
    }
}

#[test]
fn published_files_have_no_error() {
    for path in corpus() {
        let source = open(&path);
        let mut sink = Sink::new();
        match FileKind::of(source.text()) {
            Some(FileKind::Frontend) => {
                drop(frontend::parse(&source, &Options::default(), &mut sink));
            }
            _ => drop(schedule::parse(&source, &Options::default(), &mut sink)),
        }
        let found = sink.into_diagnostics();
        let name = path.display();
        assert_eq!(found.iter().find(|diagnostic| diagnostic.is_error()), None, "{name}");
        let unplaced = found.iter().find(|diagnostic| diagnostic.primary_span().is_none());
        assert_eq!(unplaced, None, "{name}");
        // A warning states why the file is accepted.
        let unexplained =
            found.iter().find(|diagnostic| !diagnostic.is_error() && diagnostic.notes.is_empty());
        assert_eq!(unexplained, None, "{name}");
    }
}

#[test]
fn schedules_run_the_layers_of_their_frontend_files() {
    for path in corpus() {
        let name = path.display().to_string();
        let Some((stem, _)) = name.split_once("_c1_bw16_stschedule.json") else { continue };
        let layers = open(Path::new(&format!("{stem}.json")));
        let options = Options::default();
        let layers = frontend::parse(&layers, &options, &mut Sink::new()).expect("a valid file");
        let schedule =
            schedule::parse(&open(&path), &options, &mut Sink::new()).expect("a valid file");
        assert_eq!(check_pair(&schedule, &layers), [], "{name}");
    }
}
