//! Conversion of configs to attributes.
use crate::attributes::{dictionary, entries, text};
use irc_ark_format::plan::{Config, ConfigValue};
use irc_mlir::{
    Attribute, Context, OperationLike, OperationRef, attr,
    melior::ir::attribute::{BoolAttribute, DenseI64ArrayAttribute, IntegerAttribute},
};

/// The order in which ARK writes the keys of its default configs.
const ORDER: [&str; 10] = [
    "NumWarps",
    "SramBytes",
    "ChannelType",
    "Signal",
    "Wait",
    "PacketType",
    "Tile",
    "TileShapeMNK",
    "NumTasks",
    "ImplType",
];

/// The attribute that lists the keys of a config in an unusual order.
const KEYS: &str = "plan.config_keys";

/// Keys in the usual order: known ones first, then the others by name.
fn usual(mut keys: Vec<&str>) -> Vec<&str> {
    let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    keys.sort_by(|left, right| rank(left).cmp(&rank(right)).then(left.cmp(right)));
    keys
}

/// The attributes of a config.
pub(super) fn to_attributes<'c>(
    context: &'c Context,
    config: &Config,
) -> Vec<(&'static str, Attribute<'c>)> {
    let values = config.0.iter().map(|(key, item)| (key.as_str(), value(context, item)));
    let mut attributes = vec![("config", dictionary(context, values))];
    let keys: Vec<&str> = config.0.iter().map(|(key, _)| key.as_str()).collect();
    if usual(keys.clone()) != keys {
        let keys: Vec<_> = keys.iter().map(|key| attr::string(context, key)).collect();
        attributes.push((KEYS, attr::array(context, &keys)));
    }
    attributes
}

fn value<'c>(context: &'c Context, value: &ConfigValue) -> Attribute<'c> {
    match value {
        ConfigValue::Bool(value) => attr::bool(context, *value),
        ConfigValue::Int(value) => attr::i64(context, *value),
        ConfigValue::Text(value) => attr::string(context, value),
        ConfigValue::Ints(values) => attr::i64s(context, values),
    }
}

/// The config in an op's attributes.
///
/// # Errors
/// The op has none, or a value of an unknown kind.
pub(super) fn from_attributes(op: OperationRef<'_, '_>) -> Result<Config, String> {
    let attribute = op.attribute("config").map_err(|_| "expected a 'config'".to_owned())?;
    let values = entries(attribute)?;
    let keys = match op.attribute(KEYS) {
        Ok(keys) => strings(keys).ok_or_else(|| format!("expected strings in '{KEYS}'"))?,
        Err(_) => {
            let keys = usual(values.iter().map(|(key, _)| key.as_str()).collect());
            keys.into_iter().map(str::to_owned).collect()
        }
    };
    if keys.len() != values.len() {
        return Err(format!("expected the keys of 'config' in '{KEYS}'"));
    }
    let item = |key: String| {
        let (_, value) = values.iter().find(|(name, _)| *name == key)?;
        Some((key, config_value(*value)?))
    };
    let items: Option<Vec<_>> = keys.into_iter().map(item).collect();
    items.map(Config).ok_or_else(|| "'config' has a value that plans cannot represent".to_owned())
}

fn strings(attribute: Attribute<'_>) -> Option<Vec<String>> {
    irc_mlir::read::array_elements(attribute)?.into_iter().map(text).collect()
}

fn config_value(attribute: Attribute<'_>) -> Option<ConfigValue> {
    if let Ok(value) = BoolAttribute::try_from(attribute) {
        return Some(ConfigValue::Bool(value.value()));
    }
    if let Ok(value) = IntegerAttribute::try_from(attribute) {
        return Some(ConfigValue::Int(value.value()));
    }
    if let Ok(values) = DenseI64ArrayAttribute::try_from(attribute) {
        let values = (0..values.len()).map(|index| values.element(index).ok());
        return values.collect::<Option<_>>().map(ConfigValue::Ints);
    }
    text(attribute).map(ConfigValue::Text)
}
