//! Reductions over any axes, and the row kernels: softmax, layernorm, RMSNorm.
use super::{check, lowered_text};
use irc_mlir::ops::arith;

fn reduction(
    shape: &str,
    input: &str,
    (output_shape, output): (&str, &str),
    kinds: &str,
    (op, start, ty): (&str, &str, &str),
) -> String {
    format!(
        r#"
func.func @k(%x: tensor<{shape}x{ty}>) -> tensor<{output_shape}{ty}> attributes {{tl.kernel = #tl.kernel}} {{
  %c = arith.constant {start} : {ty}
  %e = tensor.empty() : tensor<{output_shape}{ty}>
  %f = linalg.fill ins(%c : {ty}) outs(%e : tensor<{output_shape}{ty}>) -> tensor<{output_shape}{ty}>
  %0 = linalg.generic {{indexing_maps = [affine_map<(d0, d1, d2) -> {input}>, affine_map<(d0, d1, d2) -> {output}>], iterator_types = [{kinds}]}}
    ins(%x : tensor<{shape}x{ty}>) outs(%f : tensor<{output_shape}{ty}>) {{
  ^bb0(%a: {ty}, %o: {ty}):
    %s = {op} %o, %a : {ty}
    linalg.yield %s : {ty} }} -> tensor<{output_shape}{ty}>
  return %0 : tensor<{output_shape}{ty}>
}}"#
    )
}

#[test]
fn every_axis_reduces() {
    let (p, r) = ("\"parallel\"", "\"reduction\"");
    let axes = [
        (format!("{p}, {p}, {r}"), "3x5x", "(d0, d1)"),
        (format!("{p}, {r}, {p}"), "3x70x", "(d0, d2)"),
        (format!("{r}, {p}, {p}"), "5x70x", "(d1, d2)"),
        (format!("{p}, {r}, {r}"), "3x", "(d0)"),
        (format!("{r}, {r}, {p}"), "70x", "(d2)"),
        (format!("{r}, {p}, {r}"), "5x", "(d1)"),
        (format!("{r}, {r}, {r}"), "", "()"),
    ];
    for (kinds, shape, output) in axes {
        let input = "(d0, d1, d2)";
        for (op, start, ty, tolerance) in [
            (arith::ADDF, "0.0", "f32", 1e-5),
            (arith::MAXIMUMF, "0xFF800000", "f32", 0.0),
            (arith::ADDI, "3", "i32", 0.0),
            (arith::MINSI, "100", "i32", 0.0),
        ] {
            check(&reduction("3x5x70", input, (shape, output), &kinds, (op, start, ty)), tolerance);
        }
    }
}

#[test]
fn a_middle_axis_reduces_after_a_chain() {
    check(
        r#"
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#out = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
func.func @k(%x: tensor<3x2x4x21xf16>) -> tensor<3x4x21xf32> attributes {tl.kernel = #tl.kernel} {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x4x21xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%x : tensor<3x2x4x21xf16>) outs(%e : tensor<3x2x4x21xf32>) {
  ^bb0(%a: f16, %o: f32):
    %s = arith.extf %a : f16 to f32
    linalg.yield %s : f32 } -> tensor<3x2x4x21xf32>
  %f = tensor.empty() : tensor<3x4x21xf32>
  %g = linalg.fill ins(%c : f32) outs(%f : tensor<3x4x21xf32>) -> tensor<3x4x21xf32>
  %1 = linalg.generic {indexing_maps = [#id, #out], iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
    ins(%0 : tensor<3x2x4x21xf32>) outs(%g : tensor<3x4x21xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32 } -> tensor<3x4x21xf32>
  return %1 : tensor<3x4x21xf32>
}"#,
        1e-6,
    );
}

#[test]
fn a_product_starts_from_its_init() {
    let kinds = "\"parallel\", \"parallel\", \"reduction\"";
    let source = reduction(
        "2x3x9",
        "(d0, d1, d2)",
        ("2x3x", "(d0, d1)"),
        kinds,
        (arith::MULF, "2.5", "f32"),
    );
    check(&source, 1e-5);
}

pub fn softmax(rows: i64, columns: i64) -> String {
    r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
func.func @softmax(%x: tensor<RxCxf32>) -> tensor<RxCxf32> attributes {tl.kernel = #tl.kernel} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<Rx1xf32>
  %e = tensor.empty() : tensor<RxCxf32>
  %m0 = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<Rx1xf32>) -> tensor<Rx1xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<RxCxf32>) outs(%m0 : tensor<Rx1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32 } -> tensor<Rx1xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %m : tensor<RxCxf32>, tensor<Rx1xf32>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32 } -> tensor<RxCxf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%d : tensor<RxCxf32>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32 } -> tensor<RxCxf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<Rx1xf32>) -> tensor<Rx1xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<RxCxf32>) outs(%s0 : tensor<Rx1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32 } -> tensor<Rx1xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p, %s : tensor<RxCxf32>, tensor<Rx1xf32>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32 } -> tensor<RxCxf32>
  return %r : tensor<RxCxf32>
}"#
    .replace("RxC", &format!("{rows}x{columns}"))
    .replace("Rx1", &format!("{rows}x1"))
}

#[test]
fn softmax_keeps_its_row_in_the_workspace() {
    check(&softmax(7, 53), 1e-6);
    check(&softmax(3, 200), 1e-6);
    assert!(lowered_text(&softmax(4, 2048)).contains("workspace_bytes = 8192"));
}

pub fn layernorm(rows: i64, columns: i64) -> String {
    r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
func.func @layernorm(%x: tensor<RxCxf32>, %g: tensor<Cxf32>, %b: tensor<Cxf32>) -> tensor<RxCxf32> attributes {tl.kernel = #tl.kernel} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant COUNT : f32
  %eps = arith.constant 1.0e-5 : f32
  %e1 = tensor.empty() : tensor<Rxf32>
  %e = tensor.empty() : tensor<RxCxf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<Rxf32>) -> tensor<Rxf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<RxCxf32>) outs(%s0 : tensor<Rxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32 } -> tensor<Rxf32>
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%s : tensor<Rxf32>) outs(%e1 : tensor<Rxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %a, %n : f32
    linalg.yield %t : f32 } -> tensor<Rxf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %m : tensor<RxCxf32>, tensor<Rxf32>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: f32, %q: f32, %o: f32):
    %t = arith.subf %a, %q : f32
    linalg.yield %t : f32 } -> tensor<RxCxf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%d : tensor<RxCxf32>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %a : f32
    linalg.yield %t : f32 } -> tensor<RxCxf32>
  %v = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%q : tensor<RxCxf32>) outs(%s0 : tensor<Rxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32 } -> tensor<Rxf32>
  %i = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%v : tensor<Rxf32>) outs(%e1 : tensor<Rxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %a, %n : f32
    %u = arith.addf %t, %eps : f32
    %w = math.rsqrt %u : f32
    linalg.yield %w : f32 } -> tensor<Rxf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #col, #col, #id], iterator_types = ["parallel", "parallel"]}
    ins(%d, %i, %g, %b : tensor<RxCxf32>, tensor<Rxf32>, tensor<Cxf32>, tensor<Cxf32>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: f32, %h: f32, %j: f32, %k: f32, %o: f32):
    %t = arith.mulf %a, %h : f32
    %u = arith.mulf %t, %j : f32
    %w = arith.addf %u, %k : f32
    linalg.yield %w : f32 } -> tensor<RxCxf32>
  return %r : tensor<RxCxf32>
}"#
    .replace("COUNT", &format!("{columns}.0"))
    .replace("RxC", &format!("{rows}x{columns}"))
    .replace("<Rx", &format!("<{rows}x"))
    .replace("<Cx", &format!("<{columns}x"))
}

#[test]
fn layernorm_is_one_nest() {
    check(&layernorm(5, 67), 1e-5);
    check(&layernorm(2, 256), 1e-5);
}

pub fn rmsnorm(rows: i64, columns: i64, ty: &str) -> String {
    let (load, store) = if ty == "f32" {
        ("%x = arith.addf %a, %zero : f32".to_owned(), "%y = arith.addf %p, %zero : f32".to_owned())
    } else {
        (format!("%x = arith.extf %a : {ty} to f32"), format!("%y = arith.truncf %p : f32 to {ty}"))
    };
    r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
func.func @rmsnorm(%in: tensor<RxCxT>, %g: tensor<CxT>) -> tensor<RxCxT> attributes {tl.kernel = #tl.kernel} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant COUNT : f32
  %eps = arith.constant 1.0e-6 : f32
  %e1 = tensor.empty() : tensor<Rxf32>
  %e = tensor.empty() : tensor<RxCxf32>
  %et = tensor.empty() : tensor<RxCxT>
  %s0 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<Rxf32>) -> tensor<Rxf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%in : tensor<RxCxT>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: T, %o: f32):
    LOAD
    linalg.yield %x : f32 } -> tensor<RxCxf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%w : tensor<RxCxf32>) outs(%e : tensor<RxCxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %a : f32
    linalg.yield %t : f32 } -> tensor<RxCxf32>
  %v = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%q : tensor<RxCxf32>) outs(%s0 : tensor<Rxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32 } -> tensor<Rxf32>
  %i = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%v : tensor<Rxf32>) outs(%e1 : tensor<Rxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %a, %n : f32
    %u = arith.addf %t, %eps : f32
    %z = math.rsqrt %u : f32
    linalg.yield %z : f32 } -> tensor<Rxf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #col, #id], iterator_types = ["parallel", "parallel"]}
    ins(%w, %i, %g : tensor<RxCxf32>, tensor<Rxf32>, tensor<CxT>) outs(%et : tensor<RxCxT>) {
  ^bb0(%h: f32, %j: f32, %a: T, %o: T):
    LOAD
    %t = arith.mulf %h, %j : f32
    %p = arith.mulf %t, %x : f32
    STORE
    linalg.yield %y : T } -> tensor<RxCxT>
  return %r : tensor<RxCxT>
}"#
    .replace("LOAD", &load)
    .replace("STORE", &store)
    .replace("COUNT", &format!("{columns}.0"))
    .replace("RxC", &format!("{rows}x{columns}"))
    .replace("<Rx", &format!("<{rows}x"))
    .replace("<Cx", &format!("<{columns}x"))
    .replace("xT>", &format!("x{ty}>"))
    .replace(": T,", &format!(": {ty},"))
    .replace(": T)", &format!(": {ty})"))
    .replace("%y : T }", &format!("%y : {ty} }}"))
}

#[test]
fn rmsnorm_converts_in_the_pass() {
    check(&rmsnorm(4, 75, "f32"), 1e-5);
    check(&rmsnorm(4, 75, "f16"), 2e-3);
    check(&rmsnorm(3, 130, "bf16"), 2e-2);
}
