//! Every op of ARK goes through what follows from its row: the dialect, the tensor level and back, a
//! plan and its kernels. A new row is tested by standing in the table.

use crate::support::files::root;
use irc::{Session, Target, planner};
use irc_ark_format::{
    model::{DataType, Elements, Model, Node, Op, OpKind, Tensor as ArkTensor},
    plan::{self, Architecture},
};
use irc_ark_frontend::{ImportOptions, Meaning, import};
use irc_ark_model::to_ark;
use irc_diag::{Diagnostic, Source};
use irc_dialects::ark;
use irc_executor::{Kernels, Rank};
use irc_mlir::{Capture, OperationLike, parse_module, to_text};
use irc_tensor::{DType, Tensor, TensorType, Tolerance, compare};
use irc_tl::Results;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// A model of one op after another, each on buffers of its own.
fn model(ops: impl IntoIterator<Item = Op>) -> Model {
    let node = |(id, mut op): (u64, Op)| {
        let tensors = op.reads.iter_mut().chain(&mut op.writes).chain(&mut op.results);
        tensors.for_each(|tensor: &mut ArkTensor| {
            tensor.id += 100 * id;
            tensor.buffer.id += 100 * id;
        });
        Node { id, producers: vec![], consumers: vec![], op }
    };
    Model { rank: 0, world_size: 2, nodes: (0..).zip(ops).map(node).collect() }
}

#[test]
fn each_is_imported_verified_printed_parsed_and_exported() {
    let context = irc_dialects::new_context();
    for kind in OpKind::ALL {
        let model = model([kind.example()]);
        let module = ark::import(&context, &model, ark::Origins::default());
        let capture = Capture::new(&context);
        assert!(module.as_operation().verify(), "{kind}: {:?}", capture.take());
        let text = to_text(&module.as_operation(), true);
        assert!(text.contains(&format!("ark.{}", ark::mnemonic(*kind))), "{kind}: {text}");
        let parsed = parse_module(&context, &text).unwrap_or_else(|| panic!("{kind}: {text}"));
        let exported = ark::export(&parsed);
        assert_eq!(exported.unwrap_or_else(|_| panic!("{kind}: {:?}", capture.take())), model);
    }
}

/// The data types of operands that are computed alike.
fn examples(kind: OpKind) -> Vec<Op> {
    let of = |dtype: DataType| {
        let mut op = kind.example();
        let tensors = op.reads.iter_mut().chain(&mut op.writes).chain(&mut op.results);
        let floats = tensors.filter(|tensor| tensor.dtype == DataType::Fp32);
        floats.for_each(|tensor| tensor.dtype = dtype);
        op
    };
    let types: &[DataType] = match kind.row().elements {
        Elements::Floats => &[DataType::Fp32, DataType::Fp16],
        Elements::Any | Elements::Numbers => &[DataType::Fp32, DataType::Fp16, DataType::Int32],
    };
    types.iter().copied().map(of).collect()
}

/// Numbers that every op has a result of.
fn numbers(ty: TensorType) -> Tensor {
    let count = ty.shape.iter().product::<i64>() as usize;
    let is_float = ty.dtype.is_float();
    let number = |index: usize| match is_float {
        true => 0.25 + (index * 5 % 7) as f64 / 4.0,
        false => (1 + index % 3) as f64,
    };
    Tensor::from_f64(ty, &(0..count).map(number).collect::<Vec<_>>()).unwrap()
}

#[test]
fn each_that_computes_is_planned_compiled_and_run() {
    let computes = |kind: &&OpKind| !matches!(Meaning::of(**kind), Meaning::None(_));
    let kinds = OpKind::ALL.iter().filter(computes);
    let mut model = model(kinds.flat_map(|kind| examples(*kind)));
    model.world_size = 1;
    let options = ImportOptions { results: Results::All, ..ImportOptions::default() };
    let graph = import(&model, &options).unwrap_or_else(|found| panic!("{found:#?}"));
    let known = graph.inputs.iter().map(|(name, value)| (name, graph.ty(*value).known().unwrap()));
    let inputs: BTreeMap<_, _> = known.map(|(name, ty)| (name.clone(), numbers(ty))).collect();

    let target = planner::Target::new(Architecture::Any, None).unwrap();
    let planned = planner::plan(&model, &planner::Options::new(target)).unwrap();
    let wrong: Vec<_> =
        plan::check(&planned.plan).into_iter().filter(Diagnostic::is_error).collect();
    assert_eq!(wrong, []);
    let source = Source::new("plan.json", plan::write(&planned.plan));
    let compiled = Session::new().plan(source).compile(&Target::host()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("plan.so");
    fs::write(&library, &compiled.library).unwrap();
    let kernels = Kernels::load(&library).unwrap();
    let rank = Rank::new(planned.plan, &compiled.code, kernels).unwrap();
    let mut memories = [rank.memory(inputs.clone()).unwrap()];
    irc_executor::run(&[&rank], &mut memories, irc_executor::Options::default()).unwrap();
    let [memory] = memories;
    let found = rank.outputs(memory);

    let results = graph.eval(&inputs).unwrap();
    for ((name, _), expected) in graph.outputs.iter().zip(results) {
        let result = compare(&expected, &found[name], Tolerance::of(expected.dtype())).unwrap();
        let writes = |node: &&Node| {
            node.op.writes.iter().any(|w| *name == format!("buffer_{}", w.buffer.id))
        };
        let kind = model.nodes.iter().find(writes).map(|node| node.op.kind);
        assert!(result.is_match(), "{kind:?}: {result}");
        assert_ne!(expected.dtype(), DType::Bool);
    }
}

#[test]
fn each_that_is_one_op_of_the_tensor_level_is_written_for_it() {
    for kind in OpKind::ALL {
        let is_one = matches!(
            Meaning::of(*kind),
            Meaning::Unary(_) | Meaning::Binary(_) | Meaning::Reduction(_) | Meaning::Same(_)
        );
        if is_one {
            let graph = import(&model([kind.example()]), &ImportOptions::default()).unwrap();
            let written = to_ark(&graph).unwrap_or_else(|found| panic!("{kind}: {found:#?}"));
            let mut kinds = written.model.nodes.iter().map(|node| node.op.kind);
            assert!(kinds.any(|own| own == *kind), "{kind}: {:?}", written.model);
        }
    }
}

/// The example of the page is in the files that it names, as it says, and in no other.
#[test]
fn the_how_to_names_every_home() {
    let page = fs::read_to_string(root().join("docs/how-to-add.md")).unwrap();
    let (_, section) = page.split_once("\n## An op of a source format\n").expect("the recipe");
    let (_, rest) = section.split_once("The example is ARK's `").expect("an example");
    let (example, rest) = rest.split_once('`').unwrap();
    assert!(OpKind::from_name(example).is_some());
    let table = rest.lines().skip_while(|line| !line.starts_with('|'));
    let mut homes = BTreeSet::new();
    for row in table.skip(2).take_while(|line| line.starts_with('|')) {
        let code: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [file, line] = code[..] else { panic!("a file and what stands there: {row}") };
        let text = fs::read_to_string(root().join(file)).unwrap();
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert!(words(&text).contains(&words(line)), "{file}: {line}");
        homes.insert(file.to_owned());
    }
    assert!((1..=2).contains(&homes.len()), "{homes:?}");
    let mut found = BTreeSet::new();
    for folder in ["formats/ark/src", "dialects", "compiler", "runtime", "tools"] {
        mentions(&root().join(folder), example, &mut found).unwrap();
    }
    assert_eq!(found, homes);
}

/// Adds the source files below a folder, without tests, that know kinds of ARK and mention one.
fn mentions(folder: &Path, kind: &str, found: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            mentions(&path, kind, found)?;
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path)?;
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            if text.contains("OpKind") && words.any(|word| word == kind) {
                let path = path.strip_prefix(root()).unwrap();
                found.insert(path.to_string_lossy().into_owned());
            }
        }
    }
    Ok(())
}
