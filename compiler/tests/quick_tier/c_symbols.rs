//! Globals and names of C source that the quick tier has not: against LLVM, and as text.
use super::harness::{Functions, c_source};
use irc::Backend;

/// Runs `irc_task_0`, which writes 64 bytes to its last argument, by LLVM and as C.
fn agree(text: &str) -> Vec<u8> {
    let [expected, found] = [Backend::LLVM, Backend::C].map(|backend| {
        let functions = Functions::compile(text, backend);
        let (mut a, mut out) = (vec![7_u8; 64], vec![0xa5_u8; 64]);
        let pointer = a.as_mut_ptr();
        functions.raw("irc_task_0", [pointer, pointer, pointer, out.as_mut_ptr()]);
        out
    });
    assert_eq!(expected, found);
    found
}

fn task(body: &str) -> String {
    format!(
        "llvm.func @irc_task_0(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %o: !llvm.ptr) {{
           {body}
           llvm.return }}"
    )
}

#[test]
fn a_table_of_functions_is_called_through() {
    let table = "
      llvm.func internal @double(%0: i64) -> i64 { %1 = llvm.add %0, %0 : i64\n llvm.return %1 : i64 }
      llvm.func internal @int(%0: i64) -> i64 { %1 = llvm.mul %0, %0 : i64\n llvm.return %1 : i64 }
      llvm.mlir.global internal constant @table() : !llvm.array<3 x ptr> {
        %0 = llvm.mlir.undef : !llvm.array<3 x ptr>
        %1 = llvm.mlir.addressof @double : !llvm.ptr
        %2 = llvm.mlir.addressof @int : !llvm.ptr
        %3 = llvm.mlir.zero : !llvm.ptr
        %4 = llvm.insertvalue %1, %0[0] : !llvm.array<3 x ptr>
        %5 = llvm.insertvalue %2, %4[1] : !llvm.array<3 x ptr>
        %6 = llvm.insertvalue %3, %5[2] : !llvm.array<3 x ptr>
        llvm.return %6 : !llvm.array<3 x ptr>
      }";
    let body = "
      %t = llvm.mlir.addressof @table : !llvm.ptr
      %x = llvm.mlir.constant(21 : i64) : i64
      %p0 = llvm.load %t : !llvm.ptr -> !llvm.ptr
      %q1 = llvm.getelementptr %t[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<3 x ptr>
      %p1 = llvm.load %q1 : !llvm.ptr -> !llvm.ptr
      %q2 = llvm.getelementptr inbounds %t[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %p2 = llvm.load %q2 : !llvm.ptr -> !llvm.ptr
      %r0 = llvm.call %p0(%x) : !llvm.ptr, (i64) -> i64
      %r1 = llvm.call %p1(%x) : !llvm.ptr, (i64) -> i64
      %r2 = llvm.ptrtoint %p2 : !llvm.ptr to i64
      llvm.store %r0, %o : i64, !llvm.ptr
      %o1 = llvm.getelementptr %o[8] : (!llvm.ptr) -> !llvm.ptr, i8
      llvm.store %r1, %o1 : i64, !llvm.ptr
      %o2 = llvm.getelementptr %o[16] : (!llvm.ptr) -> !llvm.ptr, i8
      llvm.store %r2, %o2 : i64, !llvm.ptr";
    let out = agree(&(table.to_owned() + &task(body)));
    assert_eq!((out[0], out[8], out[16]), (42, 185, 0));
}

#[test]
fn a_record_keeps_its_layout_and_its_addresses() {
    let ty = "!llvm.struct<(i8, ptr, f32, array<2 x i16>, i64)>";
    let globals = format!(
        "llvm.mlir.global private constant @record() {{alignment = 32 : i64}} : {ty} {{
           %u = llvm.mlir.zero : {ty}
           %0 = llvm.mlir.constant(-2 : i8) : i8
           %1 = llvm.mlir.addressof @words : !llvm.ptr
           %2 = llvm.getelementptr %1[2] : (!llvm.ptr) -> !llvm.ptr, i32
           %3 = llvm.mlir.constant(0x7FC00001 : f32) : f32
           %4 = llvm.mlir.constant(dense<[5, -6]> : tensor<2xi16>) : !llvm.array<2 x i16>
           %a = llvm.insertvalue %0, %u[0] : {ty}
           %b = llvm.insertvalue %2, %a[1] : {ty}
           %c = llvm.insertvalue %3, %b[2] : {ty}
           %d = llvm.insertvalue %4, %c[3] : {ty}
           llvm.return %d : {ty}
         }}
         llvm.mlir.global internal constant @words(dense<[1, 2, 345, 4]> : tensor<4xi32>) : !llvm.array<4 x i32>\n"
    );
    let body = format!(
        "%p = llvm.mlir.addressof @record : !llvm.ptr
         %v = llvm.load %p : !llvm.ptr -> {ty}
         %w = llvm.extractvalue %v[1] : {ty}
         %x = llvm.load %w : !llvm.ptr -> i32
         llvm.store %x, %o : i32, !llvm.ptr
         %o1 = llvm.getelementptr %o[8] : (!llvm.ptr) -> !llvm.ptr, i8
         %n = llvm.mlir.constant(16 : i64) : i64
         %q = llvm.getelementptr %p[0, 2] : (!llvm.ptr) -> !llvm.ptr, {ty}
         \"llvm.intr.memcpy\"(%o1, %q, %n) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
         %b0 = llvm.load %p : !llvm.ptr -> i8
         %o2 = llvm.getelementptr %o[32] : (!llvm.ptr) -> !llvm.ptr, i8
         llvm.store %b0, %o2 : i8, !llvm.ptr"
    );
    let out = agree(&(globals + &task(&body)));
    assert_eq!(out[..2], 345_u16.to_le_bytes());
}

#[test]
fn symbols_are_known_outside_by_their_own_names() {
    let text = "
      llvm.func @strlen(!llvm.ptr) -> i64
      llvm.func @exp(f64) -> f64
      llvm.mlir.global internal constant @for(\"five?\\00\")
      llvm.mlir.global internal constant @floats(dense<[1.5, 0x7F800000, -0.0]> : tensor<3xf32>) : !llvm.array<3 x f32>
      llvm.func internal @sin(%0: i64) -> i64 { llvm.return %0 : i64 }
      llvm.func @irc_run.odd(%0: i64) -> i64 { llvm.return %0 : i64 }\n";
    let body = "
      %p = llvm.mlir.addressof @for : !llvm.ptr
      %n = llvm.call @strlen(%p) : (!llvm.ptr) -> i64
      %m = llvm.call @sin(%n) : (i64) -> i64
      %k = llvm.call @irc_run.odd(%m) : (i64) -> i64
      llvm.store %k, %o : i64, !llvm.ptr
      %o1 = llvm.getelementptr %o[8] : (!llvm.ptr) -> !llvm.ptr, i8
      %x = llvm.mlir.constant(0.5 : f64) : f64
      %y = llvm.call @exp(%x) : (f64) -> f64
      llvm.store %y, %o1 : f64, !llvm.ptr
      %o2 = llvm.getelementptr %o[16] : (!llvm.ptr) -> !llvm.ptr, i8
      %f = llvm.mlir.addressof @floats : !llvm.ptr
      %v = llvm.load %f {alignment = 4 : i64} : !llvm.ptr -> vector<3xf32>
      llvm.store %v, %o2 {alignment = 4 : i64} : vector<3xf32>, !llvm.ptr";
    let out = agree(&(text.to_owned() + &task(body)));
    assert_eq!(out[0], 5);
    let source = c_source(text);
    assert!(source.contains("__asm__(\"irc_run.odd\")"), "{source}");
    assert!(source.contains("= \"five\\?\";"), "{source}");
}

#[test]
fn linkage_and_visibility_are_said() {
    let source = c_source(
        "llvm.mlir.global weak @__TVMBackendAllocWorkspace() : !llvm.ptr {
           %0 = llvm.mlir.zero : !llvm.ptr\n llvm.return %0 : !llvm.ptr }
         llvm.mlir.global external @other() : i32
         llvm.func hidden @irc_inner() { llvm.return }
         llvm.func weak @irc_outer() { llvm.return }",
    );
    for line in [
        "void *__TVMBackendAllocWorkspace __attribute__((aligned(8))) __attribute__((weak)) = NULL;",
        "void irc_inner(void) __attribute__((visibility(\"hidden\")));",
        "void irc_outer(void) __attribute__((weak));",
    ] {
        assert!(source.contains(&format!("\n{line}\n")), "{line}\n{source}");
    }
    assert!(source.contains("extern char c_1_other[] __asm__(\"other\");"), "{source}");
}

#[test]
fn only_helpers_that_are_used_are_printed() {
    let source = c_source(&task(
        "%x = llvm.load %a : !llvm.ptr -> i32\n llvm.store %x, %o : i32, !llvm.ptr",
    ));
    let helpers: Vec<&str> = source.lines().filter(|line| line.starts_with("C_INLINE")).collect();
    let expected = ["uint32_t c_load_u32(const void *p)", "void c_store_u32(void *p, uint32_t x)"];
    assert_eq!(helpers, expected.map(|head| format!("C_INLINE {head}")));
}

#[test]
fn upper_halves_of_signed_products_survive_optimisation() {
    // gcc 12 makes one instruction of the loop, and with unsigned factors the wrong one.
    let loop_of = |product: &str| {
        format!(
            "llvm.func @irc_task_0(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %o: !llvm.ptr) {{
               %zero = llvm.mlir.constant(0 : i64) : i64
               %one = llvm.mlir.constant(1 : i64) : i64
               %n = llvm.mlir.constant(32 : i64) : i64
               %k = llvm.mlir.constant(300 : i32) : i32
               %half = llvm.mlir.constant(16 : i32) : i32
               llvm.br ^loop(%zero : i64)
             ^loop(%i: i64):
               %p = llvm.getelementptr inbounds %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i16
               %q = llvm.getelementptr inbounds %o[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i16
               %v = llvm.load %p : !llvm.ptr -> i16
               %x = llvm.sext %v : i16 to i32
               {product}
               %h = llvm.lshr %m, %half : i32
               %r = llvm.trunc %h : i32 to i16
               llvm.store %r, %q : i16, !llvm.ptr
               %next = llvm.add %i, %one : i64
               %more = llvm.icmp \"slt\" %next, %n : i64
               llvm.cond_br %more, ^loop(%next : i64), ^end
             ^end:
               llvm.return
             }}"
        )
    };
    for (product, factor) in [
        ("%m = llvm.mul %x, %x : i32", None),
        ("%m = llvm.mul %x, %k : i32", Some(300)),
        ("%m = llvm.mul %k, %x : i32", Some(300)),
    ] {
        let functions = Functions::of_c(&c_source(&loop_of(product)), &["-O3"]);
        let (mut a, mut out) =
            (std::array::from_fn::<i16, 32, _>(|at| at as i16 * 5 - 81), [0_i16; 32]);
        let pointer = a.as_mut_ptr().cast();
        functions.raw("irc_task_0", [pointer, pointer, pointer, out.as_mut_ptr().cast()]);
        let expected = a.map(|x| ((i32::from(x) * factor.unwrap_or(i32::from(x))) >> 16) as i16);
        assert_eq!(out, expected, "{product}");
    }
}
