//! Attention on GPUs, in an emulator that finds races: without the scores in memory, and with the results of the reference
//! evaluator.
use crate::gpu::{assemble, emulated, ptx, random};
use irc::Target;
use irc_ptx::Statistics;
use irc_runtime::GpuKernel;
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Binary, Builder, DType, Graph, Op, Reduction, Type, Unary, ValueId};
use std::{collections::BTreeMap, env, fs, path::PathBuf};

/// What is added to scores, or replaces some.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    None,
    /// A number for each key, which is added.
    Keys,
    /// A number for each query and key, which is added.
    All,
    /// Keys after the query have a score of minus infinity, or another.
    Causal(f64),
}

/// Attention of `[batch, length, heads, depth]`.
#[derive(Clone, Copy, Debug)]
struct Case {
    dtype: DType,
    batch: i64,
    heads: i64,
    queries: i64,
    keys: i64,
    depth: i64,
    width: i64,
    mask: Mask,
    /// Whether heads follow the batch, so that nothing is transposed but the keys.
    by_head: bool,
    /// Whether the softmax is also defined where all scores are minus infinity.
    is_bounded: bool,
}

const CASE: Case = Case {
    dtype: DType::F16,
    batch: 1,
    heads: 2,
    queries: 40,
    keys: 72,
    depth: 64,
    width: 64,
    mask: Mask::None,
    by_head: false,
    is_bounded: false,
};

impl Case {
    fn graph(self) -> Graph {
        let Self { dtype, batch, heads, queries, keys, depth, width, mask, by_head, is_bounded } =
            self;
        let mut b = Builder::new();
        let mut input = |name: &str, length: i64, width: i64| {
            let shape = match by_head {
                true => [batch, heads, length, width],
                false => [batch, length, heads, width],
            };
            let x = b.input(name, Type::from(TensorType::new(dtype, shape)));
            let op = Op::Transpose { permutation: vec![0, 2, 1, 3] };
            if by_head { x } else { b.op(op, &[x]).expect("a permutation") }
        };
        let q = input("q", queries, depth);
        let k = input("k", keys, depth);
        let v = input("v", keys, width);
        let of_keys = Op::Transpose { permutation: vec![0, 1, 3, 2] };
        let k = b.op(of_keys, &[k]).expect("a permutation");
        let scores = b.matmul(q, k).expect("matrices");
        let scale = b.fill(0.25, &[], dtype).expect("a number");
        let mut scores = b.binary(Binary::Mul, scores, scale).expect("numbers");
        let mask_input = |b: &mut Builder, dtype, shape: &[i64]| {
            b.input("mask", Type::from(TensorType::new(dtype, shape)))
        };
        scores = match mask {
            Mask::None => scores,
            Mask::Keys | Mask::All => {
                let rows = if mask == Mask::All { queries } else { 1 };
                let mask = mask_input(&mut b, dtype, &[batch, 1, rows, keys]);
                b.binary(Binary::Add, scores, mask).expect("one shape")
            }
            Mask::Causal(low) => {
                let shown = mask_input(&mut b, DType::Bool, &[queries, keys]);
                let low = b.fill(low, &[], dtype).expect("a number");
                b.op(Op::Select, &[shown, scores, low]).expect("one shape")
            }
        };
        let weights = softmax(&mut b, scores, is_bounded);
        let mixed = b.matmul(weights, v).expect("matrices");
        let op = Op::Transpose { permutation: vec![0, 2, 1, 3] };
        let mixed = if by_head { mixed } else { b.op(op, &[mixed]).expect("a permutation") };
        b.output("mixed", mixed);
        b.finish()
    }

    fn inputs(self, graph: &Graph) -> BTreeMap<String, Tensor> {
        let mut inputs = random(graph);
        if let Mask::Causal(_) = self.mask {
            let shown = (0..self.queries)
                .flat_map(|query| (0..self.keys).map(move |key| f64::from(key <= query)));
            let ty = TensorType::new(DType::Bool, [self.queries, self.keys]);
            let shown = Tensor::from_f64(ty, &shown.collect::<Vec<_>>()).expect("numbers");
            inputs.insert("mask".to_owned(), shown);
        }
        inputs
    }

    /// Compiles and assembles it for both architectures; returns the PTX.
    fn assembled(self) -> [String; 2] {
        let graph = self.graph();
        [(80, "sm_80"), (90, "sm_90a")].map(|(capability, architecture)| {
            let name = format!("{self:?} {architecture}");
            let text = ptx(&graph, &Target::gpu(capability))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Some(folder) = env::var_os("IRC_KEEP_PTX") {
                let file = PathBuf::from(folder).join(format!("attention_{architecture}.ptx"));
                fs::write(file, &text).expect("writable");
            }
            let kernel = GpuKernel::from_ptx(&text).expect("a description");
            let scores = self.batch * self.heads * self.queries * self.keys * 4;
            let workspace = kernel.interface.workspace_bytes;
            assert!(workspace < scores as u64, "{name}: {workspace} bytes of {scores}");
            assemble(&name, &text, architecture);
            text
        })
    }

    /// As [`Self::assembled`], and emulates it.
    fn run(self) -> [String; 2] {
        let texts = self.assembled();
        let inputs = self.inputs(&self.graph());
        for text in &texts {
            self.agrees(&inputs, text);
        }
        texts
    }

    /// Compares the emulated result with what is computed in single precision: weights are rounded to halves, and so is
    /// the result.
    fn agrees(self, inputs: &BTreeMap<String, Tensor>, text: &str) -> Statistics {
        let widened = inputs.iter().map(|(name, value)| {
            let dtype = if value.dtype().is_float() { DType::F32 } else { value.dtype() };
            let ty = TensorType::new(dtype, value.shape().to_vec());
            (name.clone(), Tensor::from_f64(ty, &value.to_f64()).expect("numbers"))
        });
        let wide = Self { dtype: DType::F32, ..self }.graph();
        let expected = wide.eval(&widened.collect()).expect("numbers")[0].to_f64();
        let emulated = emulated(&format!("{self:?}"), inputs, text);
        let found = emulated.outputs["mixed"].to_f64();
        let rounding = match self.dtype {
            DType::F32 => 2f64.powi(-16),
            DType::F16 => 2f64.powi(-11),
            _ => 2f64.powi(-8),
        };
        let largest = inputs["v"].to_f64().into_iter().fold(0.0, |max, x| f64::max(max, x.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            let allowed = rounding * (expected.abs() + largest);
            let same = (found - expected).abs() <= allowed || found.is_nan() && expected.is_nan();
            assert!(same, "{self:?}: {found} {expected}");
        }
        emulated.statistics
    }
}

fn softmax(b: &mut Builder, x: ValueId, is_bounded: bool) -> ValueId {
    let to = b.dtype(x);
    let x = if is_bounded { b.cast(x, DType::F32).expect("floats") } else { x };
    let at_least = |b: &mut Builder, x: ValueId, bound: f64| {
        let bound = b.scalar(bound, DType::F32).expect("a number");
        if is_bounded { b.binary(Binary::Max, x, bound).expect("floats") } else { x }
    };
    let max = b.reduce(Reduction::Max, x, &[3], true).expect("rows");
    let max = at_least(b, max, f64::from(f32::MIN));
    let x = b.binary(Binary::Sub, x, max).expect("rows");
    let x = b.unary(Unary::Exp, x).expect("floats");
    let sum = b.reduce(Reduction::Sum, x, &[3], true).expect("rows");
    let sum = at_least(b, sum, 0.5);
    let weights = b.binary(Binary::Div, x, sum).expect("rows");
    b.cast(weights, to).expect("floats")
}

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

#[test]
fn halves_are_multiplied_on_tensor_cores() {
    for dtype in [DType::F16, DType::BF16] {
        for text in (Case { dtype, ..CASE }).run() {
            for part in ["cp.async.cg.shared.global", "ldmatrix", "mma.sync", "ex2.approx"] {
                assert!(text.contains(part), "{dtype}: {part}");
            }
        }
    }
}

#[test]
fn single_precision_is_multiplied_in_registers() {
    for text in (Case { dtype: DType::F32, ..CASE }).run() {
        assert!(text.contains("cp.async.cg.shared.global"), "{text}");
        assert!(!text.contains("mma.sync"), "{text}");
    }
}

#[test]
fn heads_of_every_size() {
    let sizes = [(32, 32), (80, 80), (96, 64), (128, 128), (64, 192), (256, 256)];
    for (depth, width) in sizes {
        for dtype in [DType::F32, DType::F16] {
            Case { dtype, depth, width, queries: 24, heads: 1, ..CASE }.run();
        }
    }
}

#[test]
fn factors_at_places_that_cannot_be_copied_are_computed() {
    // Lines of 20 and 12 elements are no multiples of 16 bytes in halves; neither are those of 9.
    for dtype in TYPES {
        for (depth, width) in [(20, 12), (9, 33)] {
            Case { dtype, depth, width, queries: 19, keys: 35, ..CASE }.run();
        }
    }
}

#[test]
fn scores_are_masked() {
    let masks = [Mask::Keys, Mask::All, Mask::Causal(-6e4), Mask::Causal(f64::NEG_INFINITY)];
    for dtype in TYPES {
        for mask in masks {
            Case { dtype, mask, batch: 2, heads: 1, queries: 70, keys: 150, ..CASE }.run();
        }
    }
}

#[test]
fn sums_of_rows_may_be_bounded() {
    let mask = Mask::Causal(f64::NEG_INFINITY);
    for dtype in TYPES {
        Case { dtype, mask, is_bounded: true, heads: 1, queries: 70, keys: 70, ..CASE }.run();
    }
}

#[test]
fn blocks_of_keys_that_no_query_sees_are_not_copied() {
    let sizes = Case { heads: 1, queries: 128, keys: 512, ..CASE };
    let [skipped, all] = [f64::NEG_INFINITY, -6e4].map(|low| {
        let case = Case { mask: Mask::Causal(low), ..sizes };
        let graph = case.graph();
        let text = ptx(&graph, &Target::gpu(80)).expect("PTX");
        case.agrees(&case.inputs(&graph), &text).global_read
    });
    // Three quarters of the keys and values.
    let keys = (sizes.keys - sizes.queries) * (sizes.depth + sizes.width) * 2;
    assert!(skipped + keys as u64 / 2 < all, "{skipped} {all}");
}

#[test]
fn keys_of_few_queries_are_divided_among_blocks() {
    for dtype in TYPES {
        for (queries, keys) in [(1, 700), (3, 1030)] {
            let case = Case { dtype, queries, keys, depth: 32, width: 32, by_head: true, ..CASE };
            for text in case.run() {
                let kernel = GpuKernel::from_ptx(&text).expect("a description");
                // The sums of two parts or more.
                let least = 2 * case.heads * queries * case.width * 4;
                assert!(kernel.interface.workspace_bytes > least as u64, "{case:?}: {kernel:?}");
            }
        }
    }
}

#[test]
fn queries_that_see_no_key_have_no_result() {
    // The first query of the second half of a block of rows: all of its scores are minus infinity.
    let case = Case { mask: Mask::Causal(f64::NEG_INFINITY), queries: 20, ..CASE };
    let mut inputs = case.inputs(&case.graph());
    let shown = (0..case.queries)
        .flat_map(|query| (0..case.keys).map(move |key| f64::from(query != 8 && key <= query)));
    let ty = TensorType::new(DType::Bool, [case.queries, case.keys]);
    let shown = Tensor::from_f64(ty, &shown.collect::<Vec<_>>()).expect("numbers");
    inputs.insert("mask".to_owned(), shown);
    case.agrees(&inputs, &case.assembled()[0]);
}

#[test]
fn large_heads_of_long_sequences_fit_in_registers() {
    for dtype in TYPES {
        for size in [64, 128, 256] {
            let (heads, queries, keys) = (32, 1024, 1024);
            let sizes = Case { dtype, batch: 4, heads, queries, keys, ..CASE };
            Case { depth: size, width: size, mask: Mask::All, ..sizes }.assembled();
        }
    }
}
