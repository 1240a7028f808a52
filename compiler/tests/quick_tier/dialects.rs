//! What upstream's lowerings of scalar code make: loops over every element type, with sizes that are
//! values.
use super::harness::{every, float_bits, from_bits, lowered};

const LENGTH: usize = 37;

/// Runs `void f(memref, memref, memref, memref of one index)` by every code generator on the same
/// bytes, and gives what the third holds then.
fn run(text: &str, element: &str) -> [Vec<u8>; 3] {
    let bytes = |seed: usize| -> Vec<u8> {
        let value = |at: usize| (at * 7 + seed * 3) as f64 / 4.0 - 20.0;
        (0..64)
            .flat_map(|at| match element {
                "i1" => vec![u8::from((at * seed) % 3 == 1)],
                "i8" => (value(at) as i8).to_le_bytes().to_vec(),
                "i16" => (value(at) as i16).to_le_bytes().to_vec(),
                "i32" => (value(at) as i32).to_le_bytes().to_vec(),
                "i64" => (value(at) as i64).to_le_bytes().to_vec(),
                float => {
                    let size = super::harness::bits(float) / 8;
                    float_bits(float, value(at)).to_le_bytes()[..size].to_vec()
                }
            })
            .collect()
    };
    let libraries = every(&lowered(text));
    libraries.map(|library| {
        let (mut a, mut b, mut out) = (bytes(1), bytes(2), vec![0xa5; 64 * 8]);
        let mut size = LENGTH.to_le_bytes();
        let buffers = [a.as_mut_ptr(), b.as_mut_ptr(), out.as_mut_ptr(), size.as_mut_ptr()];
        library.raw("irc_task_0", buffers);
        out
    })
}

/// A loop over `%n` elements: `%x` and `%y` of two buffers become `%z` of a third.
fn elementwise(element: &str, body: &str) -> String {
    format!(
        "func.func @irc_task_0(%a: memref<64x{element}>, %b: memref<64x{element}>, %c: memref<64x{element}>, %s: memref<1xindex>) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %n = memref.load %s[%c0] : memref<1xindex>
          scf.for %i = %c0 to %n step %c1 {{
            %x = memref.load %a[%i] : memref<64x{element}>
            %y = memref.load %b[%i] : memref<64x{element}>
            {body}
            memref.store %z, %c[%i] : memref<64x{element}>
          }}
          return
        }}"
    )
}

/// All agree to the bit, but for which NaN it is.
fn agree(element: &str, bodies: &[&str]) {
    for body in bodies {
        let [expected, others @ ..] = run(&elementwise(element, body), element);
        let size = super::harness::bits(element).div_ceil(8);
        let pairs = |found: &Vec<u8>| {
            let pairs = expected.chunks(size).zip(found.chunks(size)).enumerate();
            pairs.map(|(at, (a, b))| (at, (a.to_vec(), b.to_vec()))).collect::<Vec<_>>()
        };
        for (at, (a, b)) in others.iter().flat_map(pairs) {
            let number = |bytes: &[u8]| {
                bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
            };
            let nan =
                |bytes: &[u8]| element.contains('f') && from_bits(element, number(bytes)).is_nan();
            assert!(a == b || (nan(&a) && nan(&b)), "{body}: element {at}: {a:x?}, {b:x?}");
        }
    }
}

#[test]
fn loops_over_integers_of_every_width_agree() {
    for element in ["i8", "i16", "i32", "i64"] {
        let bodies = [
            "%z = arith.addi %x, %y : T",
            "%z = arith.muli %x, %y : T",
            "%z = arith.maxsi %x, %y : T",
            "%z = arith.minui %x, %y : T",
            "%k = arith.constant 7 : T\n %z = arith.floordivsi %x, %k : T",
            "%k = arith.constant -3 : T\n %z = arith.ceildivsi %x, %k : T",
            "%k = arith.constant 5 : T\n %z = arith.remsi %x, %k : T",
            "%k = arith.constant 3 : T\n %z = arith.ceildivui %x, %k : T",
            "%z, %h = arith.mulsi_extended %x, %y : T",
            "%l, %z = arith.mulsi_extended %x, %y : T",
            "%l, %z = arith.mului_extended %x, %y : T",
            "%t, %o = arith.addui_extended %x, %y : T, i1\n %w = arith.extui %o : i1 to T\n %z = arith.xori %t, %w : T",
            "%p = arith.cmpi ult, %x, %y : T\n %z = arith.select %p, %x, %y : T",
            "%z = math.absi %x : T",
            "%z = math.ctlz %x : T",
            "%z = math.cttz %x : T",
            "%z = math.ctpop %x : T",
            "%f = arith.sitofp %x : T to f32\n %g = math.sqrt %f : f32\n %z = arith.fptosi %f : f32 to T",
            "%j = arith.index_cast %x : T to index\n %q = index.add %j, %i\n %z = arith.index_cast %q : index to T",
            "%j = arith.index_castui %x : T to index\n %q = index.shrs %j, %c1\n %z = arith.index_castui %q : index to T",
        ];
        let bodies: Vec<String> = bodies.iter().map(|body| body.replace('T', element)).collect();
        agree(element, &bodies.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn loops_over_truth_values_agree() {
    agree(
        "i1",
        &[
            "%z = arith.andi %x, %y : i1",
            "%z = arith.ori %x, %y : i1",
            "%z = arith.xori %x, %y : i1",
            "%z = arith.addi %x, %y : i1",
            "%z = arith.cmpi slt, %x, %y : i1",
            "%w = arith.extui %x : i1 to i32\n %k = arith.constant 1 : i32\n %z = arith.cmpi eq, %w, %k : i32",
            "%f = arith.uitofp %x : i1 to f16\n %k = arith.constant 0.5 : f16\n %z = arith.cmpf ogt, %f, %k : f16",
        ],
    );
}

#[test]
fn loops_over_floats_of_every_format_agree() {
    for element in ["f16", "f32", "f64"] {
        let bodies = [
            "%z = arith.addf %x, %y : T",
            "%z = arith.divf %x, %y : T",
            "%z = arith.negf %x : T",
            "%z = arith.maximumf %x, %y : T",
            "%z = arith.minimumf %x, %y : T",
            "%z = arith.maxnumf %x, %y : T",
            "%z = math.fma %x, %y, %x : T",
            "%z = math.floor %x : T",
            "%z = math.ceil %x : T",
            "%z = math.round %x : T",
            "%z = math.roundeven %x : T",
            "%z = math.trunc %x : T",
            "%z = math.absf %x : T",
            "%z = math.copysign %x, %y : T",
            "%z = math.sqrt %x : T",
            "%p = arith.cmpf ult, %x, %y : T\n %z = arith.select %p, %x, %y : T",
            "%p = math.isnan %x : T\n %z = arith.select %p, %x, %y : T",
            "%p = math.isfinite %x : T\n %z = arith.select %p, %x, %y : T",
            "%j = arith.fptosi %x : T to i32\n %z = arith.sitofp %j : i32 to T",
            "%k = arith.index_cast %i : index to i64\n %z = arith.uitofp %k : i64 to T",
        ];
        let bodies: Vec<String> = bodies.iter().map(|body| body.replace('T', element)).collect();
        agree(element, &bodies.iter().map(String::as_str).collect::<Vec<_>>());
    }
    for element in ["f16", "f32", "f64"] {
        let bodies = [
            "%z = math.exp %x : T",
            "%z = math.tanh %x : T",
            "%z = math.erf %x : T",
            "%z = math.powf %x, %y : T",
            "%z = math.atan2 %x, %y : T",
            "%z = math.log1p %x : T",
            "%z = math.sin %x : T",
            "%z = arith.remf %x, %y : T",
        ];
        let bodies: Vec<String> = bodies.iter().map(|body| body.replace('T', element)).collect();
        agree(element, &bodies.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn half_floats_that_are_computed_in_f32_agree() {
    for element in ["f16", "bf16"] {
        let body = format!(
            "%f = arith.extf %x : {element} to f32\n %g = arith.extf %y : {element} to f32\n \
             %h = arith.mulf %f, %g : f32\n %z = arith.truncf %h : f32 to {element}"
        );
        agree(element, &[&body]);
    }
}

#[test]
fn nested_control_flow_with_carried_values_agrees() {
    let body = "
      %k = arith.constant 10 : i64
      %e = arith.constant 0 : i64
      %o = arith.constant 1 : i64
      %w:2 = scf.while (%p = %x, %q = %e) : (i64, i64) -> (i64, i64) {
        %more = arith.cmpi slt, %q, %k : i64
        scf.condition(%more) %q, %p : i64, i64
      } do {
      ^bb0(%q: i64, %p: i64):
        %even = arith.remsi %q, %k : i64
        %is = arith.cmpi eq, %even, %e : i64
        %t = scf.if %is -> i64 {
          %u = arith.addi %p, %y : i64
          scf.yield %u : i64
        } else {
          %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %p) -> i64 {
            %at = memref.load %b[%j] : memref<64xi64>
            %next = arith.addi %acc, %at : i64
            scf.yield %next : i64
          }
          scf.yield %sum : i64
        }
        %r = arith.addi %q, %o : i64
        scf.yield %t, %r : i64, i64
      }
      %ic = arith.remui %i, %n : index
      %z = scf.index_switch %ic -> i64
      case 3 { scf.yield %w#0 : i64 }
      case 5 { scf.yield %k : i64 }
      default { scf.yield %w#1 : i64 }";
    agree("i64", &[body]);
}

#[test]
fn buffers_of_a_kernel_s_own_agree() {
    let heap = "
      %room = memref.alloc(%n) : memref<?xf32>
      memref.store %x, %room[%i] : memref<?xf32>
      %part = memref.subview %room[%i] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
      %v = memref.load %part[%c0] : memref<1xf32, strided<[1], offset: ?>>
      %d = memref.dim %room, %c0 : memref<?xf32>
      %di = arith.index_cast %d : index to i32
      %df = arith.sitofp %di : i32 to f32
      memref.dealloc %room : memref<?xf32>
      %z = arith.addf %v, %df : f32";
    let stack = "
      %room = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
      %k = arith.constant 3 : index
      %at = arith.remui %i, %k : index
      memref.store %y, %room[%at] : memref<4xf32>
      %z = memref.load %room[%at] : memref<4xf32>";
    let copied = "
      %room = memref.alloca() : memref<64xf32>
      memref.copy %b, %room : memref<64xf32> to memref<64xf32>
      %z = memref.load %room[%i] : memref<64xf32>";
    agree("f32", &[heap, stack, copied]);
}

#[test]
fn a_check_that_holds_lets_the_rest_run() {
    let body = "
      %k = arith.constant 64 : index
      %fits = arith.cmpi ule, %n, %k : index
      cf.assert %fits, \"at most 64 elements\"
      %z = arith.addf %x, %y : f32";
    agree("f32", &[body]);
}

#[test]
fn weights_in_globals_agree() {
    let table = "memref.global \"private\" constant @table : memref<2x3xf32> = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]> {alignment = 64}\n";
    let body = "
      %t = memref.get_global @table : memref<2x3xf32>
      %two = arith.constant 2 : index
      %three = arith.constant 3 : index
      %row = arith.remui %i, %two : index
      %column = arith.remui %i, %three : index
      %w = memref.load %t[%row, %column] : memref<2x3xf32>
      %z = arith.mulf %w, %x : f32";
    let [expected, others @ ..] = run(&(table.to_owned() + &elementwise("f32", body)), "f32");
    assert_eq!(others, [expected.clone(), expected]);
}
