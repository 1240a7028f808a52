//! How long the compiler takes. Run with `cargo bench -p irc`; a quick pass with
//! `cargo bench -p irc -- --quick`.
//!
//! `IRC_CORPUS` adds the large models of the corpus, when it is there.
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use irc::{
    CompileOptions, ImportOptions, ModelId, Session,
    planner::{self, Target},
};
use irc_ark_format::{model, plan::Architecture};
use std::{hint::black_box, path::PathBuf};

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    std::fs::read_to_string(path).expect("the repository carries its examples")
}

fn corpus(name: &str) -> Option<String> {
    let fallback = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus");
    let folder =
        std::env::var_os("IRC_CORPUS").map_or_else(|| PathBuf::from(fallback), PathBuf::from);
    std::fs::read_to_string(folder.join("ark").join(name)).ok()
}

fn open(session: &Session, text: &str) -> ModelId {
    let options = ImportOptions::default();
    let model = session.import_bytes("model.json", text.to_owned().into(), &options);
    model.expect("the model reads").id()
}

fn compile_ffn(criterion: &mut Criterion) {
    let (text, options) = (example("ffn.model.json"), CompileOptions::default());
    criterion.bench_function("compile ffn, from nothing", |bencher| {
        bencher.iter_batched(
            || {
                let session = Session::new();
                let file = open(&session, &text);
                (session, file)
            },
            |(session, file)| session.model(file).library(&options).expect("the example compiles"),
            BatchSize::PerIteration,
        );
    });
    let mut session = Session::new();
    let file = open(&session, &text);
    session.model(file).library(&options).expect("the example compiles");
    criterion.bench_function("compile ffn, no change", |bencher| {
        bencher.iter(|| {
            session.edit(file, black_box(&text).clone());
            session.model(file).library(&options).expect("the example compiles")
        });
    });
}

fn front_end(criterion: &mut Criterion) {
    let Some(text) = corpus("llama2_7b_4layers_seq512.model.json") else {
        eprintln!("skipped: no corpus; set IRC_CORPUS");
        return;
    };
    let options = CompileOptions::default();
    criterion.bench_function("import, fuse and print llama2_7b_4layers", |bencher| {
        bencher.iter_batched(
            || {
                let session = Session::new();
                let file = open(&session, &text);
                (session, file)
            },
            |(session, file)| session.model(file).stage("fuse", &options).expect("the model fuses"),
            BatchSize::PerIteration,
        );
    });
}

fn plan(criterion: &mut Criterion) {
    let Some(text) = corpus("llama2_7b_4layers_seq512.model.json") else {
        eprintln!("skipped: no corpus; set IRC_CORPUS");
        return;
    };
    let source = irc_diag::Source::new("llama.json", text);
    let target = Target::new(Architecture::Cuda80, None).expect("all processors");
    let options = planner::Options::new(target);
    criterion.bench_function("read and plan llama2_7b_4layers", |bencher| {
        bencher.iter(|| {
            let mut sink = irc_diag::Sink::new();
            let document = model::parse(black_box(&source), &Default::default(), &mut sink);
            planner::plan(&document.expect("a model").model, &options).expect("a plan")
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = compile_ffn, front_end, plan
}
criterion_main!(benches);
