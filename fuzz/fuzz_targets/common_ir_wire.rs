//! Any bytes: the binary readers of both schemas, and of files of test data, never panic,
//! explain what they refuse, and what they accept is written and read again as it was.
//!
//! On stable Rust, for one minute, from the folder of the repository:
//!
//!     mkdir -p fuzz/corpus/common_ir_wire
//!     cargo fuzz run --sanitizer none common_ir_wire fuzz/corpus/common_ir_wire \
//!         formats/common_ir/tests/data -- -max_total_time=60 -rss_limit_mb=1024
#![no_main]

mod common_ir;

use bytes::Bytes;
use irc_common_format::model::{ElementType, Type};
use irc_common_format::{Encoding, read_data};
use irc_diag::Sink;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    common_ir::check(bytes, Encoding::Binary);
    let tensor = Type::unranked(ElementType::Float);
    let types = [
        Type::Sequence(None),
        Type::Optional(None),
        Type::Map { key: ElementType::Int64, value: None },
        tensor,
    ];
    for ty in types {
        let mut sink = Sink::new();
        let data = read_data(Bytes::copy_from_slice(bytes), &ty, &mut sink);
        assert!(data.is_some() || sink.has_errors(), "refused without a word");
    }
});
