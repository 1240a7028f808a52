//! Checks of a file before the loader may map it: a truncated file would be mapped all the same,
//! and its missing pages kill the process.
use crate::file::MappedFile;
use irc_mlf::elf::Elf;
use std::{io, path::Path};

/// Whether the bytes are a whole ELF file.
///
/// # Errors
/// What is wrong with them.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    let file = Elf::parse(bytes)?;
    if file.is_whole() { Ok(()) } else { Err("the file is cut short".into()) }
}

/// As [`check`], for a file; the outer error is that it cannot be read.
pub fn check_file(path: &Path) -> io::Result<Result<(), String>> {
    // Safety: what is looked at is a few numbers, each wherever it may be. Who changes the file meanwhile
    // changes what is loaded after as well.
    let file = unsafe { MappedFile::open(path)? };
    Ok(check(&file))
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
