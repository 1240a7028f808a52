//! References to libraries: URIs and relative paths.

use std::path::{Component, Path, PathBuf};

/// The target of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A relative path.
    Relative(PathBuf),
    /// An absolute path, of a `file:` URI.
    Absolute(PathBuf),
    /// A document of a server.
    Url(String),
    /// An unsupported scheme.
    Other(String),
}

/// The reason why a reference is neither a URI nor a relative path (RFC 3986).
pub(crate) fn error(reference: &str) -> Option<String> {
    if reference.is_empty() {
        return Some("is empty".to_owned());
    }
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    if let Some(c) = reference.chars().find(|c| !c.is_ascii() || !is_allowed(*c as u8)) {
        return Some(format!("contains {c:?}, which is not allowed in a URI"));
    }
    let escapes = reference.match_indices('%').map(|(at, _)| reference.get(at + 1..at + 3));
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if escapes.into_iter().any(|digits| !digits.is_some_and(is_hex)) {
        return Some("contains a `%` without two hexadecimal digits".to_owned());
    }
    let (scheme, rest) = split(reference);
    match scheme {
        Some("") => Some("has an empty scheme".to_owned()),
        Some("http" | "https") if host(rest).is_empty() => Some("names no host".to_owned()),
        _ => None,
    }
}

/// The scheme, if there is one, and the rest.
fn split(reference: &str) -> (Option<&str>, &str) {
    let end = reference.find([':', '/', '?', '#']).filter(|end| reference[*end..].starts_with(':'));
    let Some(end) = end else { return (None, reference) };
    let scheme = &reference[..end];
    let is_scheme = |scheme: &str| {
        let rest = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(rest)
    };
    if is_scheme(scheme) { (Some(scheme), &reference[end + 1..]) } else { (Some(""), reference) }
}

fn host(rest: &str) -> &str {
    let after = rest.strip_prefix("//").unwrap_or_default();
    after.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The target of a valid reference.
pub(super) fn target(reference: &str) -> Result<Target, String> {
    let (scheme, rest) = split(reference);
    Ok(match scheme.map(str::to_ascii_lowercase).as_deref() {
        None => {
            let path = decoded(reference)?;
            match Path::new(&path).is_absolute() {
                true => Target::Absolute(path.into()),
                false => Target::Relative(path.into()),
            }
        }
        Some("file") => {
            let path = match rest.strip_prefix("//") {
                Some(after) if after.starts_with('/') => after,
                Some(after) => after
                    .strip_prefix("localhost")
                    .filter(|after| after.starts_with('/'))
                    .ok_or("names a file of another host")?,
                None => rest,
            };
            let path = decoded(path)?;
            match Path::new(&path).is_absolute() {
                true => Target::Absolute(path.into()),
                false => Target::Relative(path.into()),
            }
        }
        Some("http" | "https") => {
            Target::Url(reference.split('#').next().unwrap_or_default().to_owned())
        }
        Some(other) => Target::Other(other.to_owned()),
    })
}

/// The text with its escapes decoded.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = vec![];
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err("contains a `%` without two hexadecimal digits".into()),
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains(['\0', '\\']) => Ok(text),
        _ => Err("is not the path of a file".into()),
    }
}

/// Resolves a path lexically from a folder within a root; `None` if it leaves the root.
pub(super) fn within(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for part in folder.components().chain(path.components()) {
        match part {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !found.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

/// Resolves a relative reference of a document that was fetched.
pub(super) fn joined(base: &str, relative: &Path) -> Option<String> {
    let start = base.find("://")? + 3;
    let path = start + base[start..].find('/').unwrap_or(base.len() - start);
    let (server, rest) = base.split_at(path);
    let rest = rest.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/');
    let folder = Path::new(rest).parent().unwrap_or(Path::new(""));
    let path = within(folder, relative)?;
    Some(format!("{server}/{}", path.to_str()?.replace('%', "%25").replace(' ', "%20")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_uris_or_relative_paths() {
        for right in ["libs/a.pb", "https://h/x", "../a.pb", "file:///a/b%20c.pb", "a.pb", "./x:y"]
        {
            assert_eq!(error(right), None, "{right}");
        }
        for wrong in ["", "a b", "a%2", "a%zz", "https://", "http:/x", "a\\b", "é.pb", "1a:b", ":a"]
        {
            assert!(error(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn targets_are_distinguished() {
        assert_eq!(target("a%20b.pb"), Ok(Target::Relative("a b.pb".into())));
        assert_eq!(target("/a.pb"), Ok(Target::Absolute("/a.pb".into())));
        assert_eq!(target("file:///a.pb"), Ok(Target::Absolute("/a.pb".into())));
        assert_eq!(target("file://localhost/a.pb"), Ok(Target::Absolute("/a.pb".into())));
        assert!(target("file://elsewhere/a.pb").is_err());
        assert!(target("a%00.pb").is_err());
        assert_eq!(target("https://h/a#b"), Ok(Target::Url("https://h/a".into())));
        assert_eq!(target("ftp://h/a"), Ok(Target::Other("ftp".into())));
    }

    #[test]
    fn paths_stay_within() {
        let inner = |folder: &str, path: &str| within(Path::new(folder), Path::new(path));
        assert_eq!(inner("a/b", "../c.pb"), Some("a/c.pb".into()));
        assert_eq!(inner("a", "../../c.pb"), None);
        assert_eq!(inner("", "/c.pb"), None);
        let join = |relative: &str| joined("http://h:1/x/a.pb?q", Path::new(relative));
        assert_eq!(join("b.pb").as_deref(), Some("http://h:1/x/b.pb"));
        assert_eq!(join("../b.pb").as_deref(), Some("http://h:1/b.pb"));
        assert_eq!(join("../../b.pb"), None);
    }
}
