//! Mutations of the tar file.

use bytes::Bytes;
use irc_mlf::Version;
use tar::{EntryType, Header};

use super::{members, packed};

const BLOCK: usize = 512;

fn sound() -> Vec<u8> {
    packed(members(Version::V5)).to_vec()
}

/// Adds a member with a header before all others.
fn before(kind: EntryType, path: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    let ustar = header.as_ustar_mut().expect("made as such");
    ustar.name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes.extend(sound());
    bytes
}

fn pax(pair: &str) -> Vec<u8> {
    let length = pair.len() + 4;
    before(EntryType::XHeader, "x", format!("{length} {pair}\n").as_bytes())
}

fn changed(at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = sound();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

/// Offset of the header of the first file.
fn first_file() -> usize {
    let bytes = sound();
    let mut headers = (0..bytes.len()).step_by(BLOCK);
    headers.find(|at| bytes[at + 156] == b'0').expect("a file")
}

/// Changes the size in the first header of a file, with a correct checksum.
fn resized(size: u64) -> Vec<u8> {
    let (mut bytes, at) = (sound(), first_file());
    let mut header = Header::from_byte_slice(&bytes[at..at + BLOCK]).clone();
    header.set_size(size);
    header.set_cksum();
    bytes[at..at + BLOCK].copy_from_slice(header.as_bytes());
    bytes
}

/// All mutations of the file: name, expected code, file.
pub fn all() -> Vec<(&'static str, &'static str, Bytes)> {
    let file = |path: &str| before(EntryType::Regular, path, b"x");
    let kind = |kind| before(kind, "x", b"");
    let end = sound().len() - sound().iter().rev().take_while(|byte| **byte == 0).count();
    let end = end.next_multiple_of(BLOCK);
    let rows: Vec<(&str, &str, Vec<u8>)> = vec![
        ("no tar", "mlf-not-tar", vec![b'x'; 2000]),
        ("gzip", "mlf-not-tar", [&[0x1f, 0x8b][..], &[0; 2000]].concat()),
        ("empty", "mlf-truncated", vec![]),
        ("cut in a header", "mlf-truncated", sound()[..700].to_vec()),
        ("cut in a member", "mlf-truncated", sound()[..first_file() + BLOCK + 9].to_vec()),
        ("no end", "mlf-truncated", sound()[..end].to_vec()),
        ("half an end", "mlf-truncated", sound()[..end + BLOCK].to_vec()),
        ("more after the end", "mlf-trailing", [sound(), vec![1]].concat()),
        ("checksum", "mlf-tar-header", changed(150, b"7")),
        ("changed path", "mlf-tar-header", changed(first_file() + 5, b"x")),
        ("size beyond the file", "mlf-truncated", resized(1 << 40)),
        ("huge size", "mlf-truncated", resized(u64::MAX >> 1)),
        ("absolute path", "mlf-path", file("/etc/passwd")),
        ("path out of the archive", "mlf-path", file("./a/../../b")),
        ("path with a backslash", "mlf-path", file("a\\..\\b")),
        ("file named like a folder", "mlf-path", file("a/")),
        ("file and folder", "mlf-path", file("src")),
        ("file over a file", "mlf-path", file("metadata.json/x")),
        ("path of no text", "mlf-path", pax("path=\u{0}")),
        ("member twice", "mlf-repeated-member", file("./metadata.json")),
        ("hard link", "mlf-tar-kind", kind(EntryType::Link)),
        ("symbolic link", "mlf-tar-kind", kind(EntryType::Symlink)),
        ("device", "mlf-tar-kind", kind(EntryType::Char)),
        ("pipe", "mlf-tar-kind", kind(EntryType::Fifo)),
        ("sparse file", "mlf-tar-kind", kind(EntryType::GNUSparse)),
        ("global header", "mlf-tar-kind", kind(EntryType::XGlobalHeader)),
        ("sparse file of pax", "mlf-tar-kind", pax("GNU.sparse.realsize=99999")),
        ("two sizes", "mlf-tar-header", {
            let extended = before(EntryType::XHeader, "x", b"9 size=3\n");
            let header = &file("y")[..2 * BLOCK];
            [&extended[..2 * BLOCK], header, &sound()].concat()
        }),
        ("malformed pax", "mlf-tar-header", before(EntryType::XHeader, "x", b"no length\n")),
        ("empty line in pax", "mlf-tar-header", before(EntryType::XHeader, "x", b"\n9 size=3\n")),
        ("pax without an end", "mlf-tar-header", before(EntryType::XHeader, "x", b"9 path=a")),
        ("wrong length in pax", "mlf-tar-header", before(EntryType::XHeader, "x", b"8 path=a\n")),
        ("pax of nothing", "mlf-tar-header", {
            let extended = before(EntryType::XHeader, "x", b"9 size=3\n");
            [&extended[..2 * BLOCK], &[0; 2 * BLOCK]].concat()
        }),
        ("huge pax", "mlf-limit", before(EntryType::XHeader, "x", &[b'x'; 70_000])),
        ("huge name", "mlf-limit", before(EntryType::GNULongName, "x", &[b'x'; 70_000])),
    ];
    rows.into_iter().map(|(name, code, bytes)| (name, code, bytes.into())).collect()
}
