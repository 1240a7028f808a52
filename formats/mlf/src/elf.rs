//! ELF files, of 32 and 64 bits and either byte order: machine and symbols.
//!
//! Files are untrusted: offsets and sizes are checked against the bytes, and a table that exceeds the
//! file is absent. Names are those of the System V ABI, chapters 4 and 5.

use object::{BinaryFormat, File, Object, ObjectSegment};

/// An ELF file.
pub fn parse(bytes: &[u8]) -> Result<File<'_>, String> {
    let file = File::parse(bytes).map_err(|error| error.to_string())?;
    if file.format() != BinaryFormat::Elf {
        return Err("not an ELF file".into());
    }
    match file.segments().any(|segment| segment.data().is_err()) {
        true => Err("a segment extends beyond the end of the file".into()),
        false => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("a path")).expect("a file")
    }

    #[test]
    fn truncated_files_are_rejected() {
        let whole = own_program();
        assert!(parse(&whole).is_ok());
        for part in 0..16 {
            assert!(parse(&whole[..whole.len() / 16 * part]).is_err(), "{part} of 16");
        }
    }

    #[test]
    fn tables_of_any_size_are_rejected() {
        // The header has no count of sections: the first section has it, whatever it is.
        let mut bytes = vec![0; 128];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[40] = 64;
        bytes[64 + 32..64 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(parse(&bytes).is_err());
    }

    #[test]
    fn files_need_no_alignment() {
        let bytes = [&[0], &*own_program()].concat();
        assert!(parse(&bytes[1..]).is_ok());
    }
}
