//! ARK models of graphs compute what the graphs do: by the reference, and as plans on the executor.
use crate::support::{
    files::{models, root},
    graphs::{compile, read_back},
};
use irc::{Session, Target, planner};
use irc_ark_format::{model, plan, plan::Architecture};
use irc_ark_model::{ArkModel, Role, to_ark};
use irc_diag::{Sink, Source};
use irc_executor::{Kernels, Rank};
use irc_tensor::{Tensor, TensorType, Tolerance, compare};
use irc_tl::{
    Binary, Builder, Built, Compute, Constant, DType, Dim, Graph, Op, Reduction, Rounding, Scalar,
    Type, Unary, ValueId,
};
use std::collections::BTreeMap;

type Tensors = BTreeMap<String, Tensor>;

fn f32s(shape: impl Into<Vec<i64>>, seed: u64) -> Tensor {
    Tensor::random(TensorType::new(DType::F32, shape), seed).unwrap()
}

fn emitted(graph: &Graph) -> ArkModel {
    to_ark(graph).unwrap_or_else(|found| panic!("{found:#?}"))
}

/// The buffers of a model with the inputs of its graph in them.
fn buffers(ark: &ArkModel, inputs: &Tensors) -> Tensors {
    let mut buffers = ark.constants().unwrap();
    for buffer in ark.buffers.iter().filter(|buffer| buffer.role == Role::Input) {
        let given = &inputs[&buffer.name];
        let flat = TensorType::new(given.dtype(), [given.elements() as i64]);
        let mut given = Tensor::from_bytes(flat, given.bytes()).unwrap();
        if given.dtype() == DType::I64 {
            let cast = Op::Cast { to: DType::I32, rounding: Rounding::TowardZero };
            given = cast.eval(&[&given]).unwrap();
        }
        buffers.insert(format!("buffer_{}", buffer.id), given);
    }
    buffers
}

/// Compares the outputs of a model with those of its graph.
fn same(what: &str, ark: &ArkModel, expected: &Tensors, found: &Tensors) {
    for buffer in ark.buffers.iter().filter(|buffer| buffer.role == Role::Output) {
        let (expected, found) = (&expected[&buffer.name], &found[&format!("buffer_{}", buffer.id)]);
        assert_eq!(expected.shape(), buffer.shape, "{what}: {}", buffer.name);
        let found = Tensor::from_bytes(expected.ty().clone(), found.bytes()).unwrap();
        let result = compare(expected, &found, Tolerance::of(expected.dtype())).unwrap();
        assert!(result.is_match(), "{what}: {}: {result}", buffer.name);
    }
}

/// Runs the model's plan of the host's own architecture.
fn planned(ark: &ArkModel, inputs: Tensors) -> Tensors {
    let target = planner::Target::new(Architecture::Any, None).unwrap();
    let planned = planner::plan(&ark.model, &planner::Options::new(target));
    let planned = planned.unwrap_or_else(|found| panic!("{found:#?}"));
    let source = Source::new("plan.json", plan::write(&planned.plan));
    let compiled = Session::new().plan(source).compile(&Target::host()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("plan.so");
    std::fs::write(&library, &compiled.library).unwrap();
    let kernels = Kernels::load(&library).unwrap();
    let rank = Rank::new(planned.plan, &compiled.code, kernels).unwrap();
    let mut memories = [rank.memory(inputs).unwrap()];
    let options = irc_executor::Options { threads: 2, ..irc_executor::Options::default() };
    irc_executor::run(&[&rank], &mut memories, options).unwrap();
    let [memory] = memories;
    rank.outputs(memory)
}

/// The results of a model, as the reference has them.
fn evaluated(ark: &ArkModel, mut given: Tensors) -> Tensors {
    let options = irc_ark_frontend::ImportOptions::default();
    let graph = irc_ark_frontend::import(&ark.model, &options).unwrap();
    for value in &graph.preserved {
        let ty = graph.ty(*value).known().unwrap();
        let (name, _) = graph.inputs.iter().find(|(_, input)| input == value).unwrap();
        given.entry(name.clone()).or_insert_with(|| Tensor::zeros(ty).unwrap());
    }
    let results = graph.eval(&given).unwrap();
    graph.outputs.iter().map(|(name, _)| name.clone()).zip(results).collect()
}

/// The file of a model is read as it was written.
fn reads_back(ark: &ArkModel) {
    let text = model::write(&ark.model);
    let source = Source::new("model.json", &text);
    let mut sink = Sink::new();
    let read = model::parse(&source, &model::Options::default(), &mut sink);
    let read = read.unwrap_or_else(|| panic!("{:#?}", sink.into_diagnostics()));
    assert!(read.model == ark.model);
}

/// The model of a graph, its reference and its plan agree with the graph's evaluation.
fn agree(graph: &Graph, inputs: &[(&str, Tensor)]) -> ArkModel {
    let inputs: Tensors =
        inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    let results = graph.eval(&inputs).unwrap();
    let expected: Tensors =
        graph.outputs.iter().map(|(name, _)| name.clone()).zip(results).collect();
    let ark = emitted(graph);
    reads_back(&ark);
    let buffers = buffers(&ark, &inputs);
    let found = evaluated(&ark, buffers.clone());
    assert_eq!(found.len(), graph.outputs.len());
    same("reference", &ark, &expected, &found);
    same("plan", &ark, &expected, &planned(&ark, buffers));
    ark
}

/// What an importer writes of models.
struct Layer {
    b: Builder,
    seed: u64,
}

impl Layer {
    fn weight(&mut self, shape: &[i64]) -> ValueId {
        self.seed += 1;
        let mut tensor = f32s(shape, self.seed);
        for index in 0..tensor.elements() {
            tensor.set_f64(index, tensor.get_f64(index) / 4.0);
        }
        self.b.tensor(&tensor)
    }

    fn number(&mut self, function: Binary, x: ValueId, number: f64) -> Built {
        let dtype = self.b.dtype(x);
        let number = self.b.fill(number, &[], dtype)?;
        self.b.binary(function, x, number)
    }

    fn linear(&mut self, x: ValueId, depth: i64, width: i64) -> Built {
        let (w, bias) = (self.weight(&[depth, width]), self.weight(&[width]));
        let product = self.b.matmul(x, w)?;
        self.b.binary(Binary::Add, product, bias)
    }

    fn layer_norm(&mut self, x: ValueId, axis: usize, width: i64) -> Built {
        let mean = self.b.reduce(Reduction::Mean, x, &[axis], true)?;
        let centred = self.b.binary(Binary::Sub, x, mean)?;
        let squares = self.b.binary(Binary::Mul, centred, centred)?;
        let variance = self.b.reduce(Reduction::Mean, squares, &[axis], true)?;
        let variance = self.number(Binary::Add, variance, 1e-5)?;
        let inverse = self.b.unary(Unary::Rsqrt, variance)?;
        let normal = self.b.binary(Binary::Mul, centred, inverse)?;
        let (scale, bias) = (self.weight(&[width]), self.weight(&[width]));
        let scaled = self.b.binary(Binary::Mul, normal, scale)?;
        self.b.binary(Binary::Add, scaled, bias)
    }

    fn softmax(&mut self, x: ValueId) -> Built {
        let last = [self.b.rank(x) - 1];
        let most = self.b.reduce(Reduction::Max, x, &last, true)?;
        let moved = self.b.binary(Binary::Sub, x, most)?;
        let powers = self.b.unary(Unary::Exp, moved)?;
        let sum = self.b.reduce(Reduction::Sum, powers, &last, true)?;
        self.b.binary(Binary::Div, powers, sum)
    }

    fn gelu(&mut self, x: ValueId) -> Built {
        let t = self.number(Binary::Div, x, 2.0_f64.sqrt())?;
        let t = self.b.unary(Unary::Erf, t)?;
        let t = self.number(Binary::Add, t, 1.0)?;
        let product = self.b.binary(Binary::Mul, x, t)?;
        self.number(Binary::Mul, product, 0.5)
    }

    /// `[1, rows, heads * width]` as `[1, heads, rows, width]`.
    fn heads(&mut self, x: ValueId, [rows, heads, width]: [i64; 3]) -> Built {
        let x = self.b.reshape(x, &[1, rows, heads, width].map(Dim::Known))?;
        self.b.transpose(x, &[0, 2, 1, 3])
    }

    /// One after the other along axis 2, as the ONNX front end writes it.
    fn concat(&mut self, x: ValueId, y: ValueId) -> Built {
        let mut dims = self.b.dims(x);
        let first = dims[2].known().unwrap();
        dims[2] = dims[2].clone() + self.b.dims(y)[2].clone();
        let body =
            format!("select(i2 < {first}, %0[i0, i1, i2, i3], %1[i0, i1, i2 - {first}, i3])");
        self.b.compute(Compute::map(dims, body.parse().unwrap()), &[x, y])
    }
}

/// One step of a decoder with its past: rows of a table by indices, attention, a gated layer.
fn decoder() -> Built<Graph> {
    let (rows, heads, width, past) = (3, 2, 4, 5);
    let d = heads * width;
    let mut l = Layer { b: Builder::new(), seed: 10 };
    let ids = l.b.input("ids", Type::new(DType::I64, [1, rows].map(Dim::Known)));
    let past_dims = [1, heads, past, width].map(Dim::Known);
    let (past_k, past_v) = (
        l.b.input("past_k", Type::new(DType::F32, past_dims.clone())),
        l.b.input("past_v", Type::new(DType::F32, past_dims)),
    );
    let table = l.weight(&[50, d]);
    let body = "%0[max(min(select(cast<i64>(%1[i0, i1]) < 0, cast<i64>(%1[i0, i1]) + 50, cast<i64>(%1[i0, i1])), 49), 0), i2]";
    let dims = [1, rows, d].map(Dim::Known);
    let x = l.b.compute(Compute::map(dims.clone(), body.parse().unwrap()), &[table, ids])?;
    let y = l.layer_norm(x, 2, d)?;
    let y = l.b.reshape(y, &[rows, d].map(Dim::Known))?;
    let qkv = l.linear(y, d, 3 * d)?;
    let mut parts = vec![];
    for part in 0..3 {
        let slice = Op::Slice { offsets: vec![0, part * d], sizes: vec![rows, d] };
        let part = l.b.op(slice, &[qkv])?;
        parts.push(l.heads(part, [rows, heads, width])?);
    }
    let (k, v) = (l.concat(past_k, parts[1])?, l.concat(past_v, parts[2])?);
    let turned = l.b.transpose(k, &[0, 1, 3, 2])?;
    let scores = l.b.matmul(parts[0], turned)?;
    let scores = l.number(Binary::Mul, scores, 0.5)?;
    let scores = l.softmax(scores)?;
    let mixed = l.b.matmul(scores, v)?;
    let mixed = l.b.transpose(mixed, &[0, 2, 1, 3])?;
    let mixed = l.b.reshape(mixed, &[rows, d].map(Dim::Known))?;
    let out = l.linear(mixed, d, d)?;
    let out = l.b.reshape(out, &dims)?;
    let x = l.b.binary(Binary::Add, x, out)?;
    let flat = l.b.reshape(x, &[rows, d].map(Dim::Known))?;
    let hidden = l.linear(flat, d, 4 * d)?;
    let hidden = l.gelu(hidden)?;
    let gate = l.b.unary(Unary::Tanh, hidden)?;
    let gate = l.b.unary(Unary::Sigmoid, gate)?;
    let hidden = l.b.binary(Binary::Mul, hidden, gate)?;
    let out = l.linear(hidden, 4 * d, d)?;
    let out = l.b.reshape(out, &dims)?;
    let x = l.b.binary(Binary::Add, x, out)?;
    l.b.output("x", x);
    // Outputs that nodes read as well.
    l.b.output("k", k);
    l.b.output("v", v);
    Ok(l.b.finish())
}

#[test]
fn a_decoder_step_agrees() {
    let graph = decoder().unwrap();
    let ids = Tensor::from_values([1, 3], &[7_i64, -1, 49]).unwrap();
    let (k, v) = (f32s([1, 2, 5, 4], 1), f32s([1, 2, 5, 4], 2));
    let ark = agree(&graph, &[("ids", ids), ("past_k", k), ("past_v", v)]);
    let roles: Vec<(&str, &str)> = ark
        .buffers
        .iter()
        .filter(|buffer| buffer.role != Role::Constant)
        .map(|buffer| (buffer.name.as_str(), buffer.data_type.name()))
        .collect();
    let expected = [
        ("ids", "INT32"),
        ("past_k", "FP32"),
        ("past_v", "FP32"),
        ("x", "FP32"),
        ("k", "FP32"),
        ("v", "FP32"),
    ];
    assert_eq!(roles, expected);
    assert!(ark.names().contains("\"Name\": \"ids\""), "{}", ark.names());
}

#[test]
fn moves_of_elements_agree() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [4, 6].map(Dim::Known)));
    let map = |dims: &[i64], body: &str| {
        let dims: Vec<Dim> = dims.iter().copied().map(Dim::Known).collect();
        Compute::map(dims, body.parse::<Scalar>().unwrap())
    };
    let all = [
        // A pad of both sides, with a number that is not zero.
        (vec![4, 9], "select(0 <= i1 - 1 and i1 - 1 < 6, %0[i0, i1 - 1], 2.5 : f32)"),
        // A permutation and a new dimension.
        (vec![6, 2, 4], "%0[i2, i0]"),
        // A row.
        (vec![6], "%0[2, i0]"),
        // A box.
        (vec![2, 3], "%0[i0 + 1, i1 + 3]"),
    ];
    for (index, (dims, body)) in all.iter().enumerate() {
        let value = b.compute(map(dims, body), &[x]).unwrap();
        b.output(format!("y{index}"), value);
    }
    let slice = Op::Slice { offsets: vec![1, 2], sizes: vec![2, 4] };
    let slice = b.op(slice, &[x]).unwrap();
    let flat = b.reshape(slice, &[Dim::Known(8)]).unwrap();
    let wide = b.broadcast(flat, &[Dim::Known(3), Dim::Known(8)]).unwrap();
    let sum = b.reduce(Reduction::Min, wide, &[0, 1], false).unwrap();
    b.output("least", sum);
    b.output("wide", wide);
    b.output("same", x);
    let ones = b.fill(1.5, &[Dim::Known(2)], DType::F32).unwrap();
    b.output("ones", ones);
    agree(&b.finish(), &[("x", f32s([4, 6], 3))]);
}

#[test]
fn numbers_agree() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [3, 5].map(Dim::Known)));
    let number = |b: &mut Builder, function, number, is_left: bool| {
        let number = b.fill(number, &[], DType::F32).unwrap();
        let operands = if is_left { [number, x] } else { [x, number] };
        b.binary(function, operands[0], operands[1]).unwrap()
    };
    let all = [
        (Binary::Sub, 0.1, false),
        (Binary::Sub, 0.1, true),
        (Binary::Div, 3.0, false),
        (Binary::Div, 3.0, true),
        (Binary::Div, 8.0, false),
        (Binary::Max, 0.0, true),
        (Binary::Min, 0.0, false),
        (Binary::Pow, 2.0, false),
        (Binary::Pow, 3.0, false),
    ];
    for (index, (function, value, is_left)) in all.into_iter().enumerate() {
        let value = number(&mut b, function, value, is_left);
        b.output(format!("y{index}"), value);
    }
    for function in [Unary::Neg, Unary::Abs, Unary::Tanh, Unary::Erf, Unary::Relu] {
        let value = b.unary(function, x).unwrap();
        b.output(function.name(), value);
        // In 16 bits as well.
        let narrow = b.cast(x, DType::F16).unwrap();
        let narrow = b.unary(function, narrow).unwrap();
        b.output(format!("{} of f16", function.name()), narrow);
    }
    let values =
        [-1e30_f32, -9.0, -4.0, -1.0, -0.3, -1e-20, 0.0, 1e-8, 1e-3, 0.5, 0.9, 2.0, 3.7, 5.0, 1e30];
    // Cubes of numbers up to there are finite; of 16 bits the largest are infinite.
    let values = values.map(|value| value.clamp(-1e12, 1e12));
    agree(&b.finish(), &[("x", Tensor::from_values([3, 5], &values).unwrap())]);
}

#[test]
fn all_that_ark_lacks_is_listed() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [4].map(Dim::Known)));
    let y = b.input("y", Type::new(DType::F64, [4].map(Dim::Known)));
    b.set_origin(Some("graph.node[0]: Sin(wave)".into()));
    let sin = b.unary(Unary::Sin, x).unwrap();
    b.set_origin(Some("graph.node[1]".into()));
    let most = b.binary(Binary::Max, sin, x).unwrap();
    b.set_origin(None);
    let double = b.binary(Binary::Add, y, y).unwrap();
    b.output("most", most);
    b.output("double", double);
    let found = to_ark(&b.finish()).unwrap_err();
    let messages: Vec<(Option<&str>, &str)> =
        found.iter().map(|one| (one.path.as_deref(), &*one.message)).collect();
    let expected = [
        (Some("graph.node[0]"), "Sin(wave): ARK has no op for sin"),
        (Some("graph.node[1]"), "tl.max: ARK has no op for max"),
        (None, "tl.add: ARK has no elements of f64"),
    ];
    assert_eq!(messages, expected);
}

#[test]
fn sizes_must_be_known() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N")]));
    let y = b.unary(Unary::Exp, x).unwrap();
    b.output("y", y);
    let found = to_ark(&b.finish()).unwrap_err();
    let expected = "shapes of ARK are numbers, and the graph depends on the sizes N";
    assert_eq!(found[0].message, expected);
}

/// The models of a folder that `IRC_ONNX_MODELS` names: their plans against the compiled library.
#[test]
fn models_of_a_folder_agree() {
    let Some(folder) = std::env::var_os("IRC_ONNX_MODELS") else { return };
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "onnx"));
    paths.sort();
    for path in paths {
        let document = irc_common_format::open(
            &path,
            &irc_common_format::Options::default(),
            &mut Sink::new(),
        );
        let options = irc_onnx_ops::ImportOptions::default();
        let graph = irc_onnx_ops::import(&document.unwrap().module, &options).unwrap().graph;
        let start = std::time::Instant::now();
        let ark = emitted(&graph);
        println!("{}: {} nodes, {:?}", path.display(), ark.model.nodes.len(), start.elapsed());
        let inputs: Tensors = graph
            .inputs
            .iter()
            .map(|(name, value)| {
                let ty = graph.ty(*value).known().unwrap();
                let tensor = match ty.dtype {
                    DType::I64 => Tensor::zeros(ty).unwrap(),
                    _ => Tensor::random(ty, irc_tensor::seed_for(1, name)).unwrap(),
                };
                (name.clone(), tensor)
            })
            .collect();
        let expected = compile(&graph).runner().unwrap().run(inputs.clone()).unwrap();
        same("plan", &ark, &expected, &planned(&ark, buffers(&ark, &inputs)));
        println!("{}: plan agrees, {:?}", path.display(), start.elapsed());
    }
}

/// A model as a graph as a model again is the same program.
#[test]
fn models_of_graphs_of_models_agree() {
    let (mut agreed, mut lacking) = (0, vec![]);
    let folders = [root().join("examples"), root().join("tests/models")];
    for path in folders.iter().flat_map(|folder| models(folder)) {
        let source = Source::new("model.json", std::fs::read_to_string(&path).unwrap());
        let document = model::parse(&source, &model::Options::default(), &mut Sink::new());
        let document = document.unwrap();
        let work = |op: &model::Op| op.tensors().map(|t| t.shape.iter().product::<i64>()).max();
        if document.model.nodes.iter().filter_map(|node| work(&node.op)).max() > Some(1 << 16) {
            continue;
        }
        let options = irc_ark_frontend::ImportOptions::default();
        let Ok(graph) = irc_ark_frontend::import(&document.model, &options) else { continue };
        let read = read_back(&graph);
        let ark = match to_ark(&graph) {
            Ok(ark) => ark,
            Err(found) => {
                lacking.push(format!("{}: {}", path.display(), found[0].message));
                continue;
            }
        };
        let inputs: Tensors = graph
            .inputs
            .iter()
            .map(|(name, value)| {
                let ty = graph.ty(*value).known().unwrap();
                (name.clone(), Tensor::random(ty, irc_tensor::seed_for(1, name)).unwrap())
            })
            .collect();
        let results = graph.eval(&inputs).unwrap();
        assert_eq!(read.eval(&inputs).unwrap(), results, "{}", path.display());
        let names = graph.outputs.iter().map(|(name, _)| name.clone());
        let expected: Tensors = names.zip(results).collect();
        let found = evaluated(&ark, buffers(&ark, &inputs));
        same(&path.display().to_string(), &ark, &expected, &found);
        agreed += 1;
    }
    println!("{agreed} agree; {}", lacking.join("; "));
    assert!(agreed >= 20, "{agreed} agree; {}", lacking.join("; "));
}

/// Constants of 64 bits that only index are narrowed.
#[test]
fn constant_indices_are_narrowed() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [70, 3].map(Dim::Known)));
    let wide: Vec<i64> = (0..60).map(|index| index * 7 % 70).collect();
    let ty = TensorType::new(DType::I64, [60]);
    let bytes: Vec<u8> = wide.iter().flat_map(|index| index.to_le_bytes()).collect();
    let index = b.constant(Constant::new(ty, bytes));
    let dims = [60, 3].map(Dim::Known);
    let rows = b.compute(Compute::map(dims, "%0[%1[i0], i1]".parse().unwrap()), &[x, index]);
    b.output("rows", rows.unwrap());
    agree(&b.finish(), &[("x", f32s([70, 3], 3))]);
}
