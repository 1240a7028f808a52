//! Writes archives deterministically: the same members give the same bytes on any machine.

use std::collections::BTreeSet;
use std::io::{self, Write};

use tar::{EntryType, Header};

use super::path::folders;
use super::{Archive, BLOCK, RECORD};

/// Maximum lengths of a name and of its prefix in a POSIX header, in bytes.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// Maximum size of a content in a POSIX header, in bytes: eleven octal digits.
const LARGEST: u64 = (1 << 33) - 1;

impl Archive {
    /// Writes the archive: plain POSIX headers, paths after `./`, folders before their contents, all
    /// owned by `root` (0), all with one time, in seconds since 1970.
    ///
    /// # Errors
    /// Those of `sink`; a path or a size that POSIX headers cannot represent.
    pub fn write(&self, time: u64, sink: &mut impl Write) -> io::Result<()> {
        let mut written = CountingWriter { sink, bytes: 0 };
        written.header("./", EntryType::Directory, 0, time)?;
        let mut seen = BTreeSet::new();
        for (path, content) in self.members().iter() {
            for folder in folders(path).filter(|folder| seen.insert(folder.to_string())) {
                written.header(&format!("./{folder}/"), EntryType::Directory, 0, time)?;
            }
            let size = content.len() as u64;
            written.header(&format!("./{path}"), EntryType::Regular, size, time)?;
            written.put(content)?;
            written.pad(BLOCK)?;
        }
        written.put(&[0; 2 * BLOCK])?;
        written.pad(RECORD)
    }
}

struct CountingWriter<W> {
    sink: W,
    bytes: usize,
}

impl<W: Write> CountingWriter<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len();
        self.sink.write_all(bytes)
    }

    fn pad(&mut self, to: usize) -> io::Result<()> {
        let missing = self.bytes.next_multiple_of(to) - self.bytes;
        self.put(&vec![0; missing])
    }

    fn header(&mut self, path: &str, kind: EntryType, size: u64, time: u64) -> io::Result<()> {
        let reject = |what: &str| Err(io::Error::other(format!("`{path}`: {what} of tar")));
        let Some((prefix, name)) = split(path) else {
            return reject("the path does not fit into a POSIX header");
        };
        if size > LARGEST || time > LARGEST {
            return reject("the size or time does not fit into a POSIX header");
        }
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(if kind.is_dir() { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_size(size);
        header.set_mtime(time);
        if let Some(ustar) = header.as_ustar_mut() {
            ustar.prefix[..prefix.len()].copy_from_slice(prefix.as_bytes());
            ustar.name[..name.len()].copy_from_slice(name.as_bytes());
        }
        header.set_device_major(0)?;
        header.set_device_minor(0)?;
        header.set_cksum();
        self.put(header.as_bytes())
    }
}

/// Splits a path into two parts that fit into a header, with the shortest possible prefix.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME {
        return Some(("", path));
    }
    let splits = path.match_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
    let fits = |(prefix, name): &(&str, &str)| {
        prefix.len() <= PREFIX && name.len() <= NAME && !name.is_empty()
    };
    splits.into_iter().find(fits)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use irc_diag::Sink;

    use super::*;

    fn archive(paths: &[&str]) -> Archive {
        let member = |path: &&str| (path.to_string(), Bytes::from(path.repeat(100)));
        Archive::new("x", paths.iter().map(member).collect::<BTreeMap<_, _>>())
    }

    fn bytes(archive: &Archive) -> Bytes {
        let mut bytes = vec![];
        archive.write(7, &mut bytes).expect("memory");
        bytes.into()
    }

    #[test]
    fn what_is_written_reads_back() {
        let long = format!("{}/{}/{}", "p".repeat(60), "q".repeat(60), "n".repeat(90));
        let archive = archive(&["a", "b/c/d", "b/e", &long]);
        let written = bytes(&archive);
        assert_eq!(written.len() % RECORD, 0);
        let mut sink = Sink::new();
        let read = Archive::read("x", &written, &mut sink);
        assert_eq!(sink.diagnostics(), []);
        assert_eq!(read, Some(archive));
    }

    #[test]
    fn contents_are_aligned_within_the_file() {
        let written = bytes(&archive(&["a", "b/c"]));
        let read = Archive::read("x", &written, &mut Sink::new()).expect("an archive");
        for content in read.members().values() {
            let offset = content.as_ptr().addr() - written.as_ptr().addr();
            assert_eq!(offset % BLOCK, 0);
        }
    }

    #[test]
    fn paths_beyond_a_header_are_rejected() {
        let long = "n".repeat(150);
        assert!(archive(&[&long]).write(0, &mut vec![]).is_err());
    }
}
