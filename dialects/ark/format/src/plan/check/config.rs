//! The keys of a config that ARK's code generator reads.

use irc_diag::{Diagnostic, Sink};

use crate::json::{At, OpPlace};
use crate::model::OpKind;
use crate::plan::{ConfigValue, PlanOp};

/// Checks that the config of an op has the keys its kind needs, with sensible values.
pub(super) fn check(op: &PlanOp, place: OpPlace, sink: &mut Sink) {
    let at = At::op(place);
    let at = at.key("Config");
    for &(key, kind) in required(op.op.kind) {
        match op.config.get(key) {
            // The newest generation gives a matrix product's tile as M and N alone.
            None if key == "TileShapeMNK" && op.config.get("Tile").is_some() => {
                let message = "`Tile` is read as the M and N of `TileShapeMNK`";
                let finding = Diagnostic::warning("ark-generation", message);
                sink.push(finding.path(at.key("Tile").to_string()));
            }
            None => {
                let message = format!("`Config` of `{}` needs `{key}`", op.op.kind);
                sink.push(Diagnostic::error("plan-missing-config", message).path(at.to_string()));
            }
            Some(value) => check_value(op.op.kind, value, kind, &at.key(key), sink),
        }
    }
    let optional = OPTIONAL.iter().chain(UNREAD);
    for &(key, kind) in optional.filter(|o| !required(op.op.kind).contains(o)) {
        if let Some(value) = op.config.get(key) {
            check_value(op.op.kind, value, kind, &at.key(key), sink);
        }
    }
}

/// Keys that the planner reads, and that any op may have.
const OPTIONAL: &[(&str, Kind)] = &[
    ("NumTasks", Kind::Count),
    ("SramBytes", Kind::Count),
    ("NumWarps", Kind::Positive),
    ("Granularity", Kind::Positive),
];

/// Keys that ops of some kinds have, and that mean nothing to the others.
const UNREAD: &[(&str, Kind)] = &[
    ("Tile", Kind::Tile),
    ("TileShapeMNK", Kind::Mnk),
    ("ImplType", IMPL),
    ("ChannelType", CHANNEL),
    ("PacketType", PACKET),
];

/// The keys that mean something in the config of an op, with what their values must be.
fn read(kind: OpKind) -> impl Iterator<Item = (&'static str, Kind)> {
    // A `Send` that writes to its peer by itself is cut into tiles.
    let tile = (kind == OpKind::Send).then_some(("Tile", Kind::Tile));
    required(kind).iter().copied().chain(OPTIONAL.iter().copied()).chain(tile)
}

/// The names of the keys that mean something in the config of an op.
pub fn config_keys(kind: OpKind) -> Vec<&'static str> {
    let mut names: Vec<&str> = vec![];
    for (name, _) in read(kind) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What the value of a key in the config of an op should have been; nothing when it is that, or
/// when the key means nothing there.
pub fn expected_config(op: OpKind, key: &str, value: &ConfigValue) -> Option<String> {
    let (_, kind) = read(op).find(|(name, _)| *name == key)?;
    unexpected(op, value, kind)
}

/// What a value must be.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A non-negative integer.
    Count,
    /// A positive integer.
    Positive,
    /// Two to four extents.
    Tile,
    /// Three positive extents.
    Mnk,
    /// A boolean.
    Flag,
    /// One of these names.
    Name(&'static [&'static str]),
}

const CHANNEL: Kind = Kind::Name(&["Proxy", "SecondaryProxy", "Sm"]);
const PACKET: Kind = Kind::Name(&["mscclpp::LL8Packet", "mscclpp::LL16Packet"]);
const IMPL: Kind = Kind::Name(&["WarpWise", "ElementWise"]);

fn required(kind: OpKind) -> &'static [(&'static str, Kind)] {
    use Kind::{Count, Flag, Mnk, Positive, Tile};
    match kind {
        OpKind::Noop | OpKind::Tensor | OpKind::Reshape => &[],
        OpKind::Embedding => &[("NumWarps", Positive)],
        OpKind::Matmul => &[("NumWarps", Positive), ("SramBytes", Count), ("TileShapeMNK", Mnk)],
        OpKind::ReduceSum | OpKind::ReduceMax | OpKind::ReduceMean => {
            &[("NumWarps", Positive), ("SramBytes", Count), ("ImplType", IMPL)]
        }
        OpKind::Send => &[
            ("ChannelType", CHANNEL),
            ("Signal", Flag),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("SramBytes", Count),
        ],
        OpKind::SendDone | OpKind::DeviceSync => &[
            ("ChannelType", CHANNEL),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("SramBytes", Count),
        ],
        OpKind::Recv => &[
            ("ChannelType", CHANNEL),
            ("Wait", Flag),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("SramBytes", Count),
        ],
        OpKind::SendPacket | OpKind::RecvPacket | OpKind::RecvReduceSendPacket => &[
            ("PacketType", PACKET),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("Tile", Tile),
            ("SramBytes", Count),
        ],
        OpKind::RecvReduceSend => {
            &[("NumTasks", Count), ("NumWarps", Positive), ("Tile", Tile), ("SramBytes", Count)]
        }
        _ => &[("NumWarps", Positive), ("Tile", Tile)],
    }
}

fn check_value(op: OpKind, value: &ConfigValue, kind: Kind, at: &At<'_>, sink: &mut Sink) {
    if let Some(expected) = unexpected(op, value, kind) {
        let message = format!("expected {expected}");
        sink.push(Diagnostic::error("plan-config", message).path(at.to_string()));
    }
}

/// What a value should have been; nothing when it is.
fn unexpected(op: OpKind, value: &ConfigValue, kind: Kind) -> Option<String> {
    let fits = |least: i64, n: i64| n >= least && i32::try_from(n).is_ok();
    // A negative extent of a transposition's tile stands for the whole stride.
    let is_extent = |n: &i64| fits(1, *n) || (op == OpKind::Transpose && *n < 0);
    let (sound, expected): (bool, String) = match (kind, value) {
        (Kind::Count, ConfigValue::Int(n)) => (fits(0, *n), "a non-negative integer".into()),
        (Kind::Count, _) => (false, "a non-negative integer".into()),
        (Kind::Positive, ConfigValue::Int(n)) => (fits(1, *n), "a positive integer".into()),
        (Kind::Positive, _) => (false, "a positive integer".into()),
        (Kind::Tile, ConfigValue::Ints(tile)) => (
            (2..=4).contains(&tile.len()) && tile.iter().all(is_extent),
            "two positive extents".into(),
        ),
        (Kind::Tile, _) => (false, "two positive extents".into()),
        (Kind::Mnk, ConfigValue::Ints(tile)) => {
            (tile.len() == 3 && tile.iter().all(|&n| fits(1, n)), "three positive extents".into())
        }
        (Kind::Mnk, _) => (false, "three positive extents".into()),
        (Kind::Flag, value) => (matches!(value, ConfigValue::Bool(_)), "a boolean".into()),
        (Kind::Name(names), ConfigValue::Text(name)) => {
            (names.contains(&&name[..]), format!("one of {}", names.join(", ")))
        }
        (Kind::Name(names), _) => (false, format!("one of {}", names.join(", "))),
    };
    (!sound).then_some(expected)
}
