//! Headers of members: the fields of POSIX (`ustar`) and GNU tar, and the records of extended headers.

use std::str;

use super::BLOCK;

/// What a header is of, by its type flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// An extended header of the next member.
    Extended,
    /// The name of the next member, longer than a header has room for.
    LongName,
    /// An extended header of all members after it.
    Global,
    /// Anything else, in words.
    Other(&'static str),
}

/// A block that is before the content of a member.
#[derive(Clone, Copy)]
pub(super) struct Header<'b>(pub &'b [u8; BLOCK]);

impl<'b> Header<'b> {
    /// Whether it is marked as one that POSIX and GNU tar write.
    pub fn is_marked(self) -> bool {
        self.0[257..].starts_with(b"ustar")
    }

    /// Whether the checksum is that of the block, in which it counts as spaces itself.
    pub fn is_sound(self) -> bool {
        let sum = |at: usize, byte: &u8| match at {
            148..156 => u64::from(b' '),
            _ => u64::from(*byte),
        };
        let sum: u64 = self.0.iter().enumerate().map(|(at, byte)| sum(at, byte)).sum();
        octal(&self.0[148..156]) == Some(sum)
    }

    /// What it is of.
    pub fn kind(self) -> Kind {
        match self.0[156] {
            0 | b'0' => Kind::File,
            b'5' => Kind::Folder,
            b'x' => Kind::Extended,
            b'L' => Kind::LongName,
            b'g' => Kind::Global,
            b'1' => Kind::Other("a hard link"),
            b'2' => Kind::Other("a symbolic link"),
            b'3' | b'4' => Kind::Other("a device"),
            b'6' => Kind::Other("a pipe"),
            b'K' => Kind::Other("a long name of a link"),
            b'S' => Kind::Other("a sparse file"),
            _ => Kind::Other("of an unknown kind"),
        }
    }

    /// Bytes of the content; `None` when the field is not a number. GNU tar writes large ones in binary,
    /// with the highest bit set.
    pub fn size(self) -> Option<u64> {
        let field = &self.0[124..136];
        if field[0] < 0x80 {
            return octal(field);
        }
        Some(field[4..].iter().fold(0, |size, byte| size << 8 | u64::from(*byte)))
    }

    /// The path as written.
    pub fn path(self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        // GNU tar has other fields where POSIX has what is before the name.
        let is_posix = self.0[257..].starts_with(b"ustar\x0000");
        let prefix = if is_posix { text(&self.0[345..500]) } else { &[] };
        match prefix {
            [] => name.to_vec(),
            _ => [prefix, b"/", name].concat(),
        }
    }
}

/// A field up to its first zero.
fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// A number in octal digits.
fn octal(field: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(text(field)).ok()?.trim(), 8).ok()
}

/// The first record of an extended header, as key and value, and the records after it:
/// `LENGTH KEY=VALUE\n`, of which the length counts the whole record.
pub(super) fn record(records: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length: usize = str::from_utf8(&records[..space]).ok()?.parse().ok()?;
    let (record, rest) = records.split_at_checked(length)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((str::from_utf8(&record[..equals]).ok()?, &record[equals + 1..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::EntryType;

    #[test]
    fn fields_are_those_that_are_written() {
        for (size, prefix) in [(0, "folder"), (0o777, ""), (1 << 40, "a/b")] {
            let mut header = tar::Header::new_ustar();
            header.set_size(size);
            header.set_entry_type(EntryType::Directory);
            header.as_mut_bytes()[345..345 + prefix.len()].copy_from_slice(prefix.as_bytes());
            header.as_mut_bytes()[..4].copy_from_slice(b"name");
            header.set_cksum();
            let read = Header(header.as_bytes());
            assert!(read.is_marked() && read.is_sound());
            assert_eq!((read.size(), read.kind()), (Some(size), Kind::Folder));
            assert_eq!(read.path(), header.path_bytes().as_ref());
        }
    }

    #[test]
    fn records_end_where_they_say() {
        let records = b"12 path=a\nb\n9 size=7\n";
        let (key, value, rest) = record(records).expect("a record");
        assert_eq!((key, value), ("path", &b"a\nb"[..]));
        assert_eq!(record(rest), Some(("size", &b"7"[..], &b""[..])));
        for wrong in
            ["", "8 path=a\n", "11 path=a\n", "9 path a\n", "x path=a\n", "0 a=b\n", "1 a=b\n"]
        {
            assert_eq!(record(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
