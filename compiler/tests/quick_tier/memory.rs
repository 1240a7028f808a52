//! Memory, globals, calls and control flow.
use super::harness::{Case, Pool, Type, agree, agree_beside, every, scalar, vector};

const INTS: Type = Type { element: "i32", lanes: 0 };

fn case(name: &str, operands: &[Type], result: Type, body: &str) -> Case {
    let operands = operands.iter().map(|ty| (*ty, Pool::Any)).collect();
    Case { name: name.to_owned(), operands, result, body: body.to_owned() }
}

#[test]
fn blocks_take_arguments_all_at_once() {
    // Two values change places each time around.
    let body = "
      %one = llvm.mlir.constant(1 : i32) : i32
      %five = llvm.mlir.constant(5 : i32) : i32
      %zero = llvm.mlir.constant(0 : i32) : i32
      llvm.br ^loop(%zero, %0, %1 : i32, i32, i32)
    ^loop(%i: i32, %x: i32, %y: i32):
      %next = llvm.add %i, %one : i32
      %sum = llvm.add %x, %next : i32
      %more = llvm.icmp \"slt\" %next, %five : i32
      llvm.cond_br %more, ^loop(%next, %y, %sum : i32, i32, i32), ^end(%y : i32)
    ^end(%r: i32):";
    agree(&[case("swap", &[INTS, INTS], INTS, body)]);
}

#[test]
fn a_branch_leads_one_block_different_arguments() {
    let body = "
      llvm.cond_br %0, ^end(%1 : f32), ^end(%2 : f32)
    ^end(%r: f32):";
    let float = scalar("f32");
    agree(&[case("branch", &[scalar("i1"), float, float], float, body)]);
}

#[test]
fn a_switch_passes_arguments() {
    let mut cases = Vec::new();
    for element in ["i8", "i32", "i64"] {
        let body = format!(
            "
      %a = llvm.mlir.constant(10 : i32) : i32
      %b = llvm.mlir.constant(20 : i32) : i32
      llvm.switch %0 : {element}, ^end(%a : i32) [
        -1: ^end(%b : i32),
        3: ^other,
        85: ^end(%1 : i32)
      ]
    ^other:
      %c = llvm.mul %1, %a : i32
      llvm.br ^end(%c : i32)
    ^end(%r: i32):"
        );
        cases.push(case(&format!("switch {element}"), &[scalar(element), INTS], INTS, &body));
    }
    agree(&cases);
}

#[test]
fn functions_call_each_other_with_whatever_they_take() {
    let others = "
      llvm.func internal @many(%a: i64, %b: f64, %c: vector<8xf32>, %d: i8, %e: f32, %f: i16, %g: i64,
                               %h: i64, %i: i64, %j: i64, %k: i64) -> !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)> {
        %0 = llvm.mlir.undef : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
        %s = llvm.sext %d : i8 to i64
        %t = llvm.zext %f : i16 to i64
        %u = llvm.add %s, %t : i64
        %1 = llvm.insertvalue %u, %0[0] : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
        %2 = llvm.insertvalue %c, %1[1] : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
        %w = llvm.fpext %e : f32 to f64
        %x = llvm.fadd %w, %b : f64
        %3 = llvm.insertvalue %x, %2[2] : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
        %4 = llvm.insertvalue %k, %3[3, 0] : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
        %5 = llvm.insertvalue %a, %4[3, 1] : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
        %6 = llvm.insertvalue %j, %5[3, 2] : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
        llvm.return %6 : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>
      }
      llvm.func @fib(%n: i64) -> i64 {
        %one = llvm.mlir.constant(1 : i64) : i64
        %two = llvm.mlir.constant(2 : i64) : i64
        %small = llvm.icmp \"slt\" %n, %two : i64
        llvm.cond_br %small, ^end(%n : i64), ^more
      ^more:
        %a = llvm.sub %n, %one : i64
        %b = llvm.sub %n, %two : i64
        %x = llvm.call @fib(%a) : (i64) -> i64
        %y = llvm.call @fib(%b) : (i64) -> i64
        %z = llvm.add %x, %y : i64
        llvm.br ^end(%z : i64)
      ^end(%r: i64):
        llvm.return %r : i64
      }";
    let call = "
      %n = llvm.trunc %0 : i64 to i8
      %m = llvm.trunc %0 : i64 to i16
      %d = llvm.extractelement %1[%0 : i64] : vector<8xf32>
      %z = llvm.mlir.constant(0 : i64) : i64
      %e = llvm.extractelement %1[%z : i64] : vector<8xf32>
      %w = llvm.mlir.constant(0.1 : f64) : f64
      %s = llvm.call @many(%0, %w, %1, %n, %e, %m, %z, %z, %z, %0, %0) : (i64, f64, vector<8xf32>, i8, f32, i16, i64, i64, i64, i64, i64) -> !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>";
    let field = |path: &str| {
        format!(
            "{call}\n  %r = llvm.extractvalue %s{path} : !llvm.struct<(i64, vector<8xf32>, f64, array<3 x i64>)>"
        )
    };
    let operands = [scalar("i64"), vector(8, "f32")];
    let fib = "
      %m = llvm.mlir.constant(15 : i64) : i64
      %n = llvm.and %0, %m : i64
      %f = llvm.mlir.addressof @fib : !llvm.ptr
      %a = llvm.call @fib(%n) : (i64) -> i64
      %b = llvm.call %f(%n) : !llvm.ptr, (i64) -> i64
      %r = llvm.add %a, %b : i64";
    agree_beside(
        others,
        &[
            case("field 0", &operands, scalar("i64"), &field("[0]")),
            case("field 1", &operands, vector(8, "f32"), &field("[1]")),
            case("field 2", &operands, scalar("f64"), &field("[2]")),
            case("field 3, 0", &operands, scalar("i64"), &field("[3, 0]")),
            case("field 3, 2", &operands, scalar("i64"), &field("[3, 2]")),
            case("fib", &[scalar("i64")], scalar("i64"), fib),
        ],
    );
}

#[test]
fn globals_hold_their_values_at_their_alignment() {
    let others = "
      llvm.mlir.global internal constant @ints(dense<[1, -2, 3, 4]> : tensor<4xi32>) {alignment = 64 : i64} : !llvm.array<4 x i32>
      llvm.mlir.global private constant @grid(dense<[[1.5, 2.5], [3.5, -0.0]]> : tensor<2x2xf64>) : !llvm.array<2 x array<2 x f64>>
      llvm.mlir.global internal constant @splat(dense<7> : tensor<5xi16>) : !llvm.array<5 x i16>
      llvm.mlir.global internal constant @text(\"a\\00b\\FF\")
      llvm.mlir.global internal constant @one(42 : i64) : i64
      llvm.mlir.global internal constant @bits(dense<[true, false, true]> : tensor<3xi1>) : !llvm.array<3 x i1>
      llvm.mlir.global internal @counter(dense<0> : tensor<2xi32>) : !llvm.array<2 x i32>
      llvm.mlir.global internal @zero() : !llvm.array<3 x f32> { %0 = llvm.mlir.zero : !llvm.array<3 x f32> llvm.return %0 : !llvm.array<3 x f32> }
      llvm.mlir.global internal @made() : i32 { %0 = llvm.mlir.constant(9 : i32) : i32 llvm.return %0 : i32 }";
    let read = |name: &str, element: &'static str, index: i32| {
        case(
            &format!("{name}[{index}]"),
            &[],
            scalar(element),
            &format!(
                "  %p = llvm.mlir.addressof @{name} : !llvm.ptr\n  \
                 %q = llvm.getelementptr %p[{index}] : (!llvm.ptr) -> !llvm.ptr, {element}\n  \
                 %r = llvm.load %q : !llvm.ptr -> {element}"
            ),
        )
    };
    let aligned = "
      %p = llvm.mlir.addressof @ints : !llvm.ptr
      %n = llvm.ptrtoint %p : !llvm.ptr to i64
      %m = llvm.mlir.constant(63 : i64) : i64
      %r = llvm.and %n, %m : i64";
    let kept = "
      %p = llvm.mlir.addressof @counter : !llvm.ptr
      %q = llvm.getelementptr %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<2 x i32>
      %v = llvm.load %q : !llvm.ptr -> i32
      %c = llvm.mlir.constant(3 : i32) : i32
      %r = llvm.add %v, %c : i32
      llvm.store %r, %q : i32, !llvm.ptr";
    let mut cases = vec![
        case("alignment", &[], scalar("i64"), aligned),
        case("a global that changes", &[], INTS, kept),
    ];
    cases.extend((0..4).map(|index| read("ints", "i32", index)));
    cases.extend((0..4).map(|index| read("grid", "f64", index)));
    cases.extend([0, 4].map(|index| read("splat", "i16", index)));
    cases.extend((0..4).map(|index| read("text", "i8", index)));
    cases.extend((0..3).map(|index| read("bits", "i8", index)));
    cases.extend([read("one", "i64", 0), read("zero", "f32", 2), read("made", "i32", 0)]);
    agree_beside(others, &cases);
}

#[test]
fn addresses_follow_the_layout_of_types() {
    let ty = "!llvm.struct<(i8, array<3 x struct<(i16, f64, i1)>>, struct<packed (i8, i32)>, vector<3xf32>)>";
    let offset = |indices: &str, values: &str| {
        let body = format!(
            "  %z = llvm.mlir.zero : !llvm.ptr\n  \
             %q = llvm.getelementptr %z[{indices}] : (!llvm.ptr{values}) -> !llvm.ptr, {ty}\n  \
             %r = llvm.ptrtoint %q : !llvm.ptr to i64"
        );
        case(indices, &[INTS, scalar("i64")], scalar("i64"), &body)
    };
    agree(&[
        offset("1", ""),
        offset("%1, 1", ", i64"),
        offset("0, 1, %0, 1", ", i32"),
        offset("%0, 1, %1, 2", ", i32, i64"),
        offset("2, 2, 1", ""),
        offset("0, 3", ""),
        offset("-1, 3", ""),
    ]);
}

#[test]
fn the_stack_holds_what_is_stored_at_its_alignment() {
    let structure = "!llvm.struct<(i8, f64, array<2 x vector<5xi16>>)>";
    let round_trip = format!(
        "
      %n = llvm.mlir.constant(2 : i64) : i64
      %p = llvm.alloca %n x {structure} {{alignment = 64 : i64}} : (i64) -> !llvm.ptr
      %u = llvm.mlir.undef : {structure}
      %a = llvm.mlir.constant(-3 : i8) : i8
      %b = llvm.mlir.constant(0.5 : f64) : f64
      %1 = llvm.insertvalue %a, %u[0] : {structure}
      %2 = llvm.insertvalue %b, %1[1] : {structure}
      %3 = llvm.insertvalue %0, %2[2, 0] : {structure}
      %4 = llvm.insertvalue %0, %3[2, 1] : {structure}
      llvm.store %4, %p : {structure}, !llvm.ptr
      %q = llvm.getelementptr %p[0, 2, 1] : (!llvm.ptr) -> !llvm.ptr, {structure}
      %v = llvm.load %q : !llvm.ptr -> vector<5xi16>
      %5 = llvm.load %p : !llvm.ptr -> {structure}
      %w = llvm.extractvalue %5[2, 0] : {structure}
      %r = llvm.add %v, %w : vector<5xi16>"
    );
    let aligned = "
      %n = llvm.mlir.constant(3 : i64) : i64
      %p = llvm.alloca %n x f32 {alignment = 64 : i64} : (i64) -> !llvm.ptr
      %a = llvm.ptrtoint %p : !llvm.ptr to i64
      %m = llvm.mlir.constant(63 : i64) : i64
      %r = llvm.and %a, %m : i64";
    let lanes = vector(5, "i16");
    agree(&[
        case("round trip", &[lanes], lanes, &round_trip),
        case("alignment", &[], scalar("i64"), aligned),
    ]);
}

#[test]
fn bytes_are_copied_and_set() {
    let run = |op: &str, length: u64| {
        let body = format!(
            "  %n = llvm.mlir.constant({length} : i64) : i64\n  \
             %one = llvm.mlir.constant(1 : i64) : i64\n  \
             %p = llvm.alloca %one x !llvm.array<64 x i8> : (i64) -> !llvm.ptr\n  \
             llvm.store %0, %p : vector<16xi32>, !llvm.ptr\n  \
             %q = llvm.getelementptr %p[5] : (!llvm.ptr) -> !llvm.ptr, i8\n  {op}\n  \
             %r = llvm.load %p : !llvm.ptr -> vector<16xi32>"
        );
        case(&format!("{op} {length}"), &[vector(16, "i32")], vector(16, "i32"), &body)
    };
    let copy = "\"llvm.intr.memcpy\"(%q, %a0, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()";
    let shift = "\"llvm.intr.memmove\"(%q, %p, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()";
    let set = "%c = llvm.mlir.constant(7 : i8) : i8\n  \"llvm.intr.memset\"(%q, %c, %n) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()";
    let mut cases = Vec::new();
    for op in [copy, shift, set] {
        cases.extend([0, 1, 16, 37].map(|length| run(op, length)));
    }
    agree(&cases);
}

#[test]
fn masks_keep_memory_untouched() {
    // The mask is off where the address is nowhere.
    let mask = "
      %limit = llvm.mlir.constant(dense<50> : vector<8xi32>) : vector<8xi32>
      %m = llvm.icmp \"slt\" %0, %limit : vector<8xi32>";
    let text = |body: &str| format!("{mask}{body}");
    let lanes = vector(8, "i32");
    let load = text(
        "\n  %r = llvm.intr.masked.load %a1, %m, %0 {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi32>) -> vector<8xi32>",
    );
    let nowhere = "
      %p = llvm.mlir.zero : !llvm.ptr
      %m = llvm.mlir.constant(dense<false> : vector<8xi1>) : vector<8xi1>
      llvm.intr.masked.store %0, %p, %m {alignment = 4 : i32} : vector<8xi32>, vector<8xi1> into !llvm.ptr
      %r = llvm.intr.masked.load %p, %m, %0 {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi32>) -> vector<8xi32>";
    let store = text(
        "
      %one = llvm.mlir.constant(1 : i64) : i64
      %p = llvm.alloca %one x vector<8xi32> : (i64) -> !llvm.ptr
      llvm.store %1, %p : vector<8xi32>, !llvm.ptr
      llvm.intr.masked.store %0, %p, %m {alignment = 4 : i32} : vector<8xi32>, vector<8xi1> into !llvm.ptr
      %r = llvm.load %p : !llvm.ptr -> vector<8xi32>",
    );
    let gather = text(
        "
      %seven = llvm.mlir.constant(dense<7> : vector<8xi32>) : vector<8xi32>
      %i = llvm.and %0, %seven : vector<8xi32>
      %ps = llvm.getelementptr %a1[%i] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, i32
      %r = llvm.intr.masked.gather %ps, %m, %0 {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xi32>) -> vector<8xi32>",
    );
    let scatter = text(
        "
      %one = llvm.mlir.constant(1 : i64) : i64
      %p = llvm.alloca %one x vector<8xi32> : (i64) -> !llvm.ptr
      llvm.store %1, %p : vector<8xi32>, !llvm.ptr
      %i = llvm.mlir.constant(dense<[7, 6, 5, 4, 3, 2, 1, 0]> : vector<8xi64>) : vector<8xi64>
      %ps = llvm.getelementptr %p[%i] : (!llvm.ptr, vector<8xi64>) -> vector<8x!llvm.ptr>, i32
      llvm.intr.masked.scatter %0, %ps, %m {alignment = 4 : i32} : vector<8xi32>, vector<8xi1> into vector<8x!llvm.ptr>
      %r = llvm.load %p : !llvm.ptr -> vector<8xi32>",
    );
    agree(&[
        case("masked load", &[lanes, lanes], lanes, &load),
        case("masked store", &[lanes, lanes], lanes, &store),
        case("masked off", &[lanes], lanes, nowhere),
        case("gather", &[lanes, lanes], lanes, &gather),
        case("scatter", &[lanes, lanes], lanes, &scatter),
    ]);
}

#[test]
fn atomic_changes_give_what_was_there() {
    let run = |kind: &str| {
        let body = format!(
            "  %one = llvm.mlir.constant(1 : i64) : i64\n  \
             %p = llvm.alloca %one x i32 : (i64) -> !llvm.ptr\n  \
             llvm.store %0, %p : i32, !llvm.ptr\n  \
             %was = llvm.atomicrmw {kind} %p, %1 acq_rel : !llvm.ptr, i32\n  \
             %now = llvm.load %p : !llvm.ptr -> i32\n  \
             %r = llvm.xor %was, %now : i32"
        );
        case(kind, &[INTS, INTS], INTS, &body)
    };
    agree(&["xchg", "add", "sub", "_and", "_or", "_xor", "max", "min", "umax", "umin"].map(run));
}

#[test]
fn an_object_is_the_same_bytes_each_time() {
    use irc::{
        Backend, Target,
        codegen::{Output, compile},
    };
    let text = "
      llvm.mlir.global internal constant @ints(dense<[1, -2]> : tensor<2xi32>) : !llvm.array<2 x i32>
      llvm.func @exp(f64) -> f64
      llvm.func @a(%0: f64, %1: !llvm.ptr) -> f64 {
        %2 = llvm.call @b(%0) : (f64) -> f64
        %3 = llvm.call @exp(%2) : (f64) -> f64
        %4 = llvm.mlir.addressof @ints : !llvm.ptr
        %5 = llvm.load %4 : !llvm.ptr -> vector<2xi32>
        llvm.store %5, %1 : vector<2xi32>, !llvm.ptr
        llvm.return %3 : f64
      }
      llvm.func internal @b(%0: f64) -> f64 { llvm.return %0 : f64 }";
    let object = || {
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, text).unwrap();
        let target = Target::host().with_backend(Backend::QUICK);
        compile(&module, &target, Output::Object).unwrap()
    };
    assert_eq!(object(), object());
    // All name the same symbols.
    let _ = every("llvm.func @irc_task_0(%0: !llvm.ptr, %1: !llvm.ptr, %2: !llvm.ptr, %3: !llvm.ptr) { llvm.return }")
        .map(|library| library.raw("irc_task_0", [std::ptr::null_mut(); 4]));
}
