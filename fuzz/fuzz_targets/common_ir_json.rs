//! Any bytes: the JSON readers never panic,
//! explain what they refuse, and what they accept is written and read again as it was.
//!
//! On stable Rust, for one minute, from the folder of the repository:
//!
//!     mkdir -p fuzz/corpus/common_ir_json
//!     cargo fuzz run --sanitizer none common_ir_json fuzz/corpus/common_ir_json \
//!         formats/common_ir/tests/data -- -max_total_time=60 -rss_limit_mb=1024
#![no_main]

mod common_ir;

use irc_common_format::Encoding;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| common_ir::check(bytes, Encoding::Json));
