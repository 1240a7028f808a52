//! Checks of a file before the loader may map it: a truncated file would be mapped nonetheless, and
//! accessing its missing pages would kill the process.
use irc_mlf::elf;
use memmap2::Mmap;
use std::{fs::File, io, path::Path};

/// Whether the bytes are an ELF file that is not truncated.
///
/// # Errors
/// If the file is truncated or is not an ELF file.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    elf::parse(bytes).map(drop)
}

/// Like [`check`], for a file; the outer error means that it cannot be read.
pub fn check_file(path: &Path) -> io::Result<Result<(), String>> {
    // Safety: only a few numbers are read, at any position. If the file is modified concurrently, the
    // library loaded afterwards is affected in the same way.
    let file = unsafe { Mmap::map(&File::open(path)?)? };
    Ok(check(&file))
}
