//! What the quick tier and C source do not translate is an error that names the op and says where.
use irc::{
    Backend, Target,
    codegen::{Output, compile},
};
use irc_mlir::Capture;

fn rejected(text: &str, target: &Target) -> (String, Vec<String>) {
    rejected_output(text, target, Output::Object)
}

/// What C source rejects: the op that it names.
fn rejected_of_c(text: &str) -> String {
    let (message, diagnostics) = rejected_output(text, &Target::portable(), Output::C);
    assert!(diagnostics[0].contains("to C"), "{diagnostics:?}");
    message
}

fn rejected_output(text: &str, target: &Target, output: Output) -> (String, Vec<String>) {
    let context = irc_dialects::new_context();
    let module = irc_mlir::parse_module(&context, text).expect("the text parses");
    let capture = Capture::new(&context);
    let error = compile(&module, target, output).expect_err("no translation");
    (error.message, capture.take().into_iter().map(|found| found.message).collect())
}

fn quick() -> Target {
    Target::host().with_backend(Backend::QUICK)
}

#[test]
fn an_op_without_a_translation_is_reported_with_its_location() {
    let text = "llvm.func @f() { %0 = llvm.inline_asm \"nop\", \"=r\" : () -> i32\n llvm.return }";
    let (message, diagnostics) = rejected(text, &quick());
    assert!(message.contains("'llvm.inline_asm'"), "{message}");
    assert!(diagnostics[0].contains("the quick tier does not translate"), "{diagnostics:?}");
}

#[test]
fn an_odd_width_is_rejected() {
    let text = "llvm.func @f(%0: i24) -> i24 { %1 = llvm.add %0, %0 : i24\n llvm.return %1 : i24 }";
    assert!(rejected(text, &quick()).0.contains("this signature"));
}

#[test]
fn a_function_of_any_number_of_arguments_is_rejected() {
    let text = "llvm.func @printf(!llvm.ptr, ...) -> i32";
    assert!(rejected(text, &quick()).0.contains("this signature"));
}

#[test]
fn a_stack_buffer_of_unknown_size_is_rejected() {
    let text =
        "llvm.func @f(%0: i64) { %1 = llvm.alloca %0 x i8 : (i64) -> !llvm.ptr\n llvm.return }";
    assert!(rejected(text, &quick()).0.contains("'llvm.alloca'"));
}

#[test]
fn a_processor_without_fused_products_computes_none() {
    let text = "llvm.func @f(%0: f32) -> f32 { %1 = llvm.intr.fma(%0, %0, %0) : (f32, f32, f32) -> f32\n llvm.return %1 : f32 }";
    let old = Target::from_name("x86-64-v2").with_backend(Backend::QUICK);
    assert!(rejected(text, &old).0.contains("fused multiply-add"));
}

#[test]
fn a_processor_that_is_not_known_or_too_old_is_rejected() {
    for (cpu, why) in [("pdp11", "is not known"), ("core2", "lacks the vector instructions")] {
        let target = Target::from_name(cpu).with_backend(Backend::QUICK);
        let (message, _) = rejected("llvm.func @f() { llvm.return }", &target);
        assert!(message.contains(cpu) && message.contains(why), "{message}");
    }
}

#[test]
fn text_is_llvm_s_to_write() {
    let context = irc_dialects::new_context();
    let module = irc_mlir::parse_module(&context, "").expect("the text parses");
    let error = compile(&module, &quick(), Output::LlvmIr).expect_err("not Cranelift's");
    assert!(error.message.contains("writes objects, not LLVM IR"), "{error}");
}

#[test]
fn what_has_no_translation_to_c_is_reported_with_its_location() {
    let cases = [
        (
            "llvm.func @f() { %0 = llvm.inline_asm \"nop\", \"=r\" : () -> i32\n llvm.return }",
            "'llvm.inline_asm'",
        ),
        ("llvm.func @f(%0: i24) -> i24 { llvm.return %0 : i24 }", "this signature"),
        ("llvm.func @printf(!llvm.ptr, ...) -> i32", "this signature"),
        (
            "llvm.func @f(%0: i64) { %1 = llvm.alloca %0 x i8 : (i64) -> !llvm.ptr\n llvm.return }",
            "'llvm.alloca'",
        ),
        ("llvm.func @f(%0: vector<4xf32>) { llvm.return }", "another file"),
        ("llvm.mlir.global linkonce @a(1 : i32) : i32", "linkonce"),
        ("llvm.mlir.global internal thread_local @a(1 : i32) : i32", "thread"),
        (
            "llvm.func @f(%0: vector<4xi32>) { llvm.return }\n llvm.mlir.global_ctors ctors = [@f], priorities = [0 : i32], data = [#llvm.zero]",
            "another file",
        ),
        (
            "llvm.func internal @f() { llvm.return }\n llvm.mlir.global_ctors ctors = [@f], priorities = [0 : i32], data = [#llvm.zero]",
            "'llvm.mlir.global_ctors'",
        ),
    ];
    for (text, expected) in cases {
        let message = rejected_of_c(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn c_source_is_written_by_its_own_generator_only() {
    let context = irc_dialects::new_context();
    let module = irc_mlir::parse_module(&context, "").expect("the text parses");
    for (target, output) in
        [(Target::host(), Output::C), (quick(), Output::C), (Target::portable(), Output::Object)]
    {
        let error = compile(&module, &target, output).expect_err("another's output");
        assert!(error.message.contains("C source"), "{error}");
    }
}
