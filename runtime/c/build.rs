//! How the shared library is linked when it is built to be shipped.

/// Functions of equal code are one, and relocations are packed: by the linker that comes with Rust for this
/// target. Libraries with such relocations need version 2.36 of the GNU libc, of 2022.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const ARGUMENTS: &str = "-Wl,--icf=all,-z,pack-relative-relocs,--build-id=none,-O2";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("TARGET", TARGET) && is("PROFILE", "release") {
        println!("cargo:rustc-cdylib-link-arg={ARGUMENTS}");
    }
}
