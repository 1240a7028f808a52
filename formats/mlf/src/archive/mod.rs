//! Tar files: named members, read without copies and written deterministically.

mod path;
mod read;
mod write;

use std::{collections::BTreeMap, ops::Bound};

use bytes::Bytes;
use irc_diag::Source;

pub use path::error as path_error;

/// Size of a header, and alignment of contents, in bytes.
const BLOCK: usize = 512;

/// The length of an archive is a multiple of this, as in Python and GNU tar.
const RECORD: usize = 10240;

/// The members of an archive.
///
/// Contents are slices of the file, without copies. They start at multiples of 512 bytes of
/// the file, so that in a file mapped into memory each is aligned to 512.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    name: String,
    members: BTreeMap<String, Bytes>,
}

impl Archive {
    /// An archive of members by path, such as `src/relay.txt`; `name` is its name in diagnostics.
    pub fn new(name: &str, members: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        Self { name: name.into(), members: members.into_iter().collect() }
    }

    /// The name in diagnostics.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Contents of the member at a path without a leading `./`.
    pub fn get(&self, path: &str) -> Option<&Bytes> {
        self.members.get(path)
    }

    /// Paths and contents, in order of paths.
    pub fn members(&self) -> &BTreeMap<String, Bytes> {
        &self.members
    }

    /// Members whose path starts with `folder`, such as `codegen/host/lib/`.
    pub fn within(&self, folder: &str) -> impl Iterator<Item = (&str, &Bytes)> {
        let members = self.members.range::<str, _>((Bound::Included(folder), Bound::Unbounded));
        let members = members.map(|(path, content)| (path.as_str(), content));
        members.take_while(move |(path, _)| path.starts_with(folder))
    }

    /// Name of a member in diagnostics: `model.tar:metadata.json`.
    pub fn name_of(&self, path: &str) -> String {
        format!("{}:{path}", self.name)
    }

    /// A member as a text for diagnostics; empty if there is no such member.
    pub fn text_of(&self, path: &str) -> Source {
        let content = self.get(path).map_or(&[][..], |content| content);
        Source::from_bytes(self.name_of(path), content)
    }

    /// A member that is not text: diagnostics about it state the offset in a note.
    pub fn binary_of(&self, path: &str) -> Source {
        Source::new(self.name_of(path), "")
    }
}
