//! Text that is not PTX, or not what the interpreter runs, gives located diagnostics.

use crate::support::{compile, module, try_compile};
use irc_diag::{Sink, Source};
use irc_ptx::Module;

fn rejected(text: &str, code: &str, line: usize, says: &str) {
    let error = try_compile(text, "k").expect_err("an invalid module");
    assert!(error.contains(&format!("[{code}]")), "{error}");
    assert!(error.contains(&format!("test.ptx:{line}:")), "line {line}: {error}");
    assert!(error.contains(says), "{error}");
}

fn body_rejected(body: &str, code: &str, says: &str) {
    // The body starts at line 5.
    rejected(&module("", body), code, 5, says);
}

#[test]
fn syntax_errors_are_located() {
    rejected("", "ptx-syntax", 1, "`.version`");
    rejected(".version 8.0\n.target sm_80\n.address_size 32", "ptx-syntax", 3, "64");
    rejected(".version 8.0\n.entry k( {", "ptx-syntax", 2, "expected `.param`");
    rejected(".version 8.0\n.global .f32 x = {1, 2", "ptx-syntax", 2, "expected `}`");
    rejected(
        ".version 8.0\n.global .b8 x[2] = {1, 2, 3};",
        "ptx-initialiser",
        2,
        "3 bytes of values exceed the 2",
    );
    rejected(".version 8.0\n.global .b8 x[99999999999];", "ptx-limit", 2, "exceed the limit");
    rejected(".version 8.0\n.global .align 3 .b8 x;", "ptx-syntax", 2, "power of two");
    rejected(".version 8.0\n/* a comment", "ptx-syntax", 2, "does not end");
    body_rejected("add.s32 %r1 %r2;", "ptx-syntax", "expected `;`");
    body_rejected("mov.u32 %r1, 99999999999999999999999;", "ptx-syntax", "64 bits");
    body_rejected(".reg .b33 %r<3>;", "ptx-syntax", "type of a register");
    body_rejected("\u{e9} ret;", "ptx-syntax", "no token");
}

#[test]
fn all_errors_are_reported() {
    let source = Source::new("x.ptx", module("", "add %r1 %r2;\nmov.u32 ;;\nret;\nadd.s32 [;"));
    let mut sink = Sink::new();
    assert!(Module::parse(&source, &mut sink).is_none());
    assert_eq!(sink.error_count(), 2);
    let body = "foo.bar %r1;\nadd.f99 %r1, %r1, %r1;\nmov.u32 %r1, %nosuch;\ntex.2d.v4.f32.f32 {%r1}, [%r1];";
    let error =
        try_compile(&module("", &format!(".reg .b32 %r<3>;\n{body}")), "k").expect_err("invalid");
    assert_eq!(error.matches("error[").count(), 4, "{error}");
}

#[test]
fn instructions_of_other_architectures_are_named() {
    for (body, least) in
        [("wgmma.fence.sync.aligned;", "sm_90a"), ("fence.proxy.async;", "sm_90 or later")]
    {
        for (target, fits) in [("sm_80", false), ("sm_90", least != "sm_90a"), ("sm_90a", true)] {
            let text = module("", body).replace("sm_90a", target).replace("sm_80", target);
            match try_compile(&text, "k") {
                Ok(_) => assert!(fits, "{body} {target}"),
                Err(error) => {
                    let says = format!("needs {least}, and the module is for `{target}`");
                    assert!(!fits && error.contains(&says), "{body} {target}: {error}");
                }
            }
        }
    }
}

#[test]
fn instructions_that_are_not_supported_are_named() {
    body_rejected(
        "tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [t, {%f1, %f2}];",
        "ptx-unsupported",
        "`tex.2d.v4.f32.f32` is not supported",
    );
    body_rejected(
        ".reg .b64 %d<3>; fma.rz.f64 %d1, %d1, %d1, %d2;",
        "ptx-unsupported",
        "`fma.rz.f64`",
    );
    body_rejected(".reg .b128 %q;", "ptx-unsupported", "128 bits");
    body_rejected("bar.nothing 0;", "ptx-unsupported", "`bar.nothing`");
}

#[test]
fn operands_are_checked() {
    let registers = ".reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<3>; .reg .b64 %rd<3>;";
    let check = |body: &str, code: &str, says: &str| {
        body_rejected(&format!("{registers} {body}"), code, says)
    };
    check("add.s32 %r1, %r2, %r3;", "ptx-undefined", "`%r3` is not declared");
    check("add.s32 %r1, %r2, %p1;", "ptx-operand", "is a predicate");
    check("add.s64 %rd1, %rd2, %r1;", "ptx-operand", "has 32 bits, and 64 are read");
    check("add.s32 %r1, %r2;", "ptx-operand", "2 operands where 3 are expected");
    check("setp.lt.s32 %r1, %r2, %r2;", "ptx-operand", "is not a predicate");
    check("@%r1 bra L;", "ptx-operand", "is not a predicate");
    check("bra L;", "ptx-undefined", "`L` is not declared");
    check("ld.global.v2.u32 {%r1}, [%rd1];", "ptx-operand", "a vector of 2");
    check("ld.global.u64 %r1, [%rd1];", "ptx-operand", "cannot hold 64 bits");
    check("call f, ();", "ptx-undefined", "`f`");
    check(".reg .b32 %r<5>;", "ptx-repeated", "declared twice");
    check("A: A: bra A;", "ptx-repeated", "declared twice");
    check(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1}, {%r1}, {%r1}, {%r1};",
        "ptx-operand",
        "registers where",
    );
    check("cp.async.ca.shared.global [%r1], [%rd1], 3;", "ptx-operand", "4, 8 or 16");
}

#[test]
fn a_kernel_that_is_not_there() {
    let error = try_compile(&module("", "ret;").replace("entry k(", "entry kernel("), "kernal")
        .expect_err("no kernel");
    assert!(error.contains("did you mean `kernel`"), "{error}");
}

#[test]
fn functions_are_checked_where_they_are_called() {
    let text = |call: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.func (.param .b32 r) f(.param .b32 a) {{ ret; }}
            .visible .entry k() {{ .reg .b32 %r<2>; {{ .param .b32 x; .param .b64 y; .param .b32 z; {call} }} ret; }}"
        )
    };
    compile(&text("call (z), f, (x);"), "k");
    for call in [
        "call (z), f, (y);",
        "call (z), f, (x, x);",
        "call f, (x);",
        "call (z), f, (%r1);",
        "call (z), f;",
    ] {
        let error = try_compile(&text(call), "k").expect_err("an invalid call");
        assert!(error.contains("[ptx-operand]"), "{error}");
    }
    let undefined = text("call (z), f, (x);").replace("{ ret; }\n", ";\n");
    assert!(
        try_compile(&undefined, "k")
            .expect_err("no body")
            .contains("`f` is called but not defined")
    );
    let twice = text("call (z), f, (x);").replace(".visible", ".func f() { ret; }\n.visible");
    assert!(try_compile(&twice, "k").expect_err("two").contains("`f` is defined twice"));
}

#[test]
fn debug_information_is_used_or_skipped() {
    let text = ".version 8.0\n.target sm_90a, debug\n.address_size 64\n.file 1 \"model.cu\", 12, 34\n
        .visible .entry k(.param .u64 .ptr .global .align 16 p)\n.maxntid 256, 1, 1\n.minnctapersm 1\n.pragma \"nounroll\";\n{
        .reg .b64 %rd<3>;\n.loc 1 7 3\n$L__func_begin0: ld.param.u64 %rd1, [p];
        .loc 1 8 5, function_name $L__info_string0, inlined_at 1 9 2\n ld.global.u64 %rd2, [%rd1+9999992]; ret; }
        .section .debug_abbrev { .b8 1 {.b8 2} $L__x: }";
    let program = compile(text, "k");
    let mut memory = irc_ptx::Memory::new();
    let buffer = memory.add("p", vec![0; 8]);
    let launch = irc_ptx::Launch {
        arguments: vec![irc_ptx::Argument::Buffer(buffer)],
        ..Default::default()
    };
    let report = launch.run(&program, &mut memory);
    assert!(
        report.diagnostics[0].notes.iter().any(|note| note == "from model.cu:8:5"),
        "{:?}",
        report.diagnostics
    );
    let large = irc_ptx::Launch { block: [512, 1, 1], ..launch };
    assert!(large.run(&program, &mut memory).diagnostics[0].message.contains("`.maxntid`"));
}

#[test]
fn nesting_is_bounded() {
    let deep = "{".repeat(100_000);
    assert!(try_compile(&module("", &deep), "k").is_err());
    let deep = format!("mov.b32 %r1, {}", "{".repeat(100_000));
    assert!(try_compile(&module("", &deep), "k").is_err());
    let deep = format!("bra {};", "a|".repeat(100_000));
    assert!(try_compile(&module("", &deep), "k").is_err());
    let deep = format!(".version 8.0\n.global .b8 x[1] = {}", "{".repeat(100_000));
    assert!(try_compile(&deep, "k").is_err());
}

#[test]
fn variables_refer_to_one_another() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.global .u64 a[2] = {b, generic(a)+8};\n.global .u32 b = 7;
        .visible .entry k(.param .u64 p) { .reg .b64 %rd<5>; .reg .b32 %r<2>; ld.param.u64 %rd1, [p]; ld.global.u64 %rd2, [a];
        ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1; mov.u64 %rd3, a; ld.global.u64 %rd4, [a+8]; sub.u64 %rd4, %rd4, %rd3;
        st.global.u64 [%rd1+8], %rd4; st.global.u32 [b], 9; ret; }";
    let program = compile(text, "k");
    let mut memory = irc_ptx::Memory::new();
    let buffer = memory.add("p", vec![0; 16]);
    let launch = irc_ptx::Launch {
        block: [1, 1, 1],
        arguments: vec![irc_ptx::Argument::Buffer(buffer)],
        ..Default::default()
    };
    crate::support::run(&program, &mut memory, &launch);
    assert_eq!(memory.bytes(buffer), [7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
    // Variables stay from launch to launch.
    crate::support::run(&program, &mut memory, &launch);
    assert_eq!(memory.bytes(buffer)[0], 9);
    let variable = memory.variable("b").expect("a variable");
    assert_eq!(memory.bytes(variable), [9, 0, 0, 0]);
}
