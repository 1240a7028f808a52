//! Chains, broadcasts, transposes, slices, gathers and odd sizes.
use super::check;

#[test]
fn a_chain_of_odd_length_runs_in_one_pass() {
    check(
        r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @k(%x: tensor<5x37xf32>, %b: tensor<37xf32>) -> (tensor<5x37xf32>, tensor<5x37xf32>) attributes {tl.kernel = #tl.kernel} {
  %c = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<5x37xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %b : tensor<5x37xf32>, tensor<37xf32>) outs(%e : tensor<5x37xf32>) {
  ^bb0(%a: f32, %d: f32, %o: f32):
    %s = arith.addf %a, %d : f32
    linalg.yield %s : f32 } -> tensor<5x37xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<5x37xf32>) outs(%e : tensor<5x37xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %t = math.tanh %m : f32
    linalg.yield %t : f32 } -> tensor<5x37xf32>
  return %1, %0 : tensor<5x37xf32>, tensor<5x37xf32>
}"#,
        1e-6,
    );
}

#[test]
fn transposes_broadcasts_and_reshapes_are_accesses() {
    check(
        r#"
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#t = affine_map<(d0, d1, d2) -> (d2, d0, d1)>
#col = affine_map<(d0, d1, d2) -> (d1, 0)>
func.func @k(%x: tensor<6x60xf32>, %c: tensor<20x1xf32>) -> tensor<3x20x6xf32> attributes {tl.kernel = #tl.kernel} {
  %r = tensor.expand_shape %x [[0], [1, 2]] output_shape [6, 3, 20] : tensor<6x60xf32> into tensor<6x3x20xf32>
  %e = tensor.empty() : tensor<3x20x6xf32>
  %0 = linalg.generic {indexing_maps = [#t, #col, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%r, %c : tensor<6x3x20xf32>, tensor<20x1xf32>) outs(%e : tensor<3x20x6xf32>) {
  ^bb0(%a: f32, %d: f32, %o: f32):
    %s = arith.subf %a, %d : f32
    linalg.yield %s : f32 } -> tensor<3x20x6xf32>
  return %0 : tensor<3x20x6xf32>
}"#,
        0.0,
    );
}

#[test]
fn a_transposed_intermediate_is_kept_whole() {
    check(
        r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
func.func @k(%x: tensor<9x21xf32>) -> tensor<21x9xf32> attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<9x21xf32>
  %f = tensor.empty() : tensor<21x9xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<9x21xf32>) outs(%e : tensor<9x21xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32 } -> tensor<9x21xf32>
  %1 = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<9x21xf32>) outs(%f : tensor<21x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32 } -> tensor<21x9xf32>
  return %1 : tensor<21x9xf32>
}"#,
        1e-6,
    );
}

#[test]
fn slices_read_a_part() {
    check(
        r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @k(%x: tensor<8x40xf32>) -> tensor<4x18xf32> attributes {tl.kernel = #tl.kernel} {
  %s = tensor.extract_slice %x[1, 3] [4, 18] [2, 2] : tensor<8x40xf32> to tensor<4x18xf32>
  %e = tensor.empty() : tensor<4x18xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%s : tensor<4x18xf32>) outs(%e : tensor<4x18xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32 } -> tensor<4x18xf32>
  return %0 : tensor<4x18xf32>
}"#,
        0.0,
    );
}

#[test]
fn rows_are_gathered_by_index() {
    check(
        r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @k(%i: tensor<5xi32>, %w: tensor<7x19xf32>) -> tensor<5x19xf32> attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<5x19xf32>
  %0 = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%i : tensor<5xi32>) outs(%e : tensor<5x19xf32>) {
  ^bb0(%a: i32, %o: f32):
    %r = arith.index_cast %a : i32 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %w[%r, %c] : tensor<7x19xf32>
    linalg.yield %v : f32 } -> tensor<5x19xf32>
  return %0 : tensor<5x19xf32>
}"#,
        0.0,
    );
}

#[test]
fn halves_are_computed_in_f32_and_rounded_per_op() {
    for ty in ["f16", "bf16"] {
        let source = r#"
#id = affine_map<(d0) -> (d0)>
func.func @k(%x: tensor<100xHALF>, %y: tensor<100xHALF>) -> (tensor<100xHALF>, tensor<100xf32>, tensor<100xi32>) attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<100xHALF>
  %f = tensor.empty() : tensor<100xf32>
  %i = tensor.empty() : tensor<100xi32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%x, %y : tensor<100xHALF>, tensor<100xHALF>) outs(%e : tensor<100xHALF>) {
  ^bb0(%a: HALF, %b: HALF, %o: HALF):
    %s = arith.mulf %a, %b : HALF
    %t = arith.addf %s, %a : HALF
    %m = arith.maximumf %t, %b : HALF
    linalg.yield %m : HALF } -> tensor<100xHALF>
  %1:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%0 : tensor<100xHALF>) outs(%f, %i : tensor<100xf32>, tensor<100xi32>) {
  ^bb0(%a: HALF, %o: f32, %p: i32):
    %w = arith.extf %a : HALF to f32
    %n = arith.fptosi %a : HALF to i32
    linalg.yield %w, %n : f32, i32 } -> (tensor<100xf32>, tensor<100xi32>)
  return %0, %1#0, %1#1 : tensor<100xHALF>, tensor<100xf32>, tensor<100xi32>
}"#;
        check(&source.replace("HALF", ty), 0.0);
    }
}

#[test]
fn comparisons_selects_and_booleans_work() {
    check(
        r#"
#id = affine_map<(d0) -> (d0)>
func.func @k(%x: tensor<45xi32>, %m: tensor<45xi1>) -> (tensor<45xi8>, tensor<45xi1>) attributes {tl.kernel = #tl.kernel} {
  %c = arith.constant 3 : i32
  %e = tensor.empty() : tensor<45xi8>
  %b = tensor.empty() : tensor<45xi1>
  %0:2 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
    ins(%x, %m : tensor<45xi32>, tensor<45xi1>) outs(%e, %b : tensor<45xi8>, tensor<45xi1>) {
  ^bb0(%a: i32, %q: i1, %o: i8, %p: i1):
    %g = arith.cmpi sgt, %a, %c : i32
    %h = arith.andi %g, %q : i1
    %s = arith.select %h, %a, %c : i32
    %t = arith.trunci %s : i32 to i8
    linalg.yield %t, %h : i8, i1 } -> (tensor<45xi8>, tensor<45xi1>)
  return %0#0, %0#1 : tensor<45xi8>, tensor<45xi1>
}"#,
        0.0,
    );
}

#[test]
fn constants_arguments_and_copies_can_be_returned() {
    check(
        r#"
#id = affine_map<(d0) -> (d0)>
func.func @k(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>) attributes {tl.kernel = #tl.kernel} {
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %r = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%x, %d : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.mulf %a, %b : f32
    linalg.yield %n : f32 } -> tensor<4xf32>
  return %0, %r, %0, %one : tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>
}"#,
        0.0,
    );
}

#[test]
fn a_gather_from_a_constant_is_the_constant() {
    check(
        r#"
#id = affine_map<(d0) -> (d0)>
func.func @k(%x: tensor<21xf32>) -> tensor<21xf32> attributes {tl.kernel = #tl.kernel} {
  %c = arith.constant 2.5 : f32
  %last = arith.constant 3 : index
  %e = tensor.empty() : tensor<4xf32>
  %t = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %o = tensor.empty() : tensor<21xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<21xf32>) outs(%o : tensor<21xf32>) {
  ^bb0(%a: f32, %u: f32):
    %i = linalg.index 0 : index
    %j = arith.minsi %i, %last : index
    %g = tensor.extract %t[%j] : tensor<4xf32>
    %s = arith.addf %a, %g : f32
    linalg.yield %s : f32 } -> tensor<21xf32>
  return %0 : tensor<21xf32>
}"#,
        0.0,
    );
}
