//! Checks of a file before the loader may map it: a truncated file would be mapped all the same,
//! and its missing pages kill the process.
use irc_mlf::elf;
use memmap2::Mmap;
use std::{fs::File, io, path::Path};

/// Whether the bytes are an ELF file that is not truncated.
///
/// # Errors
/// What is wrong with them.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    elf::parse(bytes).map(drop)
}

/// As [`check`], for a file; the outer error is that it cannot be read.
pub fn check_file(path: &Path) -> io::Result<Result<(), String>> {
    // Safety: what is looked at is a few numbers, each wherever it may be. Who changes the file meanwhile
    // changes what is loaded after as well.
    let file = unsafe { Mmap::map(&File::open(path)?)? };
    Ok(check(&file))
}
