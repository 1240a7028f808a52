//! Valid paths of members.

/// Maximum length of a path in bytes.
const MAX_LENGTH: usize = 1024;

/// The reason why a path is not a relative path below the root of the archive, in the form `a/b`.
pub fn error(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.len() > MAX_LENGTH {
        return Some("is longer than 1024 bytes");
    }
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.contains(|c: char| c.is_control() || c == '\\' || c == ':') {
        return Some("has a character that is not portable");
    }
    path.split('/').find_map(|part| match part {
        ".." => Some("leads out of its folder"),
        "" | "." => Some("has an empty part"),
        _ => None,
    })
}

/// A path of an archive without leading `./` and trailing `/`; empty for the root.
pub(super) fn stripped(path: &str) -> &str {
    let path = path.strip_suffix('/').unwrap_or(path);
    match path {
        "." => "",
        _ => path.strip_prefix("./").unwrap_or(path),
    }
}

/// The ancestors of a path, the outermost first.
pub(super) fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        assert_eq!(error("codegen/host/lib/default_lib0.o"), None);
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/./b", "a\\b", "a\nb", "C:x"]
        {
            assert!(error(path).is_some(), "{path:?}");
        }
        assert!(error(&"a".repeat(2000)).is_some());
    }

    #[test]
    fn roots_and_folders_are_stripped() {
        assert_eq!(["./", ".", "./a/", "a/b"].map(stripped), ["", "", "a", "a/b"]);
        assert_eq!(folders("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
