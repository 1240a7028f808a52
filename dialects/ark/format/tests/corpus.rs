//! Every file ARK itself wrote is read without a finding and written back byte for byte.

use std::path::{Path, PathBuf};

use irc_ark_format::model::{self, Options};
use irc_diag::{Sink, Source, render};

/// Files of the corpus whose name ends in `suffix`, sorted; none when the corpus is absent.
fn corpus(suffix: &str) -> Vec<PathBuf> {
    let root = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus");
    let folder = root.unwrap_or_else(default).join("ark");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no corpus at {}", folder.display());
        return vec![];
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let wanted = |path: &PathBuf| path.to_string_lossy().ends_with(suffix);
    let mut paths: Vec<PathBuf> = paths.filter(wanted).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no *{suffix} in {}", folder.display());
    paths
}

fn source(path: &Path) -> Source {
    let bytes = std::fs::read(path).expect("a readable file");
    Source::from_bytes(path.to_string_lossy(), &bytes)
}

#[test]
fn models_are_read_and_written_back() {
    for path in corpus(".model.json") {
        let source = source(&path);
        let mut sink = Sink::new();
        let document = model::parse(&source, &Options::default(), &mut sink);
        let shown = render(&source, sink.diagnostics(), false, 120);
        assert!(shown.is_empty(), "{shown}");
        let document = document.expect("a model");
        assert_eq!(model::write(&document.model), source.text(), "{}", path.display());
        assert_eq!(document.origins.len(), document.model.nodes.len());
        for (index, origin) in document.origins.iter().enumerate() {
            let text = &source.text()[origin.offset..origin.offset + origin.len];
            let id = format!("\"Id\": {},", document.model.nodes[index].id);
            assert!(text.contains(&id), "origin of node {index} is {text}");
            assert_eq!(source.line_column(origin.offset), (origin.line, origin.column));
        }
    }
}
