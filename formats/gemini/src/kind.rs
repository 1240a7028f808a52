//! Detects the format of a text.

use crate::frontend::FrontendLayer;
use crate::schedule::is_schedule_key;

/// The formats of the Gemini tool chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A schedule, of whichever dialect.
    Schedule,
    /// A frontend file: the layers of a model.
    Frontend,
}

impl FileKind {
    /// The format of a text, detected from its first keys, so that it is known for invalid texts too.
    pub fn of(text: &str) -> Option<FileKind> {
        let rest = text.trim_start_matches('\u{feff}').trim_start().strip_prefix('{')?;
        let (key, rest) = quoted(rest)?;
        if is_schedule_key(key) {
            return Some(FileKind::Schedule);
        }
        let layer = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('{')?;
        let (key, _) = quoted(layer)?;
        FrontendLayer::KEYS.contains(&key).then_some(FileKind::Frontend)
    }
}

/// The leading string of a text, without escapes, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.trim_start().strip_prefix('"')?.split_once('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keys_tell() {
        assert_eq!(FileKind::of(r#"{"-1": {"in": ["#), Some(FileKind::Schedule));
        assert_eq!(FileKind::of(r#" {"xlen": 2"#), Some(FileKind::Schedule));
        assert_eq!(FileKind::of(r#"{"Conv_1": {"layer_index": 0"#), Some(FileKind::Frontend));
        assert_eq!(FileKind::of(r#"{"Rank": 0, "Nodes": []}"#), None);
        assert_eq!(FileKind::of("[]"), None);
    }
}
