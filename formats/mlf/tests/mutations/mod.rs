//! A valid archive with one change at a time: the error is reported, and there was none before.

mod file;
mod tar_bytes;

use crate::support;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use irc_diag::Severity;
use irc_mlf::{Archive, Version};

/// Members of an archive, to be changed.
pub type Members = BTreeMap<String, Vec<u8>>;

/// A mutation of the small archive.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// The expected code.
    pub code: &'static str,
    /// The version of the archive.
    pub version: Version,
    /// The change.
    pub edit: Box<dyn Fn(&mut Members)>,
    /// Whether hashes are updated, so that they do not reveal the change.
    pub rehash: bool,
}

fn members(version: Version) -> Members {
    let package = support::package(version);
    let members = package.archive.members().iter();
    members.map(|(path, content)| (path.clone(), content.to_vec())).collect()
}

/// The archive of members, as a file.
fn packed(members: Members) -> Bytes {
    let members = members.into_iter().map(|(path, content)| (path, Bytes::from(content)));
    let mut bytes = vec![];
    Archive::new("test.tar", members).write(0, &mut bytes).expect("memory");
    bytes.into()
}

fn broken(row: &Row) -> Bytes {
    let mut members = members(row.version);
    let before = members.clone();
    (row.edit)(&mut members);
    assert_ne!(members, before, "{}: nothing changes", row.name);
    if row.rehash {
        file::rehash(&mut members);
    }
    packed(members)
}

#[test]
fn the_archives_are_sound() {
    for version in [Version::V5, Version::V7] {
        let mut members = members(version);
        assert_eq!(support::diagnostics(&packed(members.clone())), []);
        // The edits of rows change the layout of JSON.
        file::rehash(&mut members);
        assert_eq!(support::diagnostics(&packed(members)), []);
    }
}

#[test]
fn each_mutation_is_named() {
    let mut errors = vec![];
    let files = file::all().into_iter().map(|row| (row.name, row.code, broken(&row)));
    for (name, code, bytes) in files.chain(tar_bytes::all()) {
        let found = support::diagnostics(&bytes);
        let codes: BTreeSet<&str> = found.iter().map(|diagnostic| diagnostic.code).collect();
        let Some(diagnostic) = found.iter().find(|diagnostic| diagnostic.code == code) else {
            errors.push(format!("{name}: {code} not in {codes:?}"));
            continue;
        };
        // A diagnostic in a text has a path and a label, one in binary data has a note of the offset.
        if diagnostic.path.is_some() && diagnostic.labels.is_empty() {
            errors.push(format!("{name}: {code} has no place"));
        }
        if documented_severities(code).iter().all(|severity| *severity != diagnostic.severity) {
            errors.push(format!("{name}: {code} is not listed as {:?}", diagnostic.severity));
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// The severity of a diagnostic according to the README.
fn documented_severities(code: &str) -> Vec<Severity> {
    let readme = include_str!("../../README.md");
    let quoted = format!("`{code}`");
    let row = readme.lines().find(|line| line.starts_with('|') && line.contains(&quoted));
    let row = row.unwrap_or_default();
    match () {
        () if row.contains("of archives of TVM a warning") => {
            vec![Severity::Error, Severity::Warning]
        }
        () if row.contains("` w |") => vec![Severity::Warning],
        () if row.contains("` n |") => vec![Severity::Note],
        () => vec![Severity::Error],
    }
}

#[test]
fn every_code_has_a_mutation() {
    let tried: BTreeSet<&str> = file::all().iter().map(|row| row.code).collect();
    let tried: BTreeSet<&str> =
        tried.into_iter().chain(tar_bytes::all().into_iter().map(|row| row.1)).collect();
    let readme = include_str!("../../README.md");
    let listed = irc_diag::codes::in_page(readme, &["mlf-"]);
    let missing: Vec<&String> =
        listed.iter().filter(|code| !tried.contains(code.as_str())).collect();
    assert_eq!(missing, Vec::<&String>::new());
}

#[test]
fn any_byte_may_change() {
    let bytes = packed(members(Version::V7));
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.to_vec();
        changed[at] ^= 0x15;
        support::diagnostics(&changed.into());
    }
}
