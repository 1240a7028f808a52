//! Objects and shared libraries in ELF, whose symbols are read and which are loaded.

use object::{BinaryFormat, File, Object, ObjectSegment};

/// An ELF file. Its tables, and the segments that a loader maps, are in the bytes.
///
/// # Errors
/// The first defect, in one line.
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
