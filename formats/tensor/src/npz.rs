//! `.npz` files: named arrays in a zip archive.

use crate::{Tensor, npy};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::Path;
use thiserror::Error;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// What is wrong with an `.npz` file.
#[derive(Debug, Error)]
pub enum NpzError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path as given.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The archive as a whole is not readable.
    #[error("not a readable .npz (zip) archive: {0}")]
    Archive(String),
    /// One array is wrong.
    #[error("array `{name}`: {message}")]
    Array {
        /// The key of the array.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// Writing failed.
    #[error("cannot write the .npz archive: {0}")]
    Write(String),
}

/// Reads every array of the `.npz` file at `path`; see [`read_npz`].
///
/// # Errors
/// [`NpzError::Open`], or as [`read_npz`].
pub fn read_npz_file(path: &Path) -> Result<BTreeMap<String, Tensor>, NpzError> {
    let open = |source| NpzError::Open { path: path.display().to_string(), source };
    read_npz(BufReader::new(File::open(path).map_err(open)?))
}

/// Reads every array of an `.npz` archive, stored or deflated, in C or Fortran order, by key.
///
/// Data of `bf16` arrives as `u16`: [`Tensor::reinterpret`] gives it its type back. Memory grows
/// with the data really there, whatever the headers claim.
///
/// # Errors
/// [`NpzError::Archive`] or [`NpzError::Array`]: the first array that is wrong, by name.
pub fn read_npz(source: impl Read + Seek) -> Result<BTreeMap<String, Tensor>, NpzError> {
    let archive = |error: zip::result::ZipError| NpzError::Archive(error.to_string());
    let mut zip = ZipArchive::new(source).map_err(archive)?;
    let mut arrays = BTreeMap::new();
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(archive)?;
        let name = entry.name().map_err(archive)?.trim_end_matches(".npy").to_owned();
        let bad = |message| NpzError::Array { name: name.clone(), message };
        let tensor = npy::read(&mut entry).map_err(bad)?;
        if arrays.insert(name.clone(), tensor).is_some() {
            return Err(NpzError::Array { name, message: "occurs twice in the archive".into() });
        }
    }
    Ok(arrays)
}

/// Writes `arrays` as an uncompressed `.npz` archive, `bf16` as its bits in `uint16`, small types as
/// theirs in `uint8` and `int8`.
///
/// The bytes depend on the arrays alone: keys in order, every date 1980-01-01.
///
/// # Errors
/// [`NpzError::Write`].
pub fn write_npz(
    sink: impl Write + Seek,
    arrays: &BTreeMap<String, Tensor>,
) -> Result<(), NpzError> {
    let mut zip = ZipWriter::new(sink);
    for (name, tensor) in arrays {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .large_file(true);
        let write = |error: String| NpzError::Write(format!("array `{name}`: {error}"));
        zip.start_file(format!("{name}.npy"), options).map_err(|e| write(e.to_string()))?;
        npy::write(&mut zip, tensor).map_err(|e| write(e.to_string()))?;
    }
    zip.finish().map_err(|error| NpzError::Write(error.to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, TensorType};
    use std::io::Cursor;

    fn sample() -> BTreeMap<String, Tensor> {
        let random = |dtype: DType| {
            let ty = TensorType::new(dtype, [3, 1, 5]);
            (dtype.to_string(), Tensor::random(ty, 1).expect("a tensor"))
        };
        DType::ALL.into_iter().map(random).collect()
    }

    fn written(arrays: &BTreeMap<String, Tensor>) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        write_npz(&mut bytes, arrays).expect("room");
        bytes.into_inner()
    }

    #[test]
    fn every_type_reads_back_and_bytes_repeat() {
        let arrays = sample();
        let bytes = written(&arrays);
        assert_eq!(bytes, written(&arrays));
        let mut read = read_npz(Cursor::new(&bytes)).expect("our own file");
        for dtype in DType::ALL.into_iter().filter(|ty| *ty == DType::BF16 || ty.is_small()) {
            let bits = read.remove(dtype.name()).expect("the array");
            assert_eq!(Some(bits.dtype()), DType::from_npy_descr(dtype.npy_descr()));
            read.insert(dtype.to_string(), bits.reinterpret(dtype).expect("same width"));
        }
        assert_eq!(read, arrays);
    }

    #[test]
    fn damage_is_an_error() {
        let arrays = BTreeMap::from([("x".to_owned(), sample().remove("f32").expect("f32"))]);
        let bytes = written(&arrays);
        for length in 0..bytes.len() {
            assert!(read_npz(Cursor::new(&bytes[..length])).is_err(), "cut at {length}");
        }
        for position in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[position] ^= 0x41;
            // A flip may be harmless (a date, say): what matters is that it never panics.
            let _ = read_npz(Cursor::new(flipped));
        }
        let at = bytes.windows(6).position(|window| window == b"\x93NUMPY").expect("a header");
        let mut broken = bytes;
        broken[at] = 0;
        let error = read_npz(Cursor::new(broken)).expect_err("no magic").to_string();
        assert!(error.starts_with("array `x`: not a .npy file"), "{error}");
    }
}
