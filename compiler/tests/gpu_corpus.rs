//! The kernels of the corpus of ARK files for GPUs, under NVIDIA's assembler: of models and of plans, for both architectures.
use crate::{
    gpu::{assemble, ptxas},
    support::files,
};
use irc::{ImportOptions, Session, Source, Target, codegen::Output};
use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::Mutex,
    thread::{available_parallelism, scope},
};

/// What a name says of one rank of several.
const RANK: &str = "_rank";

/// The files of models of one rank, and of the plans of a world, by name.
fn programs() -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in files::plain_models(&files::corpus()) {
        let name = files::name_of(&path);
        let model = name.trim_end_matches(".model.json");
        for suffix in [".plan.json", ".cuda_90.plan.json"] {
            let plan = path.with_file_name(format!("{model}{suffix}"));
            if plan.is_file() {
                // Those of all ranks are one kernel.
                let (start, rest) = model.split_once(RANK).unwrap_or((model, ""));
                let world = rest.split_once("of").map_or("", |(_, world)| world);
                found.entry(format!("{start}{world}{suffix}")).or_default().push(plan);
            }
        }
        if !name.contains(RANK) {
            found.insert(name, vec![path]);
        }
    }
    found
}

/// The PTX of the files of a program for an architecture.
fn ptx(files: &[PathBuf], capability: u32) -> String {
    let (session, target) = (Session::new(), Target::gpu(capability));
    let names = files.iter().map(|path| files::name_of(path));
    let texts = files.iter().map(|path| fs::read_to_string(path).expect("a file"));
    let mut sources: Vec<(String, String)> = names.zip(texts).collect();
    let code = if sources[0].0.ends_with(".plan.json") {
        let sources = sources.into_iter().map(|(name, text)| Source::new(name, text));
        let plans: Vec<_> = sources.map(|source| session.plan(source)).collect();
        session.emit_ranks(&plans, &target, Output::Ptx)
    } else {
        let (name, text) = sources.remove(0);
        let model =
            session.import_bytes(&name, text.into_bytes().into(), &ImportOptions::default());
        model.and_then(|model| model.emit(Output::Ptx, target))
    };
    let code = code.unwrap_or_else(|error| panic!("{files:?}: {error}"));
    String::from_utf8(code).expect("text")
}

#[test]
fn kernels_of_the_corpus_assemble_without_spills() {
    if ptxas().is_none() {
        return;
    }
    let programs = programs();
    let architectures = [(80, "sm_80"), (90, "sm_90a")];
    let all = programs.iter().flat_map(|program| architectures.map(|it| (program, it)));
    // Plans for CUDA_90 have more shared memory than others; those for CUDA_80 are for it where there is no other.
    let all = all.filter(|((name, _), (capability, _))| {
        let plan = name.strip_suffix(".plan.json");
        let of_90 = plan.is_some_and(|plan| plan.ends_with(".cuda_90"));
        let has_other = |plan| programs.contains_key(&format!("{plan}.cuda_90.plan.json"));
        if *capability == 90 { !plan.is_some_and(has_other) } else { !of_90 }
    });
    let rest = Mutex::new(all);
    let next = || rest.lock().expect("no panic").next();
    scope(|threads| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                while let Some(((name, files), (capability, architecture))) = next() {
                    let name = format!("{name} {architecture}");
                    assemble(&name, &ptx(files, capability), architecture);
                }
            });
        }
    });
}
