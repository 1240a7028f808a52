//! All fuzz targets as one program of libFuzzer: `IRC_FUZZ_TARGET` names the one to run.
#![no_main]

use irc_fuzz::{Check, TARGETS, target};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CHECK: LazyLock<Check> = LazyLock::new(|| {
    let name = std::env::var("IRC_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let names = TARGETS.map(|(name, _)| name).join(", ");
        eprintln!("IRC_FUZZ_TARGET is `{name}`; the targets are {names}");
        std::process::exit(2)
    })
});

fuzz_target!(|bytes: &[u8]| CHECK(bytes));
