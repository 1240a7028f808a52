//! The published files: read without an error, and written back as they were.

#[path = "support/corpus.rs"]
mod support;

use irc_diag::Sink;
use irc_gemini_format::{FileKind, Options, frontend, schedule};
use support::{corpus, open};

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
        // Files that programs wrote have their very layout; those written by hand do not.
        let differs = source.text().lines().zip(written.lines()).find(|(a, b)| a != b);
        if source.text().starts_with("{\n   \"") {
            assert_eq!(differs, None, "{name}");
        }
    }
}
