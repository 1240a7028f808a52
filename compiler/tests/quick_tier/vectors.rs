//! Vectors: of lengths that fill registers, several, and none.
use super::{
    harness::{Case, Pool, Type, agree, bits, vector},
    operators::FLOAT_PREDICATES,
};

const LENGTHS: [usize; 6] = [1, 3, 4, 7, 8, 16];

fn case(name: &str, operands: &[(Type, Pool)], result: Type, body: String) -> Case {
    let name = format!("{name} {}", operands[0].0.text());
    Case { name, operands: operands.to_vec(), result, body }
}

fn binary(op: &str, ty: Type, second: Pool) -> Case {
    let body = format!("  %r = llvm.{op} %0, %1 : {}", ty.text());
    case(op, &[(ty, Pool::Any), (ty, second)], ty, body)
}

fn call(name: &str, ty: Type, operands: usize) -> Case {
    let types = vec![ty.text(); operands].join(", ");
    let values = ["%0", "%1", "%2"][..operands].join(", ");
    let body = format!("  %r = llvm.intr.{name}({values}) : ({types}) -> {}", ty.text());
    case(name, &vec![(ty, Pool::Any); operands], ty, body)
}

#[test]
fn integer_lanes_are_computed_alike() {
    let mut cases = Vec::new();
    for (element, lanes) in
        ["i8", "i16", "i32", "i64"].into_iter().flat_map(|e| LENGTHS.map(|l| (e, l)))
    {
        let ty = vector(lanes, element);
        cases.extend(["add", "sub", "mul", "and", "or", "xor"].map(|op| binary(op, ty, Pool::Any)));
        cases.extend(["shl", "lshr", "ashr"].map(|op| binary(op, ty, Pool::Amount)));
        cases.extend(["sdiv", "urem"].map(|op| binary(op, ty, Pool::Divisor)));
        cases.extend(["smax", "smin", "umax", "umin"].map(|name| call(name, ty, 2)));
        cases.push(call("ctpop", ty, 1));
        for op in ["shl", "lshr", "ashr"] {
            let amount = bits(element) / 2 - 1;
            let text = ty.text();
            let body = format!(
                "  %s = llvm.mlir.constant(dense<{amount}> : {text}) : {text}\n  %r = llvm.{op} %0, %s : {text}"
            );
            cases.push(case(&format!("{op} by {amount}"), &[(ty, Pool::Any)], ty, body));
        }
    }
    agree(&cases);
}

#[test]
fn float_lanes_are_computed_alike() {
    let mut cases = Vec::new();
    for (element, lanes) in ["f16", "f32", "f64"].into_iter().flat_map(|e| LENGTHS.map(|l| (e, l)))
    {
        let ty = vector(lanes, element);
        cases.extend(["fadd", "fsub", "fmul", "fdiv"].map(|op| binary(op, ty, Pool::Any)));
        cases.extend(["maximum", "minimum", "copysign"].map(|name| call(name, ty, 2)));
        let unary = ["sqrt", "floor", "ceil", "trunc", "roundeven", "round", "fabs"];
        cases.extend(unary.map(|name| call(name, ty, 1)));
        let body = format!("  %r = llvm.fneg %0 : {}", ty.text());
        cases.push(case("fneg", &[(ty, Pool::Any)], ty, body));
        if element != "f16" {
            cases.push(call("fma", ty, 3));
        }
    }
    agree(&cases);
}

#[test]
fn masks_come_of_every_comparison() {
    let mut cases = Vec::new();
    for lanes in [3, 4, 16] {
        for element in ["i8", "i16", "i32", "i64"] {
            for predicate in ["eq", "ne", "slt", "sge", "ult", "ule", "ugt", "uge"] {
                let ty = vector(lanes, element);
                let body = format!(
                    "  %c = llvm.icmp \"{predicate}\" %0, %1 : {0}\n  %r = llvm.sext %c : {1} to {0}",
                    ty.text(),
                    vector(lanes, "i1").text()
                );
                cases.push(case(predicate, &[(ty, Pool::Any), (ty, Pool::Any)], ty, body));
            }
        }
        for element in ["f16", "f32", "f64"] {
            for predicate in FLOAT_PREDICATES {
                let (ty, truth) = (vector(lanes, element), vector(lanes, "i16"));
                let body = format!(
                    "  %c = llvm.fcmp \"{predicate}\" %0, %1 : {}\n  %r = llvm.zext %c : {} to {}",
                    ty.text(),
                    vector(lanes, "i1").text(),
                    truth.text()
                );
                cases.push(case(predicate, &[(ty, Pool::Any), (ty, Pool::Any)], truth, body));
            }
        }
    }
    agree(&cases);
}

#[test]
fn a_mask_chooses_between_lanes_of_every_width() {
    let mut cases = Vec::new();
    for element in ["i1", "i8", "i16", "f16", "i32", "f32", "i64", "f64"] {
        for lanes in [8, 16] {
            let (mask, ty) = (vector(lanes, "i1"), vector(lanes, element));
            let body = format!("  %r = llvm.select %0, %1, %2 : {}, {}", mask.text(), ty.text());
            let operands = [(mask, Pool::Any), (ty, Pool::Any), (ty, Pool::Any)];
            cases.push(case(&format!("select of {element} by"), &operands, ty, body));
        }
    }
    agree(&cases);
}

#[test]
fn lanes_change_type_alike() {
    let mut cases = Vec::new();
    let mut add = |op: &str, from: Type, to: Type, pool: Pool| {
        let body = format!("  %r = llvm.{op} %0 : {} to {}", from.text(), to.text());
        cases.push(case(&format!("{op} to {} of", to.text()), &[(from, pool)], to, body));
    };
    for lanes in [3, 8, 16] {
        let ty = |element| vector(lanes, element);
        let ints = ["i8", "i16", "i32", "i64"];
        for (at, narrow) in ints.into_iter().enumerate() {
            for wide in ints.into_iter().skip(at + 1) {
                add("sext", ty(narrow), ty(wide), Pool::Any);
                add("zext", ty(narrow), ty(wide), Pool::Any);
                add("trunc", ty(wide), ty(narrow), Pool::Any);
            }
            for float in ["f16", "f32", "f64"] {
                let width = bits(narrow) as u32;
                add("sitofp", ty(narrow), ty(float), Pool::Any);
                add("uitofp", ty(narrow), ty(float), Pool::Any);
                add("fptosi", ty(float), ty(narrow), Pool::Within(width, false));
                add("fptoui", ty(float), ty(narrow), Pool::Within(width, true));
            }
        }
        for (from, to) in [("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("f32", "f64")] {
            add("fpext", ty(from), ty(to), Pool::Any);
        }
        for (from, to) in [("f32", "f16"), ("f64", "f16"), ("f64", "f32")] {
            add("fptrunc", ty(from), ty(to), Pool::Any);
        }
    }
    for (from, to) in [
        (vector(4, "f32"), vector(2, "i64")),
        (vector(16, "bf16"), vector(16, "i16")),
        (vector(2, "i64"), vector(16, "i8")),
    ] {
        add("bitcast", from, to, Pool::Any);
    }
    for (element, lanes) in [("i8", 8), ("i16", 16)] {
        let mask = vector(lanes, "i1");
        add("bitcast", mask, Type { element, lanes: 0 }, Pool::Any);
        add("bitcast", Type { element, lanes: 0 }, mask, Pool::Any);
    }
    agree(&cases);
}

#[test]
fn lanes_move_alike() {
    let masks: [&[i32]; 9] = [
        &[0, 1, 2, 3, 4, 5, 6, 7],
        &[0; 8],
        &[5; 4],
        &[7, 6, 5, 4, 3, 2, 1, 0],
        &[0, 8, 1, 9, 2, 10, 3, 11],
        &[0, 4, 8, 12],
        &[15, 1, 12, 6, 0, 9, 9, 3, 14, 2, 8, 4, 5, 10, 11, 13],
        &[4, 5, 6, 7],
        &[11, 2, 5],
    ];
    let mut cases = Vec::new();
    for element in ["i1", "i8", "i16", "f16", "f32", "f64"] {
        let ty = vector(8, element);
        for mask in masks {
            let result = vector(mask.len(), element);
            let body = format!("  %r = llvm.shufflevector %0, %1 {mask:?} : {}", ty.text());
            let operands = [(ty, Pool::Any), (ty, Pool::Any)];
            cases.push(case(&format!("shuffle {mask:?} of"), &operands, result, body));
        }
    }
    agree(&cases);
}

#[test]
fn single_lanes_come_and_go() {
    let mut cases = Vec::new();
    for element in ["i1", "i8", "f16", "i32", "f64"] {
        let (ty, one) = (vector(8, element), Type { element, lanes: 0 });
        let index = (Type { element: "i32", lanes: 0 }, Pool::Any);
        let text = ty.text();
        let within =
            "  %m = llvm.mlir.constant(7 : i32) : i32\n  %i = llvm.and %1, %m : i32\n".to_owned();
        let body = format!("{within}  %r = llvm.extractelement %0[%i : i32] : {text}");
        cases.push(case("extract at an index of", &[(ty, Pool::Any), index], one, body));
        let body = format!("{within}  %r = llvm.insertelement %2, %0[%i : i32] : {text}");
        let operands = [(ty, Pool::Any), index, (one, Pool::Any)];
        cases.push(case("insert at an index of", &operands, ty, body));
        let body = "  %c = llvm.mlir.constant(5 : i64) : i64\n".to_owned()
            + &format!("  %r = llvm.extractelement %0[%c : i64] : {text}");
        cases.push(case("extract lane 5 of", &[(ty, Pool::Any)], one, body));
        let body = format!(
            "  %p = llvm.mlir.poison : {text}\n  %c = llvm.mlir.constant(0 : i64) : i64\n  \
             %v = llvm.insertelement %0, %p[%c : i64] : {text}\n  \
             %r = llvm.shufflevector %v, %p [0, 0, 0, 0, 0, 0, 0, 0] : {text}"
        );
        cases.push(case("splat", &[(one, Pool::Any)], ty, body));
    }
    let (long, short) = (vector(16, "f32"), vector(4, "f32"));
    let body = "  %r = llvm.intr.vector.insert %1, %0[8] : vector<4xf32> into vector<16xf32>";
    cases.push(case("insert", &[(long, Pool::Any), (short, Pool::Any)], long, body.into()));
    let body = "  %r = llvm.intr.vector.extract %0[4] : vector<4xf32> from vector<16xf32>";
    cases.push(case("extract", &[(long, Pool::Any)], short, body.into()));
    agree(&cases);
}

#[test]
fn reductions_are_alike() {
    let mut cases = Vec::new();
    for lanes in [3, 8, 16] {
        for element in ["i1", "i8", "i32", "i64"] {
            for kind in ["add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin"] {
                let (ty, one) = (vector(lanes, element), Type { element, lanes: 0 });
                let body = format!(
                    "  %r = \"llvm.intr.vector.reduce.{kind}\"(%0) : ({}) -> {element}",
                    ty.text()
                );
                cases.push(case(kind, &[(ty, Pool::Any)], one, body));
            }
        }
        for element in ["f32", "f64"] {
            let (ty, one) = (vector(lanes, element), Type { element, lanes: 0 });
            for kind in ["fmaximum", "fminimum"] {
                let body = format!(
                    "  %r = llvm.intr.vector.reduce.{kind}(%0) : ({}) -> {element}",
                    ty.text()
                );
                cases.push(case(kind, &[(ty, Pool::Any)], one, body));
            }
            for kind in ["fadd", "fmul"] {
                let body = format!(
                    "  %r = \"llvm.intr.vector.reduce.{kind}\"(%0, %1) : ({element}, {}) -> {element}",
                    ty.text()
                );
                cases.push(case(kind, &[(one, Pool::Any), (ty, Pool::Any)], one, body));
            }
        }
    }
    agree(&cases);
}

#[test]
fn constants_fill_their_lanes() {
    let constant = |value: &str, ty: Type| {
        let text = ty.text();
        let body = format!("  %r = llvm.mlir.constant({value} : {text}) : {text}");
        Case { name: format!("{value} {text}"), operands: vec![], result: ty, body }
    };
    agree(&[
        constant("dense<[1, -2, 3]>", vector(3, "i8")),
        constant("dense<[1, -2, 3, 4, 5, 6, 7, 8, 9]>", vector(9, "i32")),
        constant("dense<[true, false, true, true, false]>", vector(5, "i1")),
        constant("dense<true>", vector(8, "i1")),
        constant("dense<[1.5, -0.0, 0x7FC1, 6.0e-8]>", vector(4, "bf16")),
        constant("dense<[1.5, 0x7E01]>", vector(2, "f16")),
        constant("dense<-0.1>", vector(5, "f64")),
        constant("dense<0x7F800001>", vector(2, "i32")),
    ]);
}
