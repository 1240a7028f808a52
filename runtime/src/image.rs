//! What must hold of a file before the loader may map it: a file cut short is mapped all the same,
//! and its missing pages kill the process.
use object::{
    Endianness,
    elf::FileHeader64,
    read::elf::{FileHeader, ProgramHeader},
};

/// Whether the bytes are a whole ELF file for a 64-bit machine.
///
/// # Errors
/// What is wrong with them.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    let not_elf = |_| "not a shared library".to_owned();
    let cut_short = |_| "the file is cut short".to_owned();
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(not_elf)?;
    let endian = header.endian().map_err(not_elf)?;
    for segment in header.program_headers(endian, bytes).map_err(cut_short)? {
        segment.data(endian, bytes).map_err(|()| "the file is cut short".to_owned())?;
    }
    header.sections(endian, bytes).map_err(cut_short)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(check(&whole), Ok(()));
        for part in 0..16 {
            assert!(check(&whole[..whole.len() / 16 * part]).is_err(), "{part} of 16");
        }
    }
}
