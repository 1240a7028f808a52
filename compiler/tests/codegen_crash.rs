//! LLVM aborts on what it cannot select; here that is an error value and the process lives on.
use irc::codegen::{Output, Target, compile};

/// An intrinsic of another machine: it translates, and no x86 instruction implements it.
const UNSELECTABLE: &str = r#"
    llvm.func @f() -> i32 {
      %0 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
      llvm.return %0 : i32
    }"#;

const SOUND: &str = r#"
    llvm.func @f() -> i32 {
      %0 = llvm.mlir.constant(7 : i32) : i32
      llvm.return %0 : i32
    }"#;

#[test]
fn what_llvm_cannot_select_is_an_error_and_the_next_compilation_works() {
    let context = irc_dialects::new_context();
    let object = |text: &str| {
        let module = irc_mlir::parse_module(&context, text).expect("the text parses");
        compile(&module, &Target::host(), Output::Object)
    };
    let error = object(UNSELECTABLE).expect_err("x86 has no such instruction");
    assert!(error.message.to_lowercase().contains("select"), "{error}");
    assert!(!object(SOUND).expect("a constant compiles").is_empty());
}
