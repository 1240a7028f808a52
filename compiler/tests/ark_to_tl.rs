//! The lowering of ARK models against an independent evaluation of the same files by numpy.
//!
//! Large models are left out. With inputs of unit size their 16-bit sums reach the largest finite
//! number, where rounding decides between that and infinity.

use crate::support::files::{corpus, models, root};
use irc::{Accumulate, eval::evaluate, lowering::graph_to_tl::graph_to_tl};
use irc_ark_format::model::{self, Document, Model, OpKind, buffer_bytes};
use irc_ark_frontend::ImportOptions;
use irc_dialects::ark::{Origins, import};
use irc_mlir::ops::func;
use irc_mlir::{Capture, Context, Module, OperationLike, OperationRef, read};
use irc_tensor::{DType, Tensor, Tolerance, compare, read_npz_file};
use irc_tl::Results;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Models beyond these are left to the compiled path: the evaluator is the meaning, not a fast path.
const MAX_BYTES: u64 = 24 << 20;
const MAX_PRODUCTS: i64 = 1 << 28;

fn document(path: &Path) -> Document {
    let text = fs::read_to_string(path).expect("a readable file");
    let source = irc_diag::Source::new(path.to_string_lossy(), &text);
    let mut sink = irc_diag::Sink::new();
    let document = model::parse(&source, &model::Options::default(), &mut sink);
    document.unwrap_or_else(|| panic!("{}: {:?}", path.display(), sink.into_diagnostics()))
}

/// Why a model is not evaluated here.
fn too_much(model: &model::Model) -> Option<&'static str> {
    let ops = || model.nodes.iter().map(|node| &node.op);
    if ops().any(|op| op.kind.is_communication()) {
        return Some("it communicates");
    }
    let products = ops().filter(|op| op.kind == OpKind::Matmul).map(|op| {
        let output: i64 = op.writes[0].shape.iter().product();
        output * op.reads[0].shape.iter().max().unwrap_or(&1)
    });
    let bytes: u64 = buffer_bytes(model.tensors()).values().sum();
    (bytes > MAX_BYTES || products.sum::<i64>() > MAX_PRODUCTS).then_some("it is large")
}

/// What numpy was given and what it computed, by `buffer_<Id>`.
struct Oracle {
    inputs: BTreeMap<String, Tensor>,
    outputs: BTreeMap<String, Tensor>,
}

fn oracle(path: &Path) -> Option<Oracle> {
    let python = root().join("target/venv/bin/python");
    let python = std::env::var_os("IRC_PYTHON").map_or(python, PathBuf::from);
    if !python.exists() {
        println!("skipped: no Python at {}; ./irc-dev setup makes one", python.display());
        return None;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (inputs, outputs) = (folder.path().join("in.npz"), folder.path().join("out.npz"));
    let status = Command::new(python)
        .arg(root().join("tests/oracle/ark_numpy.py"))
        .arg(path)
        .args(["--seed", "1"])
        .arg("--save-inputs")
        .arg(&inputs)
        .arg("--outputs")
        .arg(&outputs)
        .status();
    assert!(status.expect("python runs").success(), "{}", path.display());
    let read = |path: &Path| read_npz_file(path).expect("numpy's archive");
    Some(Oracle { inputs: read(&inputs), outputs: read(&outputs) })
}

/// The names `tl.name` of the arguments or results of a function.
fn names(func: OperationRef<'_, '_>, attribute: &str) -> Vec<String> {
    let list = func.attribute(attribute).map(|list| list.to_string()).unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn main_of<'c: 'a, 'a>(module: &'a Module<'c>) -> OperationRef<'c, 'a> {
    let mains = read::body_ops(module.as_operation()).into_iter();
    mains.into_iter().find(|op| read::op_name(op) == func::FUNC).expect("a function")
}

/// numpy has no bfloat16: the archive holds its bits.
fn as_type(tensor: &Tensor, dtype: DType) -> Tensor {
    if dtype == DType::BF16 {
        return tensor.clone().reinterpret(dtype).expect("16 bits");
    }
    tensor.clone()
}

fn check(path: &Path) {
    let document = document(path);
    if let Some(why) = too_much(&document.model) {
        println!("skipped {}: {why}", path.display());
        return;
    }
    let Some(oracle) = oracle(path) else { return };
    let context = irc_dialects::new_context();
    let options = ImportOptions { results: Results::All, accumulate: Accumulate::Wide };
    let module = through_the_dialect(&context, &document.model, &options)
        .unwrap_or_else(|messages| panic!("{}: {messages:?}", path.display()));
    let func = main_of(&module);
    let inputs = arguments(func, &oracle);
    let results = evaluate(func, &inputs).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let names = names(func, "res_attrs");
    assert_eq!(names.len(), oracle.outputs.len(), "{}", path.display());
    for (name, actual) in names.iter().zip(&results) {
        let expected = as_type(&oracle.outputs[name], actual.dtype());
        let found = compare(&expected, actual, Tolerance::of(actual.dtype()));
        let found = found.unwrap_or_else(|error| panic!("{}: {name}: {error}", path.display()));
        assert!(found.is_match(), "{}: {name}: {found}", path.display());
    }
}

/// A model as the pass `ark-to-tl` lowers it.
fn through_the_dialect<'c>(
    context: &'c Context,
    model: &Model,
    options: &ImportOptions,
) -> Result<Module<'c>, Vec<String>> {
    irc::passes::register_all();
    let capture = Capture::new(context);
    let mut module = import(context, model, Origins::default());
    let ImportOptions { results, accumulate } = options;
    let pass = format!("ark-to-tl{{results={results} accumulate={}}}", accumulate.name());
    let lowered = module.as_operation().verify()
        && irc_mlir::run_pipeline(context, &mut module, &format!("builtin.module({pass})")).is_ok();
    let messages = capture.take().into_iter().map(|diagnostic| diagnostic.message);
    if lowered { Ok(module) } else { Err(messages.collect()) }
}

/// Holds both ways from a model to the tensor level to one result: equal functions with equal
/// locations, or equally many diagnostics. Says whether there is a function.
fn is_written_alike(path: &Path, options: &ImportOptions) -> bool {
    let Document { model, .. } = document(path);
    let context = irc_dialects::new_context();
    let lowered = through_the_dialect(&context, &model, options);
    let imported = irc_ark_frontend::import(&model, options);
    match (lowered, imported) {
        (Ok(lowered), Ok(graph)) => {
            let written = graph_to_tl(&context, &graph, "main").expect("a module");
            let text = |module: &Module<'_>| irc_mlir::to_text(&main_of(module), true);
            assert_eq!(text(&lowered), text(&written), "{}", path.display());
            true
        }
        (Err(messages), Err(diagnostics)) => {
            let mut reported = messages.iter().filter(|message| !message.contains("pass"));
            let same = diagnostics.iter().all(|diagnostic| {
                reported.next().is_some_and(|message| message.contains(&diagnostic.message))
            });
            assert!(same, "{}: {messages:?} {diagnostics:?}", path.display());
            false
        }
        (lowered, imported) => {
            panic!("{}: {:?} and {imported:?}", path.display(), lowered.err())
        }
    }
}

#[test]
fn the_dialect_and_the_front_end_write_equal_functions() {
    let mut folders =
        ["examples", "tests/models", "tests/models/ranks"].map(|name| root().join(name)).to_vec();
    folders.push(corpus());
    let (mut written, mut rejected) = (0, 0);
    for path in folders.iter().flat_map(|folder| models(folder)) {
        for accumulate in [Accumulate::Wide, Accumulate::Ark] {
            for results in [Results::All, Results::Outputs] {
                match is_written_alike(&path, &ImportOptions { results, accumulate }) {
                    true => written += 1,
                    false => rejected += 1,
                }
            }
        }
    }
    assert!(written > 0 && rejected > 0, "{written} written, {rejected} rejected");
}

/// The inputs as numpy had them; buffers it did not fill are zero.
fn arguments(func: OperationRef<'_, '_>, oracle: &Oracle) -> Vec<Tensor> {
    let region = func.region(0).expect("a body");
    let block = irc_mlir::RegionLike::first_block(&region).expect("a block");
    let argument = |(index, name): (usize, &String)| {
        let value = irc_mlir::BlockLike::argument(&block, index).expect("an argument");
        let ty = irc_dialects::tl::tensor_type_of(irc_mlir::ValueLike::r#type(&value));
        let ty = ty.expect("a tensor");
        let given = oracle.inputs.get(name).map(|tensor| as_type(tensor, ty.dtype));
        given.unwrap_or_else(|| Tensor::zeros(ty).expect("a tensor"))
    };
    names(func, "arg_attrs").iter().enumerate().map(argument).collect()
}

#[test]
fn examples_agree_with_numpy() {
    let models = models(&root().join("examples"));
    assert!(!models.is_empty(), "the repository carries models");
    models.iter().for_each(|path| check(path));
}

#[test]
fn small_models_agree_with_numpy() {
    let models = models(&root().join("tests/models"));
    assert!(!models.is_empty(), "the repository carries models");
    models.iter().for_each(|path| check(path));
}

#[test]
fn corpus_agrees_with_numpy() {
    models(&corpus()).iter().for_each(|path| check(path));
}
