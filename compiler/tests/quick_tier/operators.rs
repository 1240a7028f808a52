//! Operators on scalars.
use super::harness::{Case, Pool, agree, scalar};

const INTEGERS: [&str; 4] = ["i8", "i16", "i32", "i64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];

/// An op of two operands of one type, which is the result's too.
fn binary(op: &str, element: &'static str, second: Pool) -> Case {
    let ty = scalar(element);
    Case {
        name: format!("{op} {element}"),
        operands: vec![(ty, Pool::Any), (ty, second)],
        result: ty,
        body: format!("  %r = llvm.{op} %0, %1 : {element}"),
    }
}

#[test]
fn integers_are_computed_alike() {
    let mut cases = Vec::new();
    for element in INTEGERS {
        for op in ["add", "sub", "mul", "and", "or", "xor"] {
            cases.push(binary(op, element, Pool::Any));
        }
        for op in ["shl", "lshr", "ashr"] {
            cases.push(binary(op, element, Pool::Amount));
        }
        for op in ["sdiv", "udiv", "srem", "urem"] {
            cases.push(binary(op, element, Pool::Divisor));
        }
    }
    for op in ["add", "sub", "mul", "and", "or", "xor"] {
        cases.push(binary(op, "i1", Pool::Any));
    }
    agree(&cases);
}

#[test]
fn wide_products_are_computed_alike() {
    let case = |extend: &str, element: &'static str, wide: &str| Case {
        name: format!("upper half of {extend} {element}"),
        operands: vec![(scalar(element), Pool::Any), (scalar(element), Pool::Any)],
        result: scalar(element),
        body: format!(
            "  %a = llvm.{extend} %0 : {element} to {wide}\n  %b = llvm.{extend} %1 : {element} to {wide}\n  \
             %p = llvm.mul %a, %b : {wide}\n  %s = llvm.mlir.constant({} : {wide}) : {wide}\n  \
             %h = llvm.lshr %p, %s : {wide}\n  %r = llvm.trunc %h : {wide} to {element}",
            element.trim_start_matches('i')
        ),
    };
    agree(&[
        case("sext", "i64", "i128"),
        case("zext", "i64", "i128"),
        case("sext", "i32", "i64"),
        case("zext", "i16", "i32"),
    ]);
}

#[test]
fn floats_are_computed_alike() {
    let mut cases = Vec::new();
    // LLVM rounds to bf16 by an instruction that takes subnormal numbers for zero, or by a call of a
    // library that is not linked: see `half_floats`.
    for element in ["f16", "f32", "f64"] {
        for op in ["fadd", "fsub", "fmul", "fdiv"] {
            cases.push(binary(op, element, Pool::Any));
        }
        let ty = scalar(element);
        cases.push(Case {
            name: format!("fneg {element}"),
            operands: vec![(ty, Pool::Any)],
            result: ty,
            body: format!("  %r = llvm.fneg %0 : {element}"),
        });
    }
    cases.extend(["f32", "f64"].map(|element| binary("frem", element, Pool::Any)));
    agree(&cases);
}

#[test]
fn integers_compare_alike() {
    let predicates = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
    let mut cases = Vec::new();
    for element in ["i1", "i8", "i16", "i32", "i64"] {
        for predicate in predicates {
            cases.push(Case {
                name: format!("icmp {predicate} {element}"),
                operands: vec![(scalar(element), Pool::Any), (scalar(element), Pool::Any)],
                result: scalar("i8"),
                body: format!(
                    "  %c = llvm.icmp \"{predicate}\" %0, %1 : {element}\n  %r = llvm.zext %c : i1 to i8"
                ),
            });
        }
    }
    agree(&cases);
}

/// Every predicate of `fcmp`.
pub const FLOAT_PREDICATES: [&str; 16] = [
    "_false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
    "une", "uno", "_true",
];

#[test]
fn floats_compare_alike() {
    let mut cases = Vec::new();
    for element in FLOATS {
        for predicate in FLOAT_PREDICATES {
            cases.push(Case {
                name: format!("fcmp {predicate} {element}"),
                operands: vec![(scalar(element), Pool::Any), (scalar(element), Pool::Any)],
                result: scalar("i8"),
                body: format!(
                    "  %c = llvm.fcmp \"{predicate}\" %0, %1 : {element}\n  %r = llvm.sext %c : i1 to i8"
                ),
            });
        }
    }
    agree(&cases);
}

#[test]
fn a_select_takes_one_of_two() {
    let select = |element: &'static str| Case {
        name: format!("select {element}"),
        operands: vec![
            (scalar("i1"), Pool::Any),
            (scalar(element), Pool::Any),
            (scalar(element), Pool::Any),
        ],
        result: scalar(element),
        body: format!("  %r = llvm.select %0, %1, %2 : i1, {element}"),
    };
    agree(&["i1", "i8", "i64", "f16", "f32", "f64"].map(select));
}
