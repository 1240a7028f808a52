//! The mains of upstream tools over our registry.
use crate::bridge::{self, string_ref};
use melior::dialect::DialectRegistry;
use std::ffi::{CString, c_char, c_int};

/// `mlir-opt`'s main: exit code 0 or 1. `arguments[0]` is the tool's name.
pub fn opt_main(arguments: &[String], summary: &str, registry: &DialectRegistry) -> i32 {
    with_argv(arguments, |argc, argv| {
        // Safety: argv holds argc live C strings; the registry outlives the call.
        unsafe { bridge::ircOptMain(argc, argv, string_ref(summary), registry.to_raw()) }
    })
}

/// `mlir-lsp-server`'s main: serves on stdin and stdout.
pub fn lsp_server_main(arguments: &[String], registry: &DialectRegistry) -> i32 {
    with_argv(arguments, |argc, argv| {
        // Safety: as in `opt_main`.
        unsafe { bridge::ircLspServerMain(argc, argv, registry.to_raw()) }
    })
}

fn with_argv(arguments: &[String], call: impl FnOnce(c_int, *mut *mut c_char) -> c_int) -> i32 {
    let owned: Vec<CString> =
        arguments.iter().filter_map(|text| CString::new(text.as_str()).ok()).collect();
    let mut argv: Vec<*mut c_char> = owned.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let argc = argv.len() as c_int;
    argv.push(std::ptr::null_mut());
    call(argc, argv.as_mut_ptr())
}
