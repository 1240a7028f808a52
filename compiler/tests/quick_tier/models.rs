//! Whole models through both code generators: they agree within docs/tolerances.md.
use irc::{Backend, ImportOptions, Results, Session, Target};
use irc_runtime::{Interface, Library, Port, Runner};
use irc_tensor::{Tensor, Tolerance, compare, seed_for};
use std::{collections::BTreeMap, path::Path};

pub use crate::support::files;

/// Buffers by name.
pub type Buffers = BTreeMap<String, Tensor>;

/// Multiply-adds, and bytes of input, beyond which a model takes too long for a test.
pub const LIMITS: (u64, usize) = (200_000_000, 16 << 20);

/// Compiles and runs a model in both tiers; what differs, or `None` when it is left out.
fn differences(path: &Path) -> Option<Vec<String>> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let session = Session::new();
    // A model that exchanges data with other ranks, or is wrong, does not get this far.
    let model = session.import_with(path, &ImportOptions::default().results(Results::All)).ok()?;
    let report = model.explain_fusion(Target::host()).unwrap();
    let interface = model.interface().unwrap();
    let types = interface.inputs.iter().map(|port| port.tensor_type().unwrap());
    if report.before.work > LIMITS.0
        || types.map(|ty| ty.byte_size().unwrap()).sum::<usize>() > LIMITS.1
    {
        return None;
    }
    let inputs = inputs(&interface);
    let [expected, found] = [Backend::LLVM, Backend::QUICK].map(|backend| {
        let compiled = model.library(Target::host().with_backend(backend));
        let compiled = compiled.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        run(&compiled.library, inputs.clone())
    });
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    let difference = |(buffer, expected): (&String, &Tensor)| {
        let result = compare(expected, &found[buffer], Tolerance::of(expected.dtype())).unwrap();
        (!result.is_match()).then(|| format!("{name}: {buffer}: {result}"))
    };
    Some(expected.iter().filter_map(difference).collect())
}

/// Random inputs of a model.
pub fn inputs(interface: &Interface) -> Buffers {
    let random = |port: &Port| {
        let tensor = Tensor::random(port.tensor_type().unwrap(), seed_for(1, &port.name));
        (port.name.clone(), shrink(tensor.unwrap()))
    };
    interface.inputs.iter().map(random).collect()
}

/// Loads a library and runs it.
pub fn run(library: &[u8], inputs: Buffers) -> Buffers {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.so");
    std::fs::write(&path, library).unwrap();
    Runner::new(Library::load(&path).unwrap().into(), &[]).unwrap().run(inputs).unwrap()
}

/// Keeps long chains of half-precision products away from overflow, where rounding decides
/// between a number and infinity.
fn shrink(mut tensor: Tensor) -> Tensor {
    if tensor.dtype().is_float() {
        for index in 0..tensor.elements() {
            tensor.set_f64(index, tensor.get_f64(index) / 8.0);
        }
    }
    tensor
}

/// Both tiers on the models of a folder; how many ran.
fn agree(folder: &Path) -> usize {
    let found: Vec<_> = files::models(folder).iter().filter_map(|path| differences(path)).collect();
    let wrong: Vec<String> = found.concat();
    assert!(wrong.is_empty(), "llvm and cranelift differ:\n{}", wrong.join("\n"));
    found.len()
}

#[test]
fn models_of_every_op_agree() {
    assert!(agree(&files::root().join("tests/models")) >= 18);
}

#[test]
fn examples_agree() {
    assert!(agree(&files::root().join("examples")) >= 4);
}

#[test]
fn models_of_the_corpus_agree() {
    let folder = files::corpus();
    if folder.is_dir() {
        assert!(agree(&folder) >= 30);
    } else {
        println!("skipped: no folder {}", folder.display());
    }
}

#[test]
fn an_accumulation_that_is_defined_is_the_same_bits() {
    let path = files::root().join("tests/models/accumulation.model.json");
    let session = Session::new();
    let options = ImportOptions { accumulate: irc::Accumulate::Ark, ..Default::default() };
    let model = session.import_with(path, &options).unwrap();
    let [expected, found] = [Backend::LLVM, Backend::QUICK].map(|backend| {
        let compiled = model.library(Target::host().with_backend(backend)).unwrap();
        let inputs = compiled.interface.inputs.iter().map(|port| {
            let tensor = Tensor::random(port.tensor_type().unwrap(), seed_for(2, &port.name));
            (port.name.clone(), tensor.unwrap())
        });
        run(&compiled.library, inputs.collect())
    });
    for (buffer, expected) in expected {
        assert_eq!(expected.bytes(), found[&buffer].bytes(), "{buffer}");
    }
}

#[test]
fn a_session_keeps_the_objects_of_the_tiers_apart() {
    let path = files::root().join("examples/softmax.model.json");
    let session = Session::new();
    let model = session.import(&path).unwrap();
    let compile = |backend| model.library(Target::host().with_backend(backend)).unwrap();
    let (llvm, cranelift) = (compile(Backend::LLVM), compile(Backend::QUICK));
    assert_ne!(llvm.library, cranelift.library);
    session.take_executed();
    assert_eq!(compile(Backend::LLVM), llvm);
    assert_eq!(compile(Backend::QUICK), cranelift);
    assert_eq!(session.take_executed(), Vec::<String>::new());
    let other = Session::new();
    let again = model.in_session(&other).library(Target::host().with_backend(Backend::QUICK));
    assert_eq!(again.unwrap(), cranelift);
}
