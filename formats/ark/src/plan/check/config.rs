//! The config keys that ARK's code generator reads.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use crate::json::OpPlace;
use crate::model::{Exchange, Family, OpKind};
use crate::plan::{ConfigValue, PlanOp};

/// Checks that the config of an op has the required keys of its kind, with valid values.
pub(super) fn check(op: &PlanOp, place: OpPlace, sink: &mut Sink) {
    let at = place.at();
    let at = at.key("Config");
    for &(key, kind) in required(op.op.kind) {
        match op.config.get(key) {
            // The newest generation has only M and N of a matrix product's tile.
            None if key == "TileShapeMNK" && op.config.get("Tile").is_some() => {
                let message = "`Tile` is read as the M and N of `TileShapeMNK`";
                let diagnostic = Diagnostic::warning("ark-generation", message);
                sink.push(diagnostic.path(at.key("Tile").to_string()));
            }
            None => {
                let message = format!("`Config` of `{}` needs `{key}`", op.op.kind);
                sink.push(Diagnostic::error("plan-missing-config", message).path(at.to_string()));
            }
            Some(value) => check_value(op.op.kind, value, kind, &at.key(key), sink),
        }
    }
    for (key, kind) in optional(op.op.kind) {
        if let Some(value) = op.config.get(key) {
            check_value(op.op.kind, value, kind, &at.key(key), sink);
        }
    }
}

/// A key of the config of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigKey {
    /// The key.
    pub name: &'static str,
    /// The valid values, in words.
    pub value: String,
    /// Whether ARK's code generator rejects a config without it.
    pub is_required: bool,
}

/// The config keys of a kind of op that are read by its kernel or by a planner; others
/// are ignored.
pub fn config_keys(kind: OpKind) -> Vec<ConfigKey> {
    let key = |is_required| {
        move |(name, kind): (&'static str, Kind)| ConfigKey {
            name,
            value: kind.expected(),
            is_required,
        }
    };
    let required = required(kind).iter().copied().map(key(true));
    required.chain(optional(kind).map(key(false))).collect()
}

/// The expected value of a key in the config of an op; `None` if the value is valid, or
/// if the op does not read the key.
pub fn expected_config(op: OpKind, key: &str, value: &ConfigValue) -> Option<String> {
    let mut known = required(op).iter().copied().chain(optional(op));
    let (_, kind) = known.find(|(name, _)| *name == key)?;
    unexpected(op, value, kind)
}

/// The kind of a value.
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
    match kind.family() {
        Family::View | Family::Idle => &[],
        Family::Elementwise | Family::Transposition => &[("NumWarps", Positive), ("Tile", Tile)],
        Family::Lookup => &[("NumWarps", Positive)],
        Family::Product => &[("NumWarps", Positive), ("SramBytes", Count), ("TileShapeMNK", Mnk)],
        Family::Reduction => &[("NumWarps", Positive), ("SramBytes", Count), ("ImplType", IMPL)],
        Family::Communication(_) if kind == OpKind::Send => &[
            ("ChannelType", CHANNEL),
            ("Signal", Flag),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("SramBytes", Count),
        ],
        Family::Communication(_) if kind == OpKind::Recv => &[
            ("ChannelType", CHANNEL),
            ("Wait", Flag),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("SramBytes", Count),
        ],
        Family::Communication(Exchange::Signals) => &[
            ("ChannelType", CHANNEL),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("SramBytes", Count),
        ],
        Family::Communication(Exchange::Packets) => &[
            ("PacketType", PACKET),
            ("NumTasks", Count),
            ("NumWarps", Positive),
            ("Tile", Tile),
            ("SramBytes", Count),
        ],
        Family::Communication(Exchange::Data) => {
            &[("NumTasks", Count), ("NumWarps", Positive), ("Tile", Tile), ("SramBytes", Count)]
        }
    }
}

/// Optional keys: those that planners read for every op, and tiles with a default.
fn optional(kind: OpKind) -> impl Iterator<Item = (&'static str, Kind)> {
    let common = [
        ("NumWarps", Kind::Positive),
        ("SramBytes", Kind::Count),
        ("NumTasks", Kind::Count),
        ("Granularity", Kind::Positive),
    ];
    // A single `Send` moves all of its tensor, and the newest generation tiles a product by `Tile`.
    let has_tile = kind == OpKind::Send || kind.family() == Family::Product;
    let tile = has_tile.then_some(("Tile", Kind::Tile));
    let is_required = move |name| required(kind).iter().any(|&(required, _)| required == name);
    common.into_iter().chain(tile).filter(move |&(name, _)| !is_required(name))
}

impl Kind {
    /// The valid values, in words.
    fn expected(self) -> String {
        match self {
            Kind::Count => "a non-negative integer".into(),
            Kind::Positive => "a positive integer".into(),
            Kind::Tile => "two positive extents".into(),
            Kind::Mnk => "three positive extents".into(),
            Kind::Flag => "a boolean".into(),
            Kind::Name(names) => format!("one of {}", names.join(", ")),
        }
    }
}

fn check_value(op: OpKind, value: &ConfigValue, kind: Kind, at: &At<'_>, sink: &mut Sink) {
    if let Some(expected) = unexpected(op, value, kind) {
        let message = format!("expected {expected}");
        sink.push(Diagnostic::error("plan-config", message).path(at.to_string()));
    }
}

/// The expected value; `None` if the value is valid.
fn unexpected(op: OpKind, value: &ConfigValue, kind: Kind) -> Option<String> {
    let fits = |least: i64, n: i64| n >= least && i32::try_from(n).is_ok();
    // A negative extent of a transposition's tile means the whole stride.
    let is_extent = |n: &i64| fits(1, *n) || (op.family() == Family::Transposition && *n < 0);
    let is_sound = match (kind, value) {
        (Kind::Count, ConfigValue::Int(n)) => fits(0, *n),
        (Kind::Positive, ConfigValue::Int(n)) => fits(1, *n),
        (Kind::Tile, ConfigValue::Ints(tile)) => {
            (2..=4).contains(&tile.len()) && tile.iter().all(is_extent)
        }
        (Kind::Mnk, ConfigValue::Ints(tile)) => tile.len() == 3 && tile.iter().all(|&n| fits(1, n)),
        (Kind::Flag, ConfigValue::Bool(_)) => true,
        (Kind::Name(names), ConfigValue::Text(name)) => names.contains(&&name[..]),
        _ => false,
    };
    (!is_sound).then(|| kind.expected())
}
