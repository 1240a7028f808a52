//! Fusion of real models: those the repository carries, and the corpus where it is present.
use irc::{
    ImportOptions,
    eval::evaluate,
    fusion,
    session::{CompileOptions, Session},
};
use irc_mlir::ops::func;
use irc_mlir::{Module, OperationLike, OperationRef, read, walk_collect};
use irc_tensor::Tensor;
use std::{env, fs, path::Path, path::PathBuf};

/// Values of larger models take the reference evaluator too long.
const MAX_WORK: u64 = 40_000_000;

#[test]
fn models_keep_every_bit() {
    let mut evaluated = 0;
    for path in models() {
        let Some(text) = tensor_level(&path) else { continue };
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, &text).expect("stages parse");
        let inputs = inputs(&module);
        let expected = inputs.as_ref().map(|inputs| run(&module, inputs));
        fusion::fuse_function(main(&module)).expect("models fuse");
        assert!(module.as_operation().verify(), "{} breaks", path.display());
        for op in read::body_ops(main(&module)) {
            let name = read::op_name(&op);
            let allowed = ["tl.group", "tl.reshape", "tl.bitcast", func::RETURN];
            assert!(allowed.contains(&name.as_str()), "{}: {name} outside", path.display());
        }
        let Some(inputs) = inputs else { continue };
        assert_eq!(expected, Some(run(&module, &inputs)), "{}", path.display());
        evaluated += 1;
    }
    assert!(evaluated >= 3, "only {evaluated} models were small enough to evaluate");
}

/// Groups per kind of a model the repository carries.
#[test]
fn norms_and_softmax_are_one_kernel() {
    for name in ["softmax", "layernorm", "rmsnorm"] {
        let path = repository().join(format!("examples/{name}.model.json"));
        let text = tensor_level(&path).expect("the example imports");
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, &text).expect("stages parse");
        fusion::fuse_function(main(&module)).expect("models fuse");
        let groups = walk_collect(module.as_operation(), |op| read::op_name(&op) == "tl.group");
        let kinds: Vec<_> = groups.iter().filter_map(|group| read::string(group, "kind")).collect();
        assert_eq!(kinds, ["rows"], "{name}");
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").to_owned()
}

fn models() -> Vec<PathBuf> {
    let corpus =
        env::var_os("IRC_CORPUS").map_or(repository().join("../shared/corpus"), Into::into);
    let mut found = Vec::new();
    for folder in [repository().join("examples"), corpus.join("ark")] {
        let Ok(entries) = fs::read_dir(&folder) else {
            println!("skipped: no models in {}", folder.display());
            continue;
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let model = |path: &PathBuf| path.to_string_lossy().ends_with(".model.json");
        found.extend(paths.filter(model));
    }
    found.sort();
    found
}

/// The model at the tensor level; `None` for models that do not go there.
fn tensor_level(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).expect("the model reads");
    let session = Session::new();
    let options = ImportOptions::default();
    let model = session.import_bytes(&path.to_string_lossy(), text.into(), &options).ok()?;
    model.stage("tensor", CompileOptions::default()).ok()
}

fn main<'c, 'a>(module: &'a Module<'c>) -> OperationRef<'c, 'a> {
    walk_collect(module.as_operation(), |op| read::op_name(&op) == func::FUNC)[0]
}

/// Random inputs; `None` for models too large to evaluate.
fn inputs(module: &Module<'_>) -> Option<Vec<Tensor>> {
    let graph = fusion::read_function(main(module)).expect("it reads")?.graph;
    let flops = (0..graph.nodes.len()).map(|node| {
        let op = graph.nodes[node].op.as_ref();
        op.map_or(0, |op| op.flops(&graph.operand_types(node)).unwrap_or(u64::MAX))
    });
    let elements = graph.types.iter().map(|ty| ty.elements().unwrap_or(usize::MAX) as u64);
    if flops.chain(elements).fold(0, u64::saturating_add) > MAX_WORK {
        return None;
    }
    let arguments = graph.types.iter().zip(&graph.makers).filter(|(_, maker)| maker.is_none());
    let random = |(seed, (ty, _)): (usize, (&irc_tensor::TensorType, _))| {
        Tensor::random(ty.clone(), seed as u64).expect("a tensor")
    };
    Some(arguments.enumerate().map(random).collect())
}

fn run(module: &Module<'_>, inputs: &[Tensor]) -> Vec<Tensor> {
    evaluate(main(module), inputs).expect("the model evaluates")
}
