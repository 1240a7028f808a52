//! `.npz` files: named arrays in a zip archive.

use crate::{Tensor, TensorType, npy};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::Path;
use thiserror::Error;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// An error in an `.npz` file.
#[derive(Debug, Error)]
pub enum NpzError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path as given.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The archive as a whole is invalid.
    #[error("not a readable .npz (zip) archive: {0}")]
    Archive(String),
    /// An array is invalid.
    #[error("array `{name}`: {message}")]
    Array {
        /// The key of the array.
        name: String,
        /// The message.
        message: String,
    },
    /// Writing failed.
    #[error("cannot write the .npz archive: {0}")]
    Write(String),
}

/// An `.npz` archive whose headers have been read: the names and types of its arrays, stored or
/// deflated, in C or Fortran order. Only [`Npz::read`] inflates data, so that a caller can reject an
/// array by name and type before memory is allocated.
pub struct Npz<R> {
    zip: ZipArchive<R>,
    arrays: BTreeMap<String, Array>,
}

struct Array {
    /// Its index in the archive.
    index: usize,
    ty: TensorType,
}

impl Npz<BufReader<File>> {
    /// Opens the `.npz` file at `path`; see [`Npz::new`].
    ///
    /// # Errors
    /// [`NpzError::Open`], or as [`Npz::new`].
    pub fn open(path: &Path) -> Result<Self, NpzError> {
        let open = |source| NpzError::Open { path: path.display().to_string(), source };
        Self::new(BufReader::new(File::open(path).map_err(open)?))
    }
}

impl<R: Read + Seek> Npz<R> {
    /// Reads the headers of every array.
    ///
    /// # Errors
    /// [`NpzError::Archive`] or [`NpzError::Array`]: the first invalid array, in the archive's order.
    pub fn new(source: R) -> Result<Self, NpzError> {
        let archive = |error: zip::result::ZipError| NpzError::Archive(error.to_string());
        let mut zip = ZipArchive::new(source).map_err(archive)?;
        let mut arrays = BTreeMap::new();
        for index in 0..zip.len() {
            let mut entry = zip.by_index(index).map_err(archive)?;
            let name = entry.name().map_err(archive)?.trim_end_matches(".npy").to_owned();
            let bad = |message| NpzError::Array { name: name.clone(), message };
            let size = entry.size();
            let ty = npy::read_type(&mut entry, size).map_err(bad)?;
            if arrays.insert(name.clone(), Array { index, ty }).is_some() {
                return Err(NpzError::Array {
                    name,
                    message: "occurs twice in the archive".into(),
                });
            }
        }
        Ok(Self { zip, arrays })
    }

    /// The names of the arrays, in order, and their types. Data of `bf16` have the type `u16`.
    pub fn types(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.arrays.iter().map(|(name, array)| (name.as_str(), &array.ty))
    }

    /// Removes the arrays for which a predicate is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &TensorType) -> bool) {
        self.arrays.retain(|name, array| keep(name, &array.ty));
    }

    /// Reads one array; `None` if there is none with that name. Data of `bf16` are returned as `u16`:
    /// [`Tensor::reinterpret`] converts them back.
    ///
    /// # Errors
    /// [`NpzError::Archive`], or [`NpzError::Array`] if the data do not match the header or do not fit
    /// in memory.
    pub fn read(&mut self, name: &str) -> Result<Option<Tensor>, NpzError> {
        let Some(array) = self.arrays.get(name) else { return Ok(None) };
        let entry = self.zip.by_index(array.index);
        let mut entry = entry.map_err(|error| NpzError::Archive(error.to_string()))?;
        let bad = |message| NpzError::Array { name: name.to_owned(), message };
        npy::read(&mut entry).map(Some).map_err(bad)
    }

    /// Reads every array.
    ///
    /// # Errors
    /// As [`Npz::read`], for the first array by name.
    pub fn read_all(mut self) -> Result<BTreeMap<String, Tensor>, NpzError> {
        let names: Vec<String> = self.arrays.keys().cloned().collect();
        let mut tensors = BTreeMap::new();
        for name in names {
            if let Some(tensor) = self.read(&name)? {
                tensors.insert(name, tensor);
            }
        }
        Ok(tensors)
    }
}

/// Reads every array of the `.npz` file at `path`. Use [`Npz`] to inspect names and types before reading
/// data.
///
/// # Errors
/// As [`Npz::open`] and [`Npz::read`].
pub fn read_npz_file(path: &Path) -> Result<BTreeMap<String, Tensor>, NpzError> {
    Npz::open(path)?.read_all()
}

/// As [`read_npz_file`], for an archive from any source.
///
/// # Errors
/// As [`Npz::new`] and [`Npz::read`].
pub fn read_npz(source: impl Read + Seek) -> Result<BTreeMap<String, Tensor>, NpzError> {
    Npz::new(source)?.read_all()
}

/// Writes `arrays` as an uncompressed `.npz` archive, `bf16` as its bits in `uint16`, small types as
/// their bits in `uint8` and `int8`.
///
/// The bytes depend only on the arrays: keys in order, every date 1980-01-01.
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
            // A flip may be harmless (in a date, for example): it must not panic.
            let _ = read_npz(Cursor::new(flipped));
        }
        let at = bytes.windows(6).position(|window| window == b"\x93NUMPY").expect("a header");
        let mut broken = bytes;
        broken[at] = 0;
        let error = read_npz(Cursor::new(broken)).expect_err("no magic").to_string();
        assert!(error.starts_with("array `x`: not a .npy file"), "{error}");
    }
    #[test]
    fn names_and_types_are_there_before_any_data_are_read() {
        let mut file = Cursor::new(written(&sample()));
        let mut npz = Npz::new(&mut file).expect("our own file");
        let types: Vec<_> = npz.types().map(|(name, ty)| format!("{name} {ty}")).collect();
        assert!(types.contains(&"f32 f32[3,1,5]".to_owned()), "{types:?}");
        assert!(npz.read("nothing").expect("no error").is_none());
        npz.retain(|name, _| name == "i8");
        assert_eq!(npz.read_all().expect("its data").keys().collect::<Vec<_>>(), ["i8"]);
    }

    /// A header that states more data than the archive has.
    #[test]
    fn a_size_that_is_not_the_headers_is_rejected_before_data_are_inflated() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }\n";
        let length = (header.len() as u16).to_le_bytes();
        let array = [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), &[0; 8]].concat();
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("x.npy", SimpleFileOptions::default()).expect("room");
        zip.write_all(&array).expect("room");
        let error = Npz::new(zip.finish().expect("room")).err().expect("rejected").to_string();
        assert!(error.contains("4398046511104 bytes, found only 8"), "{error}");
    }
}
