//! Conversions between scalar types.
use irc::{
    Target,
    codegen::{Output, compile},
};

use super::harness::{Case, Pool, agree, bits, scalar};

fn cast(op: &str, from: &'static str, to: &'static str, pool: Pool) -> Case {
    Case {
        name: format!("{op} {from} to {to}"),
        operands: vec![(scalar(from), pool)],
        result: scalar(to),
        body: format!("  %r = llvm.{op} %0 : {from} to {to}"),
    }
}

#[test]
fn integers_change_width_alike() {
    let all = ["i1", "i8", "i16", "i32", "i64"];
    let mut cases = Vec::new();
    for (at, narrow) in all.into_iter().enumerate() {
        for wide in all.into_iter().skip(at + 1) {
            cases.push(cast("sext", narrow, wide, Pool::Any));
            cases.push(cast("zext", narrow, wide, Pool::Any));
            cases.push(cast("trunc", wide, narrow, Pool::Any));
        }
    }
    agree(&cases);
}

#[test]
fn floats_change_format_alike() {
    let pairs = [("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")];
    let mut cases: Vec<Case> = pairs.map(|(from, to)| cast("fpext", from, to, Pool::Any)).into();
    cases.extend(["f32", "f64"].map(|from| cast("fptrunc", from, "f16", Pool::Any)));
    cases.push(cast("fptrunc", "f64", "f32", Pool::Any));
    agree(&cases);
}

#[test]
fn integers_become_floats_alike() {
    let mut cases = Vec::new();
    for from in ["i1", "i8", "i16", "i32", "i64"] {
        for to in ["f16", "f32", "f64"] {
            cases.push(cast("sitofp", from, to, Pool::Any));
            cases.push(cast("uitofp", from, to, Pool::Any));
        }
    }
    agree(&cases);
}

#[test]
fn floats_become_integers_alike() {
    let mut cases = Vec::new();
    for from in ["f16", "bf16", "f32", "f64"] {
        for to in ["i8", "i16", "i32", "i64"] {
            let width = bits(to) as u32;
            cases.push(cast("fptosi", from, to, Pool::Within(width, false)));
            cases.push(cast("fptoui", from, to, Pool::Within(width, true)));
        }
    }
    agree(&cases);
}

#[test]
fn floats_saturate_alike() {
    let mut cases = Vec::new();
    for from in ["f16", "f32", "f64"] {
        for to in ["i8", "i16", "i32", "i64"] {
            for op in ["fptosi", "fptoui"] {
                cases.push(Case {
                    name: format!("{op}.sat {from} to {to}"),
                    operands: vec![(scalar(from), Pool::Any)],
                    result: scalar(to),
                    body: format!(
                        "  %r = llvm.call_intrinsic \"llvm.{op}.sat.{to}.{from}\"(%0) : ({from}) -> {to}"
                    ),
                });
            }
        }
    }
    agree(&cases);
}

#[test]
fn bits_keep_their_place() {
    let pairs = [("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("f16", "i16"), ("i16", "bf16")];
    agree(&pairs.map(|(from, to)| cast("bitcast", from, to, Pool::Any)));
}

/// LLVM 22 makes `0x8000` of NaN in the first of them, and cannot select the second for the newest
/// processors: neither is given to it.
#[test]
fn saturating_conversions_of_f16_are_those_of_f32() {
    let text = r#"
        llvm.func @f(%0: f16) -> i16 {
          %1 = llvm.call_intrinsic "llvm.fptosi.sat.i16.f16"(%0) : (f16) -> i16
          llvm.return %1 : i16
        }
        llvm.func @g(%0: vector<16xf16>) -> vector<16xi32> {
          %1 = llvm.call_intrinsic "llvm.fptoui.sat.v16i32.v16f16"(%0) : (vector<16xf16>) -> vector<16xi32>
          llvm.return %1 : vector<16xi32>
        }"#;
    for cpu in ["sapphirerapids", "diamondrapids"] {
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, text).expect("the module parses");
        let code = |output| {
            let code = compile(&module, &Target::from_name(cpu), output);
            String::from_utf8(code.expect("selectable")).expect("text")
        };
        let ir = code(Output::LlvmIr);
        assert!(ir.contains("@llvm.fptosi.sat.i16.f32(") && !ir.contains("i16.f16"), "{ir}");
        assert!(ir.contains("@llvm.fptoui.sat.v16i32.v16f32("), "{ir}");
        // Conversions of `f16` to integers: `vcvttsh2si`, `vcvttph2w`, …
        let assembly = code(Output::Assembly);
        assert!(!assembly.contains("vcvttsh") && !assembly.contains("vcvttph"), "{assembly}");
    }
}
