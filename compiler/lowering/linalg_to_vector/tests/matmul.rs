//! Products of every size class, layout and type, with epilogues.
use super::{Target, check, compare, lowered_text, random_inputs, run, run_keeping};
use irc_mlir::ops::{arith, func};

/// `C[m, n] = A * B` with the given layouts of `A` and `B`.
fn matmul(m: i64, n: i64, k: i64, transpose: (bool, bool), ty: &str, sum: &str) -> String {
    let shape =
        |swap: bool, a: i64, b: i64| if swap { format!("{b}x{a}") } else { format!("{a}x{b}") };
    let map = |swap: bool, a: &str, b: &str| {
        if swap { format!("({b}, {a})") } else { format!("({a}, {b})") }
    };
    let (a, b) = (shape(transpose.0, m, k), shape(transpose.1, k, n));
    let (ma, mb) = (map(transpose.0, "m", "k"), map(transpose.1, "k", "n"));
    let float = sum.starts_with('f');
    let (mul, add) = if float { (arith::MULF, arith::ADDF) } else { (arith::MULI, arith::ADDI) };
    let zero = if float { "0.0" } else { "0" };
    let ext = if float { arith::EXTF } else { arith::EXTSI };
    let body = if ty == sum {
        format!("%p = {mul} %a, %b : {sum}")
    } else {
        format!(
            "%x = {ext} %a : {ty} to {sum}\n %y = {ext} %b : {ty} to {sum}\n %p = {mul} %x, %y : {sum}"
        )
    };
    format!(
        r#"
func.func @k(%A: tensor<{a}x{ty}>, %B: tensor<{b}x{ty}>) -> tensor<{m}x{n}x{sum}> attributes {{tl.kernel = #tl.kernel}} {{
  %z = arith.constant {zero} : {sum}
  %e = tensor.empty() : tensor<{m}x{n}x{sum}>
  %f = linalg.fill ins(%z : {sum}) outs(%e : tensor<{m}x{n}x{sum}>) -> tensor<{m}x{n}x{sum}>
  %0 = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> {ma}>, affine_map<(m, n, k) -> {mb}>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
    ins(%A, %B : tensor<{a}x{ty}>, tensor<{b}x{ty}>) outs(%f : tensor<{m}x{n}x{sum}>) {{
  ^bb0(%a: {ty}, %b: {ty}, %o: {sum}):
    {body}
    %s = {add} %o, %p : {sum}
    linalg.yield %s : {sum} }} -> tensor<{m}x{n}x{sum}>
  return %0 : tensor<{m}x{n}x{sum}>
}}"#
    )
}

#[test]
fn odd_sizes_in_all_layouts() {
    for transpose in [(false, false), (true, false), (false, true), (true, true)] {
        for (m, n, k) in [(8, 32, 16), (13, 45, 37), (33, 100, 19), (64, 64, 64), (9, 7, 50)] {
            check(&matmul(m, n, k, transpose, "f32", "f32"), 1e-5);
        }
    }
}

#[test]
fn few_rows_and_few_columns() {
    for transpose in [(false, false), (false, true)] {
        for (m, n, k) in
            [(1, 300, 70), (2, 33, 40), (3, 65, 9), (4, 200, 33), (40, 1, 30), (5, 1, 1)]
        {
            check(&matmul(m, n, k, transpose, "f32", "f32"), 1e-5);
        }
    }
}

#[test]
fn deep_products_accumulate_over_blocks() {
    for (m, n, k) in [(20, 70, 2500), (150, 40, 1100)] {
        check(&matmul(m, n, k, (false, false), "f32", "f32"), 1e-4);
        check(&matmul(m, n, k, (false, true), "f16", "f32"), 1e-4);
    }
}

#[test]
fn wide_products_go_by_blocks_of_columns() {
    check(&matmul(10, 2100, 24, (false, false), "f32", "f32"), 1e-5);
    check(&matmul(300, 1050, 600, (true, true), "f32", "f32"), 1e-4);
}

#[test]
fn narrow_types_are_widened_when_packed() {
    for transpose in [(false, false), (true, false), (false, true)] {
        for (ty, sum, tolerance) in
            [("f16", "f32", 1e-5), ("bf16", "f32", 1e-5), ("i8", "i32", 0.0), ("i32", "i32", 0.0)]
        {
            check(&matmul(21, 50, 35, transpose, ty, sum), tolerance);
        }
    }
}

#[test]
fn batches_loop_outside() {
    check(
        r#"
func.func @k(%A: tensor<2x3x17x20xf32>, %B: tensor<3x20x34xf32>) -> tensor<2x3x17x34xf32> attributes {tl.kernel = #tl.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x17x34xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x3x17x34xf32>) -> tensor<2x3x17x34xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (h, k, n)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<2x3x17x20xf32>, tensor<3x20x34xf32>) outs(%f : tensor<2x3x17x34xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32 } -> tensor<2x3x17x34xf32>
  return %0 : tensor<2x3x17x34xf32>
}"#,
        1e-5,
    );
}

/// Bias row, residual, gelu, and the pre-activation returned as well.
fn with_epilogue(m: i64, n: i64, k: i64) -> String {
    r#"
#mn = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @k(%A: tensor<MxKxf32>, %B: tensor<KxNxf32>, %bias: tensor<Nxf32>, %res: tensor<MxNxf32>) -> (tensor<MxNxf32>, tensor<MxNxf16>) attributes {tl.kernel = #tl.kernel} {
  %z = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<MxNxf32>
  %h = tensor.empty() : tensor<MxNxf16>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<MxNxf32>) -> tensor<MxNxf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<MxKxf32>, tensor<KxNxf32>) outs(%f : tensor<MxNxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32 } -> tensor<MxNxf32>
  %1 = linalg.generic {indexing_maps = [#mn, #n, #mn, #mn], iterator_types = ["parallel", "parallel"]}
    ins(%0, %bias, %res : tensor<MxNxf32>, tensor<Nxf32>, tensor<MxNxf32>) outs(%e : tensor<MxNxf32>) {
  ^bb0(%a: f32, %b: f32, %r: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    %t = arith.addf %s, %r : f32
    linalg.yield %t : f32 } -> tensor<MxNxf32>
  %2 = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]}
    ins(%1 : tensor<MxNxf32>) outs(%h : tensor<MxNxf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = math.erf %a : f32
    %u = arith.addf %t, %one : f32
    %v = arith.mulf %a, %u : f32
    %w = arith.mulf %v, %half : f32
    %x = arith.truncf %w : f32 to f16
    linalg.yield %x : f16 } -> tensor<MxNxf16>
  return %1, %2 : tensor<MxNxf32>, tensor<MxNxf16>
}"#
    .replace("MxK", &format!("{m}x{k}"))
    .replace("KxN", &format!("{k}x{n}"))
    .replace("MxN", &format!("{m}x{n}"))
    .replace("<Nx", &format!("<{n}x"))
}

#[test]
fn the_epilogue_runs_on_the_tile() {
    for (m, n, k) in [(16, 64, 40), (19, 77, 33), (1, 40, 21), (12, 50, 2100), (3, 130, 64)] {
        check(&with_epilogue(m, n, k), 2e-3);
    }
}

#[test]
fn a_softmax_after_a_product_is_a_nest_of_its_own() {
    let source = super::rows::softmax(17, 29);
    let product = r#"
func.func @softmax(%A: tensor<17x24xf32>, %B: tensor<24x29xf32>) -> tensor<17x29xf32> attributes {tl.kernel = #tl.kernel} {
  %ez = tensor.empty() : tensor<17x29xf32>
  %z = arith.constant 0.0 : f32
  %fz = linalg.fill ins(%z : f32) outs(%ez : tensor<17x29xf32>) -> tensor<17x29xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<17x24xf32>, tensor<24x29xf32>) outs(%fz : tensor<17x29xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32 } -> tensor<17x29xf32>"#;
    let start = source.find(func::FUNC).unwrap();
    let end = source[start..].find("{tl.kernel = #tl.kernel} {").unwrap()
        + start
        + "{tl.kernel = #tl.kernel} {".len();
    check(&format!("{}{product}{}", &source[..start], &source[end..]), 1e-5);
}

/// `B` is packed in a call that fills the kept memory, and not read in one that finds it filled.
#[test]
fn packed_blocks_are_kept() {
    // One block; blocks of columns and of depth; columns and depth that do not fill whole panels.
    for (m, n, k) in [(9, 64, 48), (8, 1100, 1090), (7, 45, 2000)] {
        for transposed in [false, true] {
            let plain = matmul(m, n, k, (false, transposed), "f32", "f32");
            let keeping =
                plain.replace("{tl.kernel = #tl.kernel}", "{tl.kernel = #tl.kernel<keeps = unit>}");
            for vector_bytes in [64, 32] {
                let target = Target { vector_bytes, ..Target::default() };
                let mut inputs = random_inputs(&plain);
                let expected = run(&plain, &mut inputs, &target);
                let mut kept = None;
                let first = run_keeping(&keeping, &mut inputs, &mut kept, &target);
                compare(&first[0], &expected[0], 0.0, "packed");
                (0..inputs[1].len()).for_each(|index| inputs[1].set(index, 1e9));
                let second = run_keeping(&keeping, &mut inputs, &mut kept, &target);
                compare(&second[0], &expected[0], 0.0, "kept");
                let third = run_keeping(&keeping, &mut inputs, &mut None, &target);
                assert!(third[0].get(0) != expected[0].get(0), "an empty header packs anew");
            }
        }
    }
}

#[test]
fn what_the_kernel_computes_is_not_kept() {
    let text = |source: &str| {
        lowered_text(
            &source.replace("{tl.kernel = #tl.kernel}", "{tl.kernel = #tl.kernel<keeps = unit>}"),
        )
    };
    assert!(
        text(&matmul(8, 64, 48, (false, false), "f32", "f32")).contains("kept_arguments = [1]")
    );
    // Up to four rows: B is not packed at all.
    assert!(text(&matmul(2, 64, 48, (false, false), "f32", "f32")).contains("kept_bytes = 0"));
}
