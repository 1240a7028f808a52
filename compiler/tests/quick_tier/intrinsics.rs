//! Intrinsics on scalars.
use super::harness::{Case, Pool, agree, scalar};

fn call(name: &str, element: &'static str, operands: usize) -> Case {
    let types = vec![element; operands].join(", ");
    let values = ["%0", "%1", "%2"][..operands].join(", ");
    Case {
        name: format!("{name} {element}"),
        operands: vec![(scalar(element), Pool::Any); operands],
        result: scalar(element),
        body: format!("  %r = llvm.intr.{name}({values}) : ({types}) -> {element}"),
    }
}

#[test]
fn rounding_is_alike() {
    let names =
        ["sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "fabs"];
    let mut cases = Vec::new();
    for element in ["f16", "f32", "f64"] {
        cases.extend(names.map(|name| call(name, element, 1)));
    }
    agree(&cases);
}

#[test]
fn extremes_of_floats_are_alike() {
    let mut cases = Vec::new();
    for element in ["f16", "f32", "f64"] {
        cases.extend(["maximum", "minimum", "copysign"].map(|name| call(name, element, 2)));
    }
    agree(&cases);
}

#[test]
fn numbers_win_over_nan_where_they_should() {
    // Zeros of both signs are equal to these, and either may come out: adding zero makes them one.
    let mut cases = Vec::new();
    for element in ["f32", "f64"] {
        for name in ["maxnum", "minnum"] {
            let mut case = call(name, element, 2);
            case.body = format!(
                "  %m = llvm.intr.{name}(%0, %1) : ({element}, {element}) -> {element}\n  \
                 %z = llvm.mlir.constant(0.0 : {element}) : {element}\n  \
                 %r = llvm.fadd %m, %z : {element}"
            );
            cases.push(case);
        }
    }
    agree(&cases);
}

#[test]
fn fused_products_are_alike() {
    agree(&["f16", "f32", "f64"].map(|element| call("fma", element, 3)));
}

#[test]
fn functions_of_the_c_library_are_those_that_llvm_calls() {
    let mut cases = Vec::new();
    for element in ["f32", "f64"] {
        let names = ["exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "atan"];
        cases.extend(names.map(|name| call(name, element, 1)));
        cases.extend(["pow", "atan2"].map(|name| call(name, element, 2)));
    }
    agree(&cases);
}

#[test]
fn bits_are_counted_alike() {
    let mut cases = Vec::new();
    for element in ["i8", "i16", "i32", "i64"] {
        cases.extend(["ctpop", "bitreverse"].map(|name| call(name, element, 1)));
        cases.extend(["smax", "smin", "umax", "umin"].map(|name| call(name, element, 2)));
        cases.extend(
            ["sadd.sat", "uadd.sat", "ssub.sat", "usub.sat"].map(|name| call(name, element, 2)),
        );
        cases.extend(["fshl", "fshr"].map(|name| call(name, element, 3)));
        for name in ["ctlz", "cttz"] {
            let mut case = call(name, element, 1);
            case.body = format!(
                "  %r = \"llvm.intr.{name}\"(%0) <{{is_zero_poison = false}}> : ({element}) -> {element}"
            );
            cases.push(case);
        }
        let mut case = call("abs", element, 1);
        case.body = format!(
            "  %r = \"llvm.intr.abs\"(%0) <{{is_int_min_poison = false}}> : ({element}) -> {element}"
        );
        cases.push(case);
    }
    cases.extend(["i16", "i32", "i64"].map(|element| call("bswap", element, 1)));
    agree(&cases);
}

#[test]
fn overflow_flags_agree() {
    let mut cases = Vec::new();
    for element in ["i8", "i16", "i32", "i64"] {
        for name in ["sadd", "uadd", "ssub", "usub", "smul", "umul"] {
            for field in [0, 1] {
                let end = if field == 0 {
                    format!("  %r = llvm.extractvalue %s[0] : !llvm.struct<({element}, i1)>")
                } else {
                    format!(
                        "  %f = llvm.extractvalue %s[1] : !llvm.struct<({element}, i1)>\n  \
                         %r = llvm.zext %f : i1 to {element}"
                    )
                };
                let mut case = call(name, element, 2);
                case.name = format!("{name}.with.overflow[{field}] {element}");
                case.body = format!(
                    "  %s = \"llvm.intr.{name}.with.overflow\"(%0, %1) : ({element}, {element}) \
                     -> !llvm.struct<({element}, i1)>\n{end}"
                );
                cases.push(case);
            }
        }
    }
    agree(&cases);
}

#[test]
fn classes_of_floats_agree() {
    let mut cases = Vec::new();
    for element in ["f16", "f32", "f64"] {
        // Each class alone, then NaNs, infinities, finite numbers.
        for bit in (0..10).map(|bit| 1 << bit).chain([3, 516, 504]) {
            cases.push(Case {
                name: format!("is.fpclass {bit} {element}"),
                operands: vec![(scalar(element), Pool::Any)],
                result: scalar("i8"),
                body: format!(
                    "  %c = \"llvm.intr.is.fpclass\"(%0) <{{bit = {bit} : i32}}> : ({element}) -> i1\n  \
                     %r = llvm.zext %c : i1 to i8"
                ),
            });
        }
    }
    agree(&cases);
}
