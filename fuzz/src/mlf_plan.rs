//! Any graph in a valid archive: its memory is stated, within a limit, or a diagnostic rejects it. No
//! code is loaded.

use bytes::Bytes;
use irc_diag::{Sink, Source};
use irc_mlf::{Package, graph::read, metadata::Memory};
use irc_runtime::{ContextOptions, Guard, context_bytes};
use std::sync::LazyLock;

const LIMIT: u64 = 1 << 30;

/// A valid archive whose metadata state no sizes of the graph, as those of another graph would be rejected.
static SMALL: LazyLock<Package> = LazyLock::new(|| {
    let bytes = Bytes::from_static(include_bytes!("../../formats/mlf/tests/data/small.v5.tar"));
    let (package, _) = irc_mlf::read("small.v5.tar", &bytes);
    let mut package = package.expect("a valid archive");
    let Memory::Model(memory) = &mut package.metadata.modules[0].memory else { return package };
    memory.storages = None;
    // Sizes of two devices are not checked.
    memory.main.push(memory.main[0].clone());
    // Nor are the types of test vectors then those of the graph.
    if let Some(ours) = &mut package.metadata.extension {
        ours.models.values_mut().for_each(|model| model.vectors.clear());
    }
    package
});

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let source = Source::from_bytes("fuzz.json", bytes);
    let Some(graph) = read(&source, &mut Sink::new()) else { return };
    let mut package = SMALL.clone();
    if let Some(ours) = &mut package.metadata.extension {
        let names = (0..graph.outputs.len()).map(|output| output.to_string());
        ours.models.values_mut().for_each(|model| model.outputs = names.clone().collect());
    }
    package.parts[0].graph = Some(graph);
    for guard in [Guard::None, Guard::Pages] {
        let options =
            ContextOptions { memory_limit: Some(LIMIT), guard, ..ContextOptions::default() };
        match context_bytes(&package, None, &options) {
            Ok(bytes) => assert!(bytes <= LIMIT),
            Err(error) => assert!(!error.to_string().is_empty(), "rejected with a message"),
        }
    }
}
