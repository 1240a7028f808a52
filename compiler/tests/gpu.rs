//! Kernels for GPUs, in an emulator that finds races: their results are those of the reference evaluator.
use irc::{
    Session, Source, Target,
    codegen::{GpuForm, Output},
    gpu::{Emulated, EmulationError, Options, emulate},
};
use irc_tensor::{Tensor, TensorType, Tolerance, compare};
use irc_tl::{Binary, Builder, Comparison, DType, Graph, Op, Reduction, Type, Unary};
use std::{collections::BTreeMap, env, fs, path::PathBuf, process::Command};

/// The PTX of a graph.
pub(crate) fn ptx(graph: &Graph, target: &Target) -> Result<String, String> {
    let session = Session::new();
    let code = session.import_graph(graph).emit(Output::Ptx, target.clone());
    let code = code.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(code).expect("text"))
}

/// NVIDIA's assembler: that of `IRC_PTXAS`, or the one that `./irc-dev build` installs.
pub(crate) fn ptxas() -> Option<PathBuf> {
    let installed =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ptxas/nvidia/cuda_nvcc/bin/ptxas");
    let named = env::var_os("IRC_PTXAS").map(PathBuf::from);
    let found = named.unwrap_or_else(|| installed.into());
    let there = found.is_file();
    if !there {
        eprintln!("not assembled: there is no {}", found.display());
    }
    there.then_some(found)
}

/// Assembles PTX, if there is an assembler: without warnings, with the registers and the shared memory, static and dynamic,
/// that a block may have, and without registers in memory.
pub(crate) fn assemble(name: &str, text: &str, architecture: &str) {
    let Some(ptxas) = ptxas() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [source, object] = ["k.ptx", "k.cubin"].map(|file| folder.path().join(file));
    fs::write(&source, text).expect("writable");
    let mut command = Command::new(ptxas);
    command.args(["-v", "-arch", architecture, "-o"]).arg(object).arg(source);
    let output = command.output().expect("ptxas starts");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {report}");
    for word in ["warning", "Performance Loss"] {
        assert!(!report.contains(word), "{name}: {report}");
    }
    let kernel = irc_runtime::GpuKernel::from_ptx(text).expect("a description");
    let most = if architecture == "sm_80" { 163 << 10 } else { 227 << 10 };
    let used: Vec<&str> =
        report.lines().filter_map(|line| line.split_once("Used ")).map(|it| it.1).collect();
    assert!(!used.is_empty(), "{name}: {report}");
    for used in used {
        let number = |what: &str| {
            let found = used.split(", ").find_map(|part| part.trim_end().strip_suffix(what));
            found.map_or(0, |found| found.trim_start_matches("used ").parse().expect("a number"))
        };
        let (registers, shared): (u64, u64) = (number(" registers"), number(" bytes smem"));
        assert!(
            registers > 0 && registers * u64::from(kernel.threads) <= 1 << 16,
            "{name}: {report}"
        );
        assert!(shared + kernel.shared_bytes <= most, "{name}: {report}");
    }
    // Of all functions, stores and loads.
    let spills =
        report.split([',', '\n']).filter_map(|part| part.trim().split_once(" bytes spill"));
    let spills: u64 = spills.map(|(bytes, _)| bytes.parse::<u64>().expect("a number")).sum();
    assert!(spills == 0, "{name}: {report}");
}

/// A program as one kernel, and as a launch for each step.
pub(crate) const FORMS: [GpuForm; 2] =
    [GpuForm { timestamps: false, separate: false }, GpuForm { timestamps: false, separate: true }];

/// Compiles and emulates a graph in each form, and compares every output with the evaluation, and of the forms bit for bit.
fn agree(name: &str, graph: &Graph, inputs: &BTreeMap<String, Tensor>) {
    let [whole, launches] = FORMS.map(|form| {
        let target = Target { form, ..Target::gpu(80) };
        let text = ptx(graph, &target).unwrap_or_else(|error| panic!("{name} {form:?}: {error}"));
        agree_in(name, graph, inputs, &text)
    });
    assert!(whole == launches, "{name}: a launch for each step gives other numbers");
}

/// Emulates the PTX of a graph, and compares every output with the evaluation.
fn agree_in(
    name: &str,
    graph: &Graph,
    inputs: &BTreeMap<String, Tensor>,
    text: &str,
) -> BTreeMap<String, Tensor> {
    let expected = graph.eval(inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
    let found = emulated(name, inputs, text).outputs;
    for ((output, _), expected) in graph.outputs.iter().zip(&expected) {
        let tolerance = Tolerance::of(expected.dtype());
        let same = compare(expected, &found[output], tolerance).expect("one type");
        assert!(same.is_match(), "{name}: {output}: {same}");
    }
    found
}

/// Emulates PTX.
pub(crate) fn emulated(name: &str, inputs: &BTreeMap<String, Tensor>, text: &str) -> Emulated {
    let source = Source::new("kernel.ptx", text);
    emulate(&source, inputs, &Options::CHECKED).unwrap_or_else(|error| match error {
        EmulationError::Message(message) => panic!("{name}: {message}"),
        EmulationError::Diagnostics(found) => panic!("{name}: {}", found[0].message),
    })
}

pub(crate) fn random(graph: &Graph) -> BTreeMap<String, Tensor> {
    let mut inputs = BTreeMap::new();
    for (number, (name, value)) in graph.inputs.iter().enumerate() {
        let ty = graph.ty(*value).known().expect("a known type");
        let tensor = Tensor::random(ty, number as u64 + 1).expect("a type of numbers");
        inputs.insert(name.clone(), tensor);
    }
    inputs
}

fn f32s(shape: &[i64]) -> Type {
    Type::from(TensorType::new(DType::F32, shape))
}

#[test]
fn products_run_in_tiles_of_every_type_and_layout() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        for (transpose_lhs, transpose_rhs) in [(false, false), (false, true), (true, false)] {
            // Rows, columns and summands that do not fill tiles.
            let (rows, columns, depth) = (70, 33, 41);
            let mut b = Builder::new();
            let shape = |transposed: bool, shape: [i64; 2]| match transposed {
                true => [2, shape[1], shape[0]],
                false => [2, shape[0], shape[1]],
            };
            let input = |shape: [i64; 3]| Type::from(TensorType::new(dtype, shape));
            let x = b.input("x", input(shape(transpose_lhs, [rows, depth])));
            let y = b.input("y", input(shape(transpose_rhs, [depth, columns])));
            let op = Op::Matmul { transpose_lhs, transpose_rhs };
            let product = b.op(op, &[x, y]).expect("matrices");
            let product = b.unary(Unary::Tanh, product).expect("floats");
            b.output("z", product);
            let graph = b.finish();
            agree(&format!("{dtype} {transpose_lhs} {transpose_rhs}"), &graph, &random(&graph));
            let text = ptx(&graph, &Target::gpu(80)).expect("PTX");
            let has = text.contains("mma.sync.aligned.m16n8k16");
            assert_eq!(has, dtype != DType::F32, "{dtype}");
            assemble("product", &text, "sm_80");
            assemble("product", &ptx(&graph, &Target::gpu(90)).expect("PTX"), "sm_90a");
        }
    }
}

/// Compiles products for both architectures, assembles and emulates them; returns the PTX of each.
fn products(name: &str, graph: &Graph) -> [String; 2] {
    [(80, "sm_80"), (90, "sm_90a")].map(|(capability, architecture)| {
        let name = format!("{name} {architecture}");
        let text =
            ptx(graph, &Target::gpu(capability)).unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Some(folder) = env::var_os("IRC_KEEP_PTX") {
            let file = PathBuf::from(folder).join(format!("{}.ptx", name.replace(' ', "_")));
            fs::write(file, &text).expect("writable");
        }
        assemble(&name, &text, architecture);
        agree_in(&name, graph, &random(graph), &text);
        text
    })
}

/// A product of matrices of a type, with a bias and a function after it.
fn dense(dtype: DType, [batch, rows, columns, depth]: [i64; 4], transposed: [bool; 2]) -> Graph {
    let mut b = Builder::new();
    let shape = |transposed: bool, shape: [i64; 2]| match transposed {
        true => [batch, shape[1], shape[0]],
        false => [batch, shape[0], shape[1]],
    };
    let x = b.input("x", Type::from(TensorType::new(dtype, shape(transposed[0], [rows, depth]))));
    let y =
        b.input("y", Type::from(TensorType::new(dtype, shape(transposed[1], [depth, columns]))));
    let bias = b.input("bias", Type::from(TensorType::new(dtype, [columns])));
    let [transpose_lhs, transpose_rhs] = transposed;
    let product = b.op(Op::Matmul { transpose_lhs, transpose_rhs }, &[x, y]).expect("matrices");
    let sum = b.binary(Binary::Add, product, bias).expect("columns");
    let result = b.unary(Unary::Tanh, sum).expect("floats");
    b.output("z", result);
    b.finish()
}

#[test]
fn halves_at_regular_places_are_copied_asynchronously() {
    for dtype in [DType::F16, DType::BF16] {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            // Rows, columns and summands that do not fill tiles, but 16 bytes.
            let graph = dense(dtype, [2, 136, 200, 72], transposed);
            let [ampere, hopper] = products(&format!("{dtype} {transposed:?}"), &graph);
            for part in ["cp.async.cg.shared.global", "cp.async.wait_group", "ldmatrix", "mma.sync"]
            {
                assert!(ampere.contains(part), "{dtype} {transposed:?}: {part}");
            }
            for part in ["cp.async.bulk.tensor", "mbarrier.try_wait", "wgmma.mma_async"] {
                assert!(hopper.contains(part), "{dtype} {transposed:?}: {part}");
            }
        }
    }
}

#[test]
fn large_products_run_in_large_tiles() {
    // As many tiles as processors, or twice as many of half the size.
    for (size, tile) in [([1, 1152, 1536, 24], "m64n128k16"), ([1, 1536, 1536, 24], "m64n256k16")] {
        let mut b = Builder::new();
        let [_, rows, columns, depth] = size;
        let input = |shape: [i64; 2]| Type::from(TensorType::new(DType::BF16, shape));
        let x = b.input("x", input([rows, depth]));
        let y = b.input("y", input([depth, columns]));
        let op = Op::Matmul { transpose_lhs: false, transpose_rhs: false };
        let product = b.op(op, &[x, y]).expect("matrices");
        b.output("z", product);
        let [_, hopper] = products(&format!("large {rows}"), &b.finish());
        assert!(hopper.contains(tile), "{rows}");
    }
}

#[test]
fn products_follow_products_and_number_heads() {
    // Two products of heads, whose rows lie apart, and one of the result: barriers of the ring are used again.
    let (batch, rows, heads, width) = (2, 96, 3, 64);
    let mut b = Builder::new();
    let ty = Type::from(TensorType::new(DType::BF16, [batch, rows, heads, width]));
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, ty.clone()));
    let mut by_head = |x| {
        let op = Op::Transpose { permutation: vec![0, 2, 1, 3] };
        b.op(op, &[x]).expect("a permutation")
    };
    let [q, k, v] = [q, k, v].map(&mut by_head);
    let op = |transpose_rhs| Op::Matmul { transpose_lhs: false, transpose_rhs };
    let scores = b.op(op(true), &[q, k]).expect("matrices");
    let positive = b.unary(Unary::Abs, scores).expect("floats");
    let result = b.op(op(false), &[positive, v]).expect("matrices");
    b.output("y", result);
    products("heads", &b.finish());
}

/// Random inputs, of which weights are small, so that errors do not grow from layer to layer.
fn small(graph: &Graph, weights: &[&str]) -> BTreeMap<String, Tensor> {
    let mut inputs = random(graph);
    for name in weights {
        let given = &inputs[*name];
        let values: Vec<f64> = given.to_f64().iter().map(|it| it / 8.0).collect();
        let scaled = Tensor::from_f64(given.ty().clone(), &values).expect("floats");
        inputs.insert((*name).to_owned(), scaled);
    }
    inputs
}

#[test]
fn deep_models_have_the_code_of_each_kernel_once() {
    // Layers of one shape, with a matrix of their own for every other one.
    let deep = |layers: usize| {
        let mut b = Builder::new();
        let matrix = |rows| Type::from(TensorType::new(DType::BF16, [rows, 64]));
        let mut x = b.input("x", matrix(72));
        let weights = [b.input("v", matrix(64)), b.input("w", matrix(64))];
        let bias = b.input("bias", Type::from(TensorType::new(DType::BF16, [64])));
        for layer in 0..layers {
            let op = Op::Matmul { transpose_lhs: false, transpose_rhs: false };
            let product = b.op(op, &[x, weights[layer % 2]]).expect("matrices");
            let sum = b.binary(Binary::Add, product, bias).expect("columns");
            x = b.unary(Unary::Tanh, sum).expect("floats");
        }
        b.output("y", x);
        b.finish()
    };
    for (capability, architecture, instruction) in
        [(80, "sm_80", "mma.sync"), (90, "sm_90a", "wgmma.mma_async")]
    {
        let target = Target::gpu(capability);
        let texts = [4, 80].map(|layers| ptx(&deep(layers), &target).expect("PTX"));
        let [few, many] = [0, 1].map(|at| texts[at].matches(instruction).count());
        assert!(few > 0 && few == many, "{architecture}: {few} and {many}");
        let kernel = irc_runtime::GpuKernel::from_ptx(&texts[1]).expect("a description");
        assert_eq!(kernel.steps.len(), 80, "{architecture}");
        assemble(&format!("deep {architecture}"), &texts[1], architecture);
        let graph = deep(4);
        agree_in(&format!("deep {architecture}"), &graph, &small(&graph, &["v", "w"]), &texts[0]);
    }
    let graph = deep(80);
    agree("deep", &graph, &small(&graph, &["v", "w"]));
}

/// A chain of products of small matrices, each a kernel.
fn chain(kernels: usize) -> Graph {
    let mut b = Builder::new();
    let mut x = b.input("x", f32s(&[8, 8]));
    let [w, bias] = ["w", "bias"].map(|name| b.input(name, f32s(&[8, 8])));
    for _ in 0..kernels {
        let product = b.matmul(x, w).expect("matrices");
        let sum = b.binary(Binary::Add, product, bias).expect("one shape");
        x = b.unary(Unary::Tanh, sum).expect("floats");
    }
    b.output("y", x);
    b.finish()
}

/// How many calls each function of PTX has.
fn calls(text: &str) -> BTreeMap<&str, usize> {
    let mut calls = BTreeMap::new();
    let callees = text.split("call.uni").skip(1).filter_map(|it| it.split([',', ';']).next());
    callees.for_each(|callee| *calls.entry(callee.trim()).or_insert(0) += 1);
    calls
}

#[test]
fn calls_of_many_launches_are_forwarded() {
    let separate = Target { form: FORMS[1], ..Target::gpu(80) };
    for (kernels, forwarding) in [(64, 0), (130, 3)] {
        let graph = chain(kernels);
        let name = format!("{kernels} kernels");
        let text = ptx(&graph, &separate).expect("PTX");
        let kernel = irc_runtime::GpuKernel::from_ptx(&text).expect("a description");
        assert_eq!(kernel.launches.len(), kernels, "{name}");
        let calls = calls(&text);
        let of = |forwards: bool| -> Vec<usize> {
            let kernels = calls.iter().filter(|(callee, _)| callee.contains("matmul"));
            let some = kernels.filter(|(callee, _)| callee.contains("_call_") == forwards);
            some.map(|(_, count)| *count).collect()
        };
        // All launches call functions that forward, at most 64 each, and these the kernel.
        let (direct, forwarded) = (of(false), of(true));
        assert_eq!(forwarded.len(), forwarding, "{name}: {calls:?}");
        let (callers, most) = if forwarding == 0 { (kernels, 0) } else { (forwarding, 64) };
        assert_eq!(direct, [callers], "{name}: {calls:?}");
        let sum: usize = if forwarding == 0 { 0 } else { kernels };
        assert_eq!(forwarded.iter().sum::<usize>(), sum, "{name}: {calls:?}");
        assert!(forwarded.iter().all(|count| *count <= most), "{name}: {calls:?}");
        assemble(&name, &text, "sm_80");
        agree(&name, &graph, &small(&graph, &["w"]));
    }
}

#[test]
fn summands_of_few_tiles_are_divided() {
    for dtype in [DType::F32, DType::BF16] {
        let graph = dense(dtype, [1, 72, 48, 1096], [false, true]);
        for text in products(&format!("parts {dtype}"), &graph) {
            // The sums of four parts of each element.
            let kernel = irc_runtime::GpuKernel::from_ptx(&text).expect("a description");
            assert!(kernel.interface.workspace_bytes >= 72 * 48 * 4 * 4, "{dtype}: {kernel:?}");
        }
    }
}

#[test]
fn tiles_that_do_not_divide_evenly_are_shared() {
    // One tile; some, with sizes that do not fill them; more than twice as many as processors, of
    // which a round is computed whole.
    let cases = [
        (DType::F32, [1, 60, 64, 448], 2 * 64 * 60),
        (DType::F32, [3, 70, 50, 700], 17 * 2 * 64 * 50),
        (DType::F32, [230, 40, 40, 208], 108 * 2 * 40 * 40),
        (DType::BF16, [1, 190, 1208, 2240], 108 * 2 * 64 * 64),
    ];
    for (dtype, [batch, rows, columns, depth], sums) in cases {
        let graph = dense(dtype, [batch, rows, columns, depth], [false, true]);
        let text = ptx(&graph, &Target::gpu(80)).expect("PTX");
        let kernel = irc_runtime::GpuKernel::from_ptx(&text).expect("a description");
        let name = format!("{dtype} {batch} {rows} {columns} {depth}");
        assert!(kernel.interface.workspace_bytes >= sums * 4, "{name}: {kernel:?}");
        assemble(&name, &text, "sm_80");
        agree_in(&name, &graph, &random(&graph), &text);
    }
    // Shares alone, and rounds of whole tiles before them.
    for size in [[1, 1100, 568, 3520], [1, 4096, 11008, 4096]] {
        let graph = dense(DType::BF16, size, [false, true]);
        let text = ptx(&graph, &Target::gpu(90)).expect("PTX");
        let kernel = irc_runtime::GpuKernel::from_ptx(&text).expect("a description");
        assert!(kernel.interface.workspace_bytes >= 131 * 2 * 128 * 128 * 4, "{size:?}");
        assert!(text.contains("wgmma.mma_async"), "{size:?}");
        assemble(&format!("shares {size:?}"), &text, "sm_90a");
    }
}

#[test]
fn softmax_and_elementwise_chains_access_neighbours_together() {
    let mut b = Builder::new();
    let x = b.input("x", f32s(&[128, 200]));
    let rows = |kind| Op::Reduce { kind, axes: vec![1], keep_dims: true };
    let max = b.op(rows(Reduction::Max), &[x]).expect("rows");
    let shifted = b.binary(Binary::Sub, x, max).expect("rows");
    let exp = b.unary(Unary::Exp, shifted).expect("floats");
    let sum = b.op(rows(Reduction::Sum), &[exp]).expect("rows");
    let softmax = b.binary(Binary::Div, exp, sum).expect("rows");
    b.output("y", softmax);
    let graph = b.finish();
    agree("softmax", &graph, &random(&graph));

    let mut b = Builder::new();
    let (x, y) = (b.input("x", f32s(&[64, 512])), b.input("y", f32s(&[64, 512])));
    let sum = b.binary(Binary::Add, x, y).expect("one shape");
    let result = b.unary(Unary::Tanh, sum).expect("floats");
    b.output("z", result);
    let graph = b.finish();
    agree("chain", &graph, &random(&graph));
    let text = ptx(&graph, &Target::gpu(80)).expect("PTX");
    assert!(text.contains("ld.global.v4"), "{text}");
    assert!(text.contains("st.global.v4"), "{text}");
}

/// Ops without a form as loops around an expression, which are rejected.
const REJECTED: [&str; 2] = ["sequential_sum", "stepped_matmul"];

#[test]
fn transposed_results_are_stored_at_once() {
    for permutation in [[0, 2, 1, 3], [0, 1, 3, 2], [3, 0, 2, 1]] {
        let mut b = Builder::new();
        let x = b.input("x", f32s(&[2, 3, 70, 40]));
        let y = b.input("y", f32s(&[2, 3, 40, 33]));
        let product = b.matmul(x, y).expect("matrices");
        let turned = b.op(Op::Transpose { permutation: permutation.into() }, &[product]);
        b.output("z", turned.expect("four dimensions"));
        let graph = b.finish();
        agree(&format!("{permutation:?}"), &graph, &random(&graph));
    }
}

/// Rows of elements that are normalised, with a number for each row: `exp(x - max) / sum` and `sum`, or `(x - mean) / sqrt(variance + epsilon) * scale + bias`.
fn rows(shape: &[i64], dtype: DType, is_softmax: bool) -> Graph {
    let mut b = Builder::new();
    let input = |shape: &[i64]| Type::from(TensorType::new(dtype, shape));
    let (axis, columns) = (shape.len() - 1, shape[shape.len() - 1]);
    let x = b.input("x", input(shape));
    let rows = |kind| Op::Reduce { kind, axes: vec![axis], keep_dims: true };
    let y = if is_softmax {
        let max = b.op(rows(Reduction::Max), &[x]).expect("rows");
        let shifted = b.binary(Binary::Sub, x, max).expect("rows");
        let exp = b.unary(Unary::Exp, shifted).expect("floats");
        let sum = b.op(rows(Reduction::Sum), &[exp]).expect("rows");
        b.output("sum", sum);
        b.binary(Binary::Div, exp, sum).expect("rows")
    } else {
        let [scale, bias] = ["scale", "bias"].map(|name| b.input(name, input(&[columns])));
        let mean = b.op(rows(Reduction::Mean), &[x]).expect("rows");
        let centred = b.binary(Binary::Sub, x, mean).expect("rows");
        let square = b.binary(Binary::Mul, centred, centred).expect("floats");
        let variance = b.op(rows(Reduction::Mean), &[square]).expect("rows");
        let root = b.unary(Unary::Sqrt, variance).expect("floats");
        let normal = b.binary(Binary::Div, centred, root).expect("rows");
        let scaled = b.binary(Binary::Mul, normal, scale).expect("rows");
        b.binary(Binary::Add, scaled, bias).expect("rows")
    };
    b.output("y", y);
    b.finish()
}

#[test]
fn rows_are_computed_without_a_barrier_between_steps() {
    let f32 = DType::F32;
    let shapes: [(&[i64], DType, bool); 9] = [
        (&[128, 200], f32, true),
        (&[2, 3, 50], f32, true),
        (&[300, 1000], f32, true),
        (&[2, 5000], f32, true),
        (&[7, 1030], f32, false),
        (&[1, 768], f32, false),
        (&[64, 768], f32, false),
        (&[16, 384], DType::F16, true),
        (&[16, 384], DType::BF16, false),
    ];
    for (shape, dtype, is_softmax) in shapes {
        let graph = rows(shape, dtype, is_softmax);
        let name = format!("{shape:?} {dtype} {is_softmax}");
        agree(&name, &graph, &random(&graph));
        let text = ptx(&graph, &Target::gpu(80)).expect("PTX");
        // That at the end of the kernel.
        let barriers = text.matches("call.uni irc_gpu_processors_barrier").count();
        assert_eq!(barriers, 1, "{name}");
        assemble(&name, &text, "sm_80");
    }
}

/// The value of an operand of an example: small integers are indices too.
fn operand(ty: &TensorType, seed: u64) -> Tensor {
    if ty.dtype.is_float() {
        return Tensor::random(ty.clone(), seed).expect("floats");
    }
    let values: Vec<f64> = (0..ty.elements().expect("small")).map(|at| (at % 3) as f64).collect();
    Tensor::from_f64(ty.clone(), &values).expect("integers")
}

#[test]
fn every_op_runs_or_is_rejected() {
    for row in Op::rows() {
        let (op, types) = row.example();
        let mut b = Builder::new();
        let mut inputs = BTreeMap::new();
        let mut operands = vec![];
        for (number, ty) in types.iter().enumerate() {
            let name = format!("x{number}");
            operands.push(b.input(&name, Type::from(ty.clone())));
            inputs.insert(name, operand(ty, number as u64 + 1));
        }
        let result = b.op(op, &operands).expect("an example");
        b.output("y", result);
        let graph = b.finish();
        if REJECTED.contains(&row.name) {
            let error = ptx(&graph, &Target::gpu(80)).expect_err("no loops");
            assert!(error.contains("no form as loops"), "{}: {error}", row.name);
        } else {
            agree(row.name, &graph, &inputs);
            for (capability, architecture) in [(80, "sm_80"), (90, "sm_90a")] {
                let text = ptx(&graph, &Target::gpu(capability)).expect("PTX");
                assemble(row.name, &text, architecture);
            }
        }
    }
}

/// Units in the last place between two numbers of one sign.
fn ulps(a: f64, b: f64) -> u64 {
    match (a.is_nan() && b.is_nan() || a == b, a.signum() == b.signum()) {
        (true, _) => 0,
        (false, true) => a.abs().to_bits().abs_diff(b.abs().to_bits()),
        (false, false) => a.abs().to_bits() + b.abs().to_bits(),
    }
}

/// Floats of every exponent and sign, those of small magnitude in particular, and those beside multiples of a quarter turn.
/// The float that is nearest to a multiple of a quarter turn, its cosine, and its tangent. Those of glibc differ in the last
/// four bits.
const NEXT_TO_QUARTER_TURNS: f64 = 5.319_372_648_326_541e255;
const COSINE: f64 = -4.687_165_924_254_628e-19;
const TANGENT: f64 = -2.133_485_385_753_704e18;

fn sweep() -> Vec<f64> {
    let mut values = vec![0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    values.extend([f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324, 709.78, 710.4, -745.1]);
    values.push(NEXT_TO_QUARTER_TURNS);
    let spread = |at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    values.extend((0..4096).step_by(5).map(|it| f64::from_bits(it << 52 | spread(it) >> 12)));
    values.extend((0..400).map(|it| spread(it) as i64 as f64 * 2f64.powi(-63)));
    values.extend((0..400).map(|it| spread(it) as i64 as f64 * 2f64.powi(-57)));
    values.extend((1..200).map(|it| f64::from(it) * std::f64::consts::FRAC_PI_2));
    values
}

#[test]
fn functions_of_doubles_are_within_four_units_in_the_last_place() {
    let values = sweep();
    let count = values.len() as i64;
    let mut b = Builder::new();
    let ty = TensorType::new(DType::F64, [count]);
    let [x, y] = ["x", "y"].map(|name| b.input(name, Type::from(ty.clone())));
    // The exponentials of these two have rounded arguments.
    let functions = Unary::ALL.iter().filter(|it| it.takes(DType::F64));
    let functions = functions.filter(|it| !matches!(it, Unary::Gelu | Unary::Sigmoid));
    for function in functions {
        let result = b.unary(*function, x).expect("floats");
        b.output(function.name(), result);
    }
    for function in [Binary::Pow, Binary::Rem, Binary::Mod] {
        let result = b.binary(function, x, y).expect("floats");
        b.output(function.name(), result);
    }
    let graph = b.finish();
    // Each number with others, of the same range among them.
    let others = (0..values.len()).map(|at| values[(at * 7 + at / 31 + 3) % values.len()]);
    let others: Vec<f64> = others.collect();
    let tensor = |values: &[f64]| Tensor::from_f64(ty.clone(), values).expect("floats");
    let inputs = [("x", tensor(&values)), ("y", tensor(&others))];
    let inputs = inputs.map(|(name, value)| (name.to_owned(), value)).into();
    let expected = graph.eval(&inputs).expect("numbers");
    let text = ptx(&graph, &Target::gpu(80)).expect("PTX");
    assemble("functions of doubles", &text, "sm_80");
    let found = emulated("functions of doubles", &inputs, &text).outputs;
    let mut wrong = vec![];
    for ((name, _), expected) in graph.outputs.iter().zip(&expected) {
        let found = found[name].to_f64();
        for (at, (found, expected)) in found.iter().zip(expected.to_f64()).enumerate() {
            let (x, y) = (values[at], others[at]);
            let expected = match &**name {
                "cos" if x == NEXT_TO_QUARTER_TURNS => COSINE,
                "tan" if x == NEXT_TO_QUARTER_TURNS => TANGENT,
                _ => expected,
            };
            if ulps(*found, expected) > 4 {
                wrong.push(format!("{name} of {x:e}, {y:e}: {found:e}, {expected:e}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong, {:#?}", wrong.len(), &wrong[..wrong.len().min(40)]);
}

#[test]
fn remainders_of_floats_are_exact() {
    let mut b = Builder::new();
    let ty = TensorType::new(DType::F32, [2000]);
    let [x, y] = ["x", "y"].map(|name| b.input(name, Type::from(ty.clone())));
    let rest = b.binary(Binary::Rem, x, y).expect("floats");
    b.output("rest", rest);
    let graph = b.finish();
    // Quotients next to whole numbers, and far beyond 2^24.
    let dividends: Vec<f64> =
        (0..2000).map(|it| f64::from(it) * 0.1 * 3f64.powi(it % 40)).collect();
    let divisors: Vec<f64> = (0..2000).map(|it| f64::from(it % 7 + 1) * 0.1).collect();
    let tensor = |values: &[f64]| Tensor::from_f64(ty.clone(), values).expect("floats");
    let inputs = [("x", tensor(&dividends)), ("y", tensor(&divisors))];
    let inputs = inputs.map(|(name, value)| (name.to_owned(), value)).into();
    let expected = graph.eval(&inputs).expect("numbers")[0].to_f64();
    let text = ptx(&graph, &Target::gpu(80)).expect("PTX");
    assert_eq!(emulated("remainders", &inputs, &text).outputs["rest"].to_f64(), expected);
}

#[test]
fn what_a_gpu_cannot_run_is_rejected() {
    let rejected = |dtype: DType, of: fn(&mut Builder, irc_tl::ValueId) -> irc_tl::ValueId| {
        let mut b = Builder::new();
        let x = b.input("x", Type::from(TensorType::new(dtype, [4])));
        let y = of(&mut b, x);
        b.output("y", y);
        ptx(&b.finish(), &Target::gpu(80)).expect_err("rejected")
    };
    let message = rejected(DType::String, |b, x| b.compare(Comparison::Eq, x, x).expect("strings"));
    assert!(message.contains("strings"), "{message}");
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [irc_tl::Dim::symbol("N"), 4.into()]));
    let y = b.unary(Unary::Exp, x).expect("floats");
    b.output("y", y);
    let message = ptx(&b.finish(), &Target::gpu(80)).expect_err("an open size");
    assert!(message.contains("kernels for GPUs need known sizes"), "{message}");
}

#[test]
fn a_kernel_is_the_same_text_every_time() {
    let mut b = Builder::new();
    let x = b.input("x", f32s(&[64, 64]));
    let y = b.unary(Unary::Exp, x).expect("floats");
    b.output("y", y);
    let graph = b.finish();
    let made = || ptx(&graph, &Target::gpu(90)).expect("PTX");
    assert_eq!(made(), made());
}
