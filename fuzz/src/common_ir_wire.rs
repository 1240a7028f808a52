//! Any bytes: the binary readers of both schemas, and of files of test data, never panic,
//! explain what they reject, and what they accept is written and read again as it was.

use bytes::Bytes;
use irc_common_format::model::{ElementType, Type};
use irc_common_format::{Encoding, read_data};
use irc_diag::Sink;

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    crate::common_ir::check(bytes, Encoding::Binary);
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
        assert!(data.is_some() || sink.has_errors(), "rejected without a diagnostic");
    }
}
