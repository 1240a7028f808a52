//! The plan dialect holds whatever the planner makes.

use crate::support::files::{corpus, models, root};
use irc::{
    lowering::ark_to_plan,
    planner::{self, Planner, Target},
};
use irc_ark_format::{
    model::{self, Document, Options},
    plan::Architecture,
};
use irc_dialects::ark::{Origins, import};
use irc_mlir::{Capture, Module, OperationLike};
use std::{fs, path::Path};

fn document(path: &Path) -> Document {
    let text = fs::read_to_string(path).expect("a readable file");
    let source = irc_diag::Source::new(path.to_string_lossy(), &text);
    let mut sink = irc_diag::Sink::new();
    let document = model::parse(&source, &Options::default(), &mut sink);
    document.unwrap_or_else(|| panic!("{}: {:?}", path.display(), sink.into_diagnostics()))
}

#[test]
fn the_dialect_holds_the_plan() {
    let folders = [root().join("examples"), corpus()];
    let target = Target::new(Architecture::Cuda80, None).expect("all processors");
    for path in folders.iter().flat_map(|folder| models(folder)) {
        let document = document(&path);
        for planner in [Planner::Irc, Planner::Ark] {
            let options = planner::Options { planner, ..planner::Options::new(target) };
            let Ok(planned) = planner::plan(&document.model, &options) else { continue };
            let context = irc_dialects::new_context();
            let capture = Capture::new(&context);
            let module: Module<'_> = import(&context, &document.model, Origins::default());
            ark_to_plan::run(&module, &options)
                .unwrap_or_else(|_| panic!("{}: {:?}", path.display(), capture.take()));
            assert!(module.as_operation().verify(), "{}: {:?}", path.display(), capture.take());
            let exported = irc_dialects::plan::export(&module).expect("a plan");
            assert!(exported == planned.plan, "{}", path.display());
        }
    }
}
