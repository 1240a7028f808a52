//! Reads archives without copies.
//!
//! Accepts the output of Python's `tarfile`: headers of POSIX (`ustar`) and GNU, extended (`pax`)
//! headers for one member, long names of GNU, regular files and folders. All other kinds of members
//! (links, devices, sparse files, global headers) are rejected: models do not need them, and
//! programs that unpack archives treat them differently.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::params::index;
use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};
use tar::{EntryType, Header, PaxExtensions};

use super::path::{self, folders, stripped};
use super::{Archive, BLOCK};
use crate::offset::at_byte;

/// Maximum number of members read.
const MAX_MEMBERS: usize = 65_536;

/// Maximum number of bytes of an extended header or a long name.
const MAX_EXTENSION: usize = 65_536;

/// Maximum number of bytes after the end of the archive.
const MAX_TAIL: usize = 1 << 20;

/// Magic bytes of common compressed archives.
const COMPRESSED: [(&[u8], &str); 4] = [
    (&[0x1f, 0x8b], "gzip"),
    (b"BZh", "bzip2"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
];

impl Archive {
    /// Reads an archive; `None` after an error.
    pub fn read(name: &str, bytes: &Bytes, sink: &mut Sink) -> Option<Self> {
        let before = sink.error_count();
        let mut walk = Walk { bytes, at: 0, next: Extension::default(), sink };
        let mut members = vec![];
        while let Some(entry) = walk.entry() {
            members.extend(member(entry, walk.sink));
        }
        let members = distinct(members, sink);
        check_folders(&members, sink);
        let files = members.into_iter().filter(|member| !member.is_folder);
        let files = files.map(|file| (file.path, bytes.slice(file.content)));
        (sink.error_count() == before).then(|| Self::new(name, files))
    }
}

/// A member found by the walk.
struct Entry {
    /// Offset of its header.
    header: usize,
    /// Its path as written.
    path: Vec<u8>,
    is_folder: bool,
    content: Range<usize>,
}

/// Extended headers before the next member.
#[derive(Default)]
struct Extension {
    path: Option<Vec<u8>>,
    size: Option<u64>,
    is_there: bool,
}

/// A walk over the headers.
struct Walk<'a> {
    bytes: &'a Bytes,
    at: usize,
    next: Extension,
    sink: &'a mut Sink,
}

impl Walk<'_> {
    /// The next file or folder; `None` at the end, or after an error that makes the rest unreadable.
    fn entry(&mut self) -> Option<Entry> {
        loop {
            let start = self.at;
            let bytes = self.bytes;
            let Some(block) = bytes.get(start..).and_then(|rest| rest.get(..BLOCK)) else {
                return self.reject(start, "mlf-truncated", "the archive ends too early");
            };
            if block.iter().all(|byte| *byte == 0) {
                self.end(start);
                return None;
            }
            let header = Header::from_byte_slice(block);
            self.verify(header, start)?;
            let content = self.content(header, start)?;
            self.at = content.end.next_multiple_of(BLOCK);
            match header.entry_type() {
                EntryType::XHeader => self.extend(start, content)?,
                EntryType::GNULongName => self.long_name(start, content)?,
                kind @ (EntryType::Regular | EntryType::Directory) => {
                    let said = std::mem::take(&mut self.next);
                    let path = said.path.unwrap_or_else(|| header.path_bytes().into_owned());
                    let is_folder = kind.is_dir();
                    return Some(Entry { header: start, path, is_folder, content });
                }
                kind => self.wrong_kind(kind, header, start),
            }
        }
    }

    fn report(&mut self, at: usize, code: &'static str, message: impl Into<String>) {
        self.sink.push(at_byte(Diagnostic::error(code, message), at));
    }

    fn reject<T>(&mut self, at: usize, code: &'static str, message: &str) -> Option<T> {
        self.report(at, code, message);
        None
    }

    /// Whether the block is a valid header.
    fn verify(&mut self, header: &Header, start: usize) -> Option<()> {
        let is_marked = header.as_bytes()[257..].starts_with(b"ustar");
        if !is_marked && start == 0 {
            let mut diagnostic = Diagnostic::error("mlf-not-tar", "the file is not a tar archive");
            let packed = COMPRESSED.iter().find(|(magic, _)| header.as_bytes().starts_with(magic));
            if let Some((_, name)) = packed {
                diagnostic =
                    diagnostic.help(format!("it is compressed with {name}: unpack it first"));
            }
            self.sink.push(at_byte(diagnostic, 0));
            return None;
        }
        let mut summed = header.clone();
        summed.set_cksum();
        if is_marked && header.cksum().is_ok_and(|sum| summed.cksum().is_ok_and(|own| own == sum)) {
            return Some(());
        }
        self.reject(start, "mlf-tar-header", "the header of a member is damaged")
    }

    /// The range of a member's content.
    fn content(&mut self, header: &Header, start: usize) -> Option<Range<usize>> {
        let Ok(own) = header.entry_size() else {
            return self.reject(start, "mlf-tar-header", "the size of a member is not a number");
        };
        let is_member = !matches!(
            header.entry_type(),
            EntryType::XHeader | EntryType::XGlobalHeader | EntryType::GNULongName
        );
        let said = self.next.size.filter(|_| is_member);
        if said.is_some_and(|said| own != 0 && own != said) {
            let message = "header and extended header of a member give it different sizes";
            return self.reject(start, "mlf-tar-header", message);
        }
        let begin = start + BLOCK;
        let size = usize::try_from(said.unwrap_or(own)).ok();
        let end = size.and_then(|size| begin.checked_add(size));
        let Some(end) = end.filter(|end| *end <= self.bytes.len()) else {
            let message = "the archive ends before the content of a member does";
            return self.reject(start, "mlf-truncated", message);
        };
        Some(begin..end)
    }

    /// Reads an extended header.
    fn extend(&mut self, start: usize, content: Range<usize>) -> Option<()> {
        self.bounded(start, &content)?;
        self.next.is_there = true;
        let malformed = "an extended header is malformed";
        let bytes = self.bytes;
        let records = &bytes[content];
        // What is after an empty line would not be read, and a record without its end would.
        let mut lines = records.split_inclusive(|byte| *byte == b'\n');
        if lines.any(|line| line == b"\n" || !line.ends_with(b"\n")) {
            return self.reject(start, "mlf-tar-header", malformed);
        }
        for record in PaxExtensions::new(records) {
            let record = record.ok().and_then(|it| Some((it.key().ok()?, it.value_bytes())));
            let Some((key, value)) = record else {
                return self.reject(start, "mlf-tar-header", malformed);
            };
            match key {
                "path" => self.next.path = Some(value.to_vec()),
                "size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|size| size.parse().ok());
                    if size.is_none() {
                        return self.reject(start, "mlf-tar-header", malformed);
                    }
                    self.next.size = size;
                }
                key if key.starts_with("GNU.sparse.") => {
                    let message = "a member is sparse: its content is not stored in the archive";
                    self.report(start, "mlf-tar-kind", message);
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Reads a long name of GNU tar.
    fn long_name(&mut self, start: usize, content: Range<usize>) -> Option<()> {
        self.bounded(start, &content)?;
        let name = &self.bytes[content];
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        self.next.is_there = true;
        self.next.path = Some(name.to_vec());
        Some(())
    }

    fn bounded(&mut self, start: usize, content: &Range<usize>) -> Option<()> {
        match content.len() {
            ..=MAX_EXTENSION => Some(()),
            _ => self.reject(start, "mlf-limit", "an extended header is larger than 65536 bytes"),
        }
    }

    fn wrong_kind(&mut self, kind: EntryType, header: &Header, start: usize) {
        self.next = Extension::default();
        let path = header.path_bytes();
        let path = String::from_utf8_lossy(&path);
        let what = match kind {
            EntryType::XGlobalHeader => "a global header",
            EntryType::Link => "a hard link",
            EntryType::Symlink => "a symbolic link",
            EntryType::Char | EntryType::Block => "a device",
            EntryType::Fifo => "a pipe",
            EntryType::GNULongLink => "a long name of a link",
            EntryType::GNUSparse => "a sparse file",
            _ => "of an unknown kind",
        };
        let message = format!("member `{path}` is {what}");
        let help = "only files and folders are supported";
        let diagnostic = Diagnostic::error("mlf-tar-kind", message).help(help);
        self.sink.push(at_byte(diagnostic, start));
    }

    /// Checks the end: a second block of zeros, followed by zeros only.
    fn end(&mut self, start: usize) {
        if self.next.is_there {
            self.report(start, "mlf-tar-header", "an extended header belongs to no member");
        }
        let tail = &self.bytes[start..];
        if tail.len() < 2 * BLOCK {
            self.report(start, "mlf-truncated", "the archive ends within its end mark");
        } else if tail.len() > MAX_TAIL || tail.iter().any(|byte| *byte != 0) {
            self.report(start, "mlf-trailing", "there are bytes after the end of the archive");
        }
    }
}

/// Adds a file or folder with a valid path.
struct Member {
    /// Offset of its header.
    header: usize,
    path: String,
    is_folder: bool,
    content: Range<usize>,
}

/// Reports an error at the header of a member.
fn report(code: &'static str, message: String, header: usize, sink: &mut Sink) {
    sink.push(at_byte(Diagnostic::error(code, message), header));
}

/// A member with its path in the form `a/b`; `None` for the root, and after a diagnostic.
fn member(entry: Entry, sink: &mut Sink) -> Option<Member> {
    let Entry { header, path, is_folder, content } = entry;
    let Ok(path) = String::from_utf8(path) else {
        report("mlf-path", "the path of a member is not UTF-8".into(), header, sink);
        return None;
    };
    if !is_folder && path.ends_with('/') {
        report("mlf-path", format!("file `{path}` has the name of a folder"), header, sink);
        return None;
    }
    let path = stripped(&path).to_owned();
    if path.is_empty() && is_folder {
        return None;
    }
    if let Some(error) = path::error(&path) {
        report("mlf-path", format!("path `{path}` {error}"), header, sink);
        return None;
    }
    Some(Member { header, path, is_folder, content })
}

/// The members in the order of the archive, each folder once. Repeated files, and too many members, are
/// reported.
fn distinct(members: Vec<Member>, sink: &mut Sink) -> Vec<Member> {
    let mut seen = BTreeSet::new();
    let mut distinct: Vec<Member> = vec![];
    for member in members {
        if distinct.len() == MAX_MEMBERS {
            let message = format!("more than {MAX_MEMBERS} members");
            report("mlf-limit", message, member.header, sink);
        } else if seen.insert((member.is_folder, member.path.clone())) {
            distinct.push(member);
        } else if !member.is_folder {
            let message = format!("member `{}` occurs twice", member.path);
            report("mlf-repeated-member", message, member.header, sink);
        }
    }
    distinct
}

/// Checks that no file is also a folder.
fn check_folders(members: &[Member], sink: &mut Sink) {
    let of_kind = |is_folder: bool| -> BTreeMap<&str, usize> {
        let members = members.iter().filter(|member| member.is_folder == is_folder);
        index(members.map(|member| (member.path.as_str(), member.header)))
    };
    let (files, listed) = (of_kind(false), of_kind(true));
    for (path, header) in files.iter() {
        let is_file = |folder: &&str| files.contains_key(*folder);
        let is_folder = listed.contains_key(*path);
        if let Some(both) = folders(path).find(is_file).or(is_folder.then_some(path)) {
            let message = format!("`{both}` is a file and a folder");
            report("mlf-path", message, *header, sink);
        }
    }
}
