//! Detection of the format of a text.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// The formats of ARK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A model: it has `Nodes`.
    Model,
    /// A plan: it has `TaskInfos` or `ProcessorGroups`.
    Plan,
}

impl FileKind {
    /// The format of a text, by the keys of its outermost object; the keys before an error or a
    /// truncation are enough.
    pub fn of(text: &str) -> Option<FileKind> {
        let mut found = None;
        let text = text.trim_start_matches('\u{feff}');
        let mut json = serde_json::Deserializer::from_str(text);
        // An error only means that there are no more keys.
        let _ = json.deserialize_map(Keys(&mut found));
        found
    }

    fn of_key(key: &str) -> Option<FileKind> {
        match key {
            "Nodes" => Some(FileKind::Model),
            "TaskInfos" | "ProcessorGroups" => Some(FileKind::Plan),
            _ => None,
        }
    }
}

/// Visits the keys of the outermost object.
struct Keys<'f>(&'f mut Option<FileKind>);

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            *self.0 = self.0.or(FileKind::of_key(&key));
            if self.0.is_some() {
                return Ok(());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_keys_tell() {
        assert_eq!(FileKind::of(r#"{"Rank": 0, "Nodes": []}"#), Some(FileKind::Model));
        assert_eq!(FileKind::of(r#"{"Rank": 0, "TaskInfos": [{"#), Some(FileKind::Plan));
        assert_eq!(FileKind::of(r#"{"X": {"Nodes": []}}"#), None);
        assert_eq!(FileKind::of("[]"), None);
    }
}
