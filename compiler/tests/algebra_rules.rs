//! Every algebra rule, on a smallest program: it fires, and both sides agree bit for bit.
use irc::{eval::evaluate, fusion};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, Module, OperationLike, OperationRef, RegionLike, ValueLike, read, walk_collect,
};
use irc_tensor::Tensor;
use irc_tl::Row;

/// Rule, type of `%x`, the steps, the returned value and its type.
struct Case(&'static str, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case("transpose-into-matmul-left", "4x4xf32", &["tl.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>", "tl.matmul %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"], "4x4xf32"),
    Case("transpose-into-matmul-right", "4x8xf16", &["tl.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf16>) -> tensor<8x4xf16>", "tl.matmul %x, %0 : (tensor<4x8xf16>, tensor<8x4xf16>) -> tensor<4x4xf16>"], "4x4xf16"),
    Case("double-transpose", "2x3x4xf32", &["tl.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>", "tl.transpose %0 {permutation = array<i64: 2, 1, 0>} : (tensor<3x4x2xf32>) -> tensor<2x4x3xf32>"], "2x4x3xf32"),
    Case("transpose-of-units", "4x1x8xf32", &["tl.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<4x1x8xf32>) -> tensor<1x4x8xf32>"], "1x4x8xf32"),
    Case("double-reshape", "4x8xf32", &["tl.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>", "tl.reshape %0 : (tensor<32xf32>) -> tensor<2x16xf32>"], "2x16xf32"),
    Case("identity-reshape", "4x8xf32", &["tl.reshape %x : (tensor<4x8xf32>) -> tensor<4x8xf32>"], "4x8xf32"),
    Case("double-bitcast", "8xf32", &["tl.bitcast %x : (tensor<8xf32>) -> tensor<8xi32>", "tl.bitcast %0 : (tensor<8xi32>) -> tensor<16xf16>"], "16xf16"),
    Case("identity-bitcast", "8xf32", &["tl.bitcast %x : (tensor<8xf32>) -> tensor<8xf32>"], "8xf32"),
    Case("identity-broadcast", "8xf32", &["tl.broadcast %x : (tensor<8xf32>) -> tensor<8xf32>"], "8xf32"),
    Case("identity-slice", "8xf32", &["tl.slice %x {offsets = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>"], "8xf32"),
    Case("double-slice", "9xf32", &["tl.slice %x {offsets = array<i64: 2>} : (tensor<9xf32>) -> tensor<6xf32>", "tl.slice %0 {offsets = array<i64: 3>} : (tensor<6xf32>) -> tensor<2xf32>"], "2xf32"),
    Case("identity-cast", "8xf32", &["tl.cast %x {rounding = \"toward_zero\"} : (tensor<8xf32>) -> tensor<8xf32>"], "8xf32"),
    Case("cast-of-widening", "64xbf16", &["tl.cast %x {rounding = \"nearest_even\"} : (tensor<64xbf16>) -> tensor<64xf32>", "tl.cast %0 {rounding = \"nearest_even\"} : (tensor<64xf32>) -> tensor<64xi32>"], "64xi32"),
    Case("cast-of-fill", "4xf16", &["tl.fill {value = 0.1} : tensor<4xf32>", "tl.cast %0 {rounding = \"nearest_even\"} : (tensor<4xf32>) -> tensor<4xf16>", "tl.mul %x, %1 : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>"], "4xf16"),
    Case("reshape-of-fill", "4xf32", &["tl.fill {value = 0.1} : tensor<2x2xf32>", "tl.reshape %0 : (tensor<2x2xf32>) -> tensor<4xf32>", "tl.mul %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"], "4xf32"),
    Case("broadcast-of-fill", "4xf32", &["tl.fill {value = 0.1} : tensor<1xf32>", "tl.broadcast %0 : (tensor<1xf32>) -> tensor<4xf32>", "tl.mul %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"], "4xf32"),
    Case("transpose-of-fill", "2x4xf32", &["tl.fill {value = 0.1} : tensor<4x2xf32>", "tl.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>", "tl.mul %x, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>"], "2x4xf32"),
    Case("slice-of-fill", "4xf32", &["tl.fill {value = 0.1} : tensor<8xf32>", "tl.slice %0 {offsets = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>", "tl.mul %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"], "4xf32"),
    Case("mul-one-left", "8xbf16", &["tl.fill {value = 1.0} : tensor<1xbf16>", "tl.mul %0, %x : (tensor<1xbf16>, tensor<8xbf16>) -> tensor<8xbf16>"], "8xbf16"),
    Case("mul-one-right", "8xi32", &["tl.fill {value = 1.0} : tensor<1xi32>", "tl.mul %x, %0 : (tensor<8xi32>, tensor<1xi32>) -> tensor<8xi32>"], "8xi32"),
    Case("div-one", "8xf32", &["tl.fill {value = 1.0} : tensor<1xf32>", "tl.div %x, %0 : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>"], "8xf32"),
    Case("sub-zero", "8xf32", &["tl.fill {value = 0.0} : tensor<1xf32>", "tl.sub %x, %0 : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>"], "8xf32"),
    Case("add-zero-left", "8xf32", &["tl.fill {value = -0.0} : tensor<1xf32>", "tl.add %0, %x : (tensor<1xf32>, tensor<8xf32>) -> tensor<8xf32>"], "8xf32"),
    Case("add-zero-right", "8xui8", &["tl.fill {value = 0.0} : tensor<8xui8>", "tl.add %x, %0 : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xui8>"], "8xui8"),
    Case("keep-dims-of-sum", "4x8xf32", &["tl.reduce_sum %x {axes = array<i64: 1>, keep_dims = false} : (tensor<4x8xf32>) -> tensor<4xf32>", "tl.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>"], "4x1xf32"),
    Case("keep-dims-of-max", "4x8xf32", &["tl.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>", "tl.reshape %0 : (tensor<4x1xf32>) -> tensor<4xf32>"], "4xf32"),
    Case("keep-dims-of-mean", "4x8xf16", &["tl.reduce_mean %x {axes = array<i64: 0>, keep_dims = false} : (tensor<4x8xf16>) -> tensor<8xf16>", "tl.reshape %0 : (tensor<8xf16>) -> tensor<1x8xf16>"], "1x8xf16"),
];

impl Case {
    fn text(&self) -> String {
        let Self(_, input, steps, result) = self;
        let steps: Vec<_> =
            steps.iter().enumerate().map(|(at, step)| format!("%{at} = {step}\n")).collect();
        let last = steps.len() - 1;
        format!(
            "func.func @f(%x: tensor<{input}>) -> tensor<{result}> {{\n{}return %{last} : tensor<{result}>\n}}",
            steps.concat()
        )
    }
}

/// An op of a law, applied twice to what it takes.
fn applied_twice(rule: &str) -> Option<String> {
    let row = Row::named(rule.strip_prefix("double-")?)?;
    let (_, operands) = row.example();
    let element = if operands[0].dtype.is_float() { "f32" } else { "i32" };
    let step = |of: &str| format!("tl.{} {of} : tensor<8x{element}>", row.name);
    Some(format!(
        "func.func @f(%x: tensor<8x{element}>) -> tensor<8x{element}> {{\n\
         %0 = {}\n%1 = {}\nreturn %1 : tensor<8x{element}>\n}}",
        step("%x"),
        step("%0")
    ))
}

#[test]
fn every_rule_fires_and_keeps_every_bit() {
    for rule in fusion::algebra() {
        let case = CASES.iter().find(|case| case.0 == rule.name).map(Case::text);
        let case = case.or_else(|| applied_twice(&rule.name));
        let case = case.unwrap_or_else(|| panic!("rule {} has no case", rule.name));
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, &case).expect("cases parse");
        for input in inputs(&module) {
            let module = irc_mlir::parse_module(&context, &case).expect("cases parse");
            let before = read::body_ops(func(&module)).len();
            let expected = evaluate(func(&module), std::slice::from_ref(&input));
            let applied = fusion::simplify_function(func(&module)).expect("cases simplify");
            let fired = applied.iter().any(|applied| applied.rule == rule.name);
            assert!(fired, "{} does not fire: {applied:?}", rule.name);
            let found = evaluate(func(&module), &[input]);
            assert_eq!(expected, found, "{}", rule.name);
            assert!(read::body_ops(func(&module)).len() <= before, "{}", rule.name);
        }
    }
}

fn func<'c, 'a>(module: &'a Module<'c>) -> OperationRef<'c, 'a> {
    walk_collect(module.as_operation(), |op| read::op_name(&op) == func::FUNC)[0]
}

/// Random values, and the hard ones: zeros of both signs, infinities, halfway cases.
fn inputs(module: &Module<'_>) -> Vec<Tensor> {
    let block = func(module).region(0).expect("a region").first_block().expect("a block");
    let ty = tl::tensor_type_of(block.argument(0).expect("an argument").r#type()).expect("a type");
    let hard = [-0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 0.5, -1.5, 1e-40, 3.0];
    let count = ty.elements().expect("a small type");
    let hard: Vec<f64> = hard.into_iter().cycle().take(count).collect();
    vec![
        Tensor::random(ty.clone(), 1).expect("a tensor"),
        Tensor::random(ty.clone(), 2).expect("a tensor"),
        Tensor::from_f64(ty, &hard).expect("a tensor"),
    ]
}
