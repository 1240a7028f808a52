//! The `.npy` format: one array (NEP 1, `numpy.lib.format`).

use crate::{
    DType, Tensor, TensorType,
    npy_strings::{self, Text},
};
use py_literal::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Maximum length of a header. Ours take 128 bytes; only structured types need more than this.
const MAX_HEADER: usize = 4096;

/// Maximum nesting of brackets in a header: the shape inside the dictionary.
const MAX_NESTING: usize = 2;

/// Reads the type of an array of `size` bytes including its header, without reading data.
///
/// # Errors
/// An invalid header, or one that does not match the size; without the name of the array.
pub(crate) fn read_type(source: &mut impl Read, size: u64) -> Result<TensorType, String> {
    let mut counted = Counted { source, bytes: 0 };
    let header = Header::parse(&read_header(&mut counted)?)?;
    let expected = header.byte_size()?;
    let ty = TensorType::new(header.stored.dtype(), header.shape);
    expect_size(&ty, expected, size.saturating_sub(counted.bytes))?;
    Ok(ty)
}

fn expect_size(ty: &TensorType, expected: u64, found: u64) -> Result<(), String> {
    match found.cmp(&expected) {
        Ordering::Equal => Ok(()),
        Ordering::Less => {
            Err(format!("the header states {ty}, {expected} bytes, found only {found}"))
        }
        Ordering::Greater => {
            Err(format!("the header states {ty}, {expected} bytes, but more data follows"))
        }
    }
}

/// Counts the bytes read.
struct Counted<'s, R> {
    source: &'s mut R,
    bytes: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Reads one array. Memory grows with the data in the file, not with the size in the header.
///
/// # Errors
/// The message, without the name of the array.
pub(crate) fn read(source: &mut impl Read) -> Result<Tensor, String> {
    let header = Header::parse(&read_header(source)?)?;
    let size = header.byte_size()?;
    let ty = TensorType::new(header.stored.dtype(), header.shape);
    let mut bytes = Vec::new();
    source
        .take(size.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    expect_size(&ty, size, bytes.len() as u64)?;
    if let Stored::Strings(text) = header.stored {
        let handles = text.read(&ty, &bytes)?;
        return Ok(match header.fortran_order {
            true => {
                let columns = handles.bytes().to_vec();
                to_row_major(handles, &columns)
            }
            false => handles,
        });
    }
    let tensor = Tensor::from_bytes(ty, &bytes).map_err(|error| error.to_string())?;
    Ok(if header.fortran_order { to_row_major(tensor, &bytes) } else { tensor })
}

/// Writes one array, version 1.0, in C order, as `numpy.save` does.
pub(crate) fn write(sink: &mut impl Write, tensor: &Tensor) -> io::Result<()> {
    let strings = npy_strings::Written::of(tensor)?;
    let descr =
        strings.as_ref().map_or_else(|| tensor.dtype().npy_descr().to_owned(), |it| it.descr());
    let dims: Vec<_> = tensor.shape().iter().map(i64::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let dict = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        dims.join(", ")
    );
    // The data starts at a multiple of 64 bytes; the header ends in a newline.
    let padded = (MAGIC.len() + 4 + dict.len() + 1).next_multiple_of(64) - MAGIC.len() - 4;
    let length = u16::try_from(padded).map_err(|_| io::Error::other("the shape is too long"))?;
    sink.write_all(MAGIC)?;
    sink.write_all(&[1, 0])?;
    sink.write_all(&length.to_le_bytes())?;
    writeln!(sink, "{dict:<width$}", width = padded - 1)?;
    match strings {
        Some(strings) => strings.write(sink),
        None => sink.write_all(tensor.bytes()),
    }
}

/// How a file stores elements.
enum Stored {
    /// As in memory.
    Numbers(DType),
    /// As characters.
    Strings(Text),
}

impl Stored {
    const fn dtype(&self) -> DType {
        match self {
            Self::Numbers(dtype) => *dtype,
            Self::Strings(_) => DType::String,
        }
    }
}

struct Header {
    stored: Stored,
    fortran_order: bool,
    shape: Vec<i64>,
}

impl Header {
    fn parse(text: &str) -> Result<Self, String> {
        check_nesting(text)?;
        let dict: Value = text.trim_end().parse().map_err(|_| "the header is not a dictionary")?;
        let entries = dict.as_dict().ok_or("the header is not a dictionary")?;
        let find = |name: &str| {
            let found = entries.iter().find(|(key, _)| key.as_string().is_some_and(|k| k == name));
            found.map(|(_, value)| value).ok_or(format!("the header has no `{name}`"))
        };
        let fortran = find("fortran_order")?.as_boolean();
        Ok(Self {
            stored: parse_descr(find("descr")?)?,
            fortran_order: fortran.ok_or("`fortran_order` is not a bool")?,
            shape: parse_shape(find("shape")?)?,
        })
    }

    /// Number of bytes of the data in the file.
    fn byte_size(&self) -> Result<u64, String> {
        let ty = TensorType::new(self.stored.dtype(), self.shape.clone());
        let size = ty.byte_size().map_err(|error| error.to_string())?;
        let Stored::Strings(text) = &self.stored else { return Ok(size as u64) };
        let count = (size / DType::String.size()) as u64;
        let bytes = count.checked_mul(text.width() as u64);
        bytes.ok_or_else(|| format!("the size of {ty} in bytes overflows"))
    }
}

fn parse_descr(value: &Value) -> Result<Stored, String> {
    let known = || {
        let all: BTreeSet<&str> = DType::ALL.map(DType::npy_descr).into_iter().collect();
        all.into_iter().collect::<Vec<_>>().join(" ")
    };
    let descr = value.as_string().ok_or("structured arrays are not supported")?;
    if descr == "|O" {
        return Err(
            "arrays of Python objects are not supported: convert it, as in x.astype(str)".into()
        );
    }
    // What numpy writes of types that it does not know, such as those of ml_dtypes: a number of bytes.
    if let Some(size @ ("1" | "2")) = descr.get(1..).and_then(|kind| kind.strip_prefix('V')) {
        let (bits, of) = if size == "2" { ("uint16", "bf16") } else { ("uint8", "8-bit floats") };
        return Err(format!(
            "element type `{descr}`, which numpy writes for types of other packages, does not say what the numbers \
             are: save the bits of {of}, as in x.view('{bits}')"
        ));
    }
    let numbers = DType::from_npy_descr(descr).map(Stored::Numbers);
    numbers
        .or_else(|| Text::of(descr).map(Stored::Strings))
        .ok_or_else(|| format!("unsupported element type `{descr}`: expected one of {}", known()))
}

fn parse_shape(value: &Value) -> Result<Vec<i64>, String> {
    let dims = value.as_tuple().ok_or("`shape` is not a tuple")?;
    let dim = |value: &Value| value.as_integer().and_then(|dim| i64::try_from(dim).ok());
    dims.iter()
        .map(|value| dim(value).filter(|&dim| dim >= 0))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("`shape` is {value}: expected integers of at least 0"))
}

/// The literal parser is recursive, so deeply nested brackets would exhaust the stack.
fn check_nesting(text: &str) -> Result<(), String> {
    let mut depth = 0usize;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err("structured arrays are not supported".into());
        }
    }
    Ok(())
}

fn read_header(source: &mut impl Read) -> Result<String, String> {
    let mut start = [0; 8];
    source.read_exact(&mut start).map_err(|_| "too short for a .npy file")?;
    if &start[..6] != MAGIC {
        return Err("not a .npy file: it does not start with \\x93NUMPY".into());
    }
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => return Err(format!("unsupported .npy version {version}")),
    };
    let mut length = [0; 4];
    let ends = "the file ends inside the header";
    source.read_exact(&mut length[..length_bytes]).map_err(|_| ends)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(format!("the header has {length} bytes: expected at most {MAX_HEADER}"));
    }
    let mut text = vec![0; length];
    source.read_exact(&mut text).map_err(|_| ends)?;
    String::from_utf8(text).map_err(|_| "the header is not utf-8".into())
}

/// Reorders a tensor whose elements, or handles, are in Fortran order.
fn to_row_major(mut tensor: Tensor, columns: &[u8]) -> Tensor {
    let (size, shape) = (tensor.dtype().size(), tensor.shape().to_vec());
    let mut index = vec![0i64; shape.len()];
    for element in tensor.bytes_mut().chunks_exact_mut(size) {
        let place = |sum: usize, (&at, &dim): (&i64, &i64)| sum * dim as usize + at as usize;
        let linear = index.iter().zip(&shape).rev().fold(0, place);
        element.copy_from_slice(&columns[linear * size..][..size]);
        advance(&mut index, &shape);
    }
    tensor
}

fn advance(index: &mut [i64], shape: &[i64]) {
    for (at, &dim) in index.iter_mut().zip(shape).rev() {
        *at += 1;
        if *at < dim {
            return;
        }
        *at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC.as_slice(), &[1, 0], &length, header.as_bytes(), data].concat()
    }

    fn failure(bytes: &[u8]) -> String {
        read(&mut &bytes[..]).expect_err("an invalid file")
    }

    #[test]
    fn fortran_order_is_turned_around() {
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n";
        let tensor = read(&mut &npy(header, &[1, 4, 2, 5, 3, 6])[..]).expect("a valid file");
        assert_eq!(tensor.bytes(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn strings_are_read_as_numpy_writes_them() {
        let read = |bytes: Vec<u8>| read(&mut &bytes[..]).expect("a valid file");
        let texts =
            |texts: &[&[u8]], shape: &[i64]| Tensor::from_strings(shape, texts).expect("strings");
        let wide =
            |text: &str| text.chars().flat_map(|c| (c as u32).to_le_bytes()).collect::<Vec<_>>();
        let header = "{'descr': '<U2', 'fortran_order': True, 'shape': (2, 2), }\n";
        let data = wide("a\0\u{e9}\u{1f600}cd\0\0");
        let expected = texts(&[b"a", b"cd", "\u{e9}\u{1f600}".as_bytes(), b""], &[2, 2]);
        assert_eq!(read(npy(header, &data)), expected);
        let header = "{'descr': '|S2', 'fortran_order': False, 'shape': (2,), }\n";
        let expected = texts(&[b"\xff", b"ab"], &[2]);
        assert_eq!(read(npy(header, b"\xff\0ab")), expected);
        let header = "{'descr': '<U0', 'fortran_order': False, 'shape': (2,), }\n";
        assert_eq!(read(npy(header, b"")), texts(&[b"", b""], &[2]));
        for tensor in [expected, texts(&["\u{e9}b".as_bytes(), b""], &[1, 2])] {
            let mut bytes = Vec::new();
            write(&mut bytes, &tensor).expect("room");
            assert_eq!(read(bytes), tensor);
        }
        let header = "{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }\n";
        assert!(failure(&npy(header, &[0, 0xd8, 0, 0])).contains("U+D800"));
        assert!(failure(&npy(header, b"ab")).contains("found only 2"));
        let objects = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n";
        assert!(failure(&npy(objects, b"")).contains("Python objects"));
        let huge = "{'descr': '<U4611686018427387904', 'fortran_order': False, 'shape': (4,)}";
        assert!(failure(&npy(huge, &[])).contains("unsupported element type"));
        let many = "{'descr': '<U100000000', 'fortran_order': False, 'shape': (1000000000,)}";
        assert!(failure(&npy(many, &[])).contains("found only 0"));
    }

    #[test]
    fn writes_what_numpy_writes() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Tensor::from_values([2], &[1u8, 2]).expect("a tensor")).expect("room");
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(bytes, npy(&format!("{header:<117}\n"), &[1, 2]));
    }

    #[test]
    fn lies_about_size_are_rejected() {
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}";
        assert!(failure(&npy(huge, &[0; 16])).contains("found only 16"));
        let wrap = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}";
        assert!(failure(&npy(wrap, &[])).contains("overflows"));
        let small = "{'descr': '<f8', 'fortran_order': False, 'shape': ()}";
        assert!(failure(&npy(small, &[0; 16])).contains("more data follows"));
        let claim = [MAGIC.as_slice(), &[2, 0], &u32::MAX.to_le_bytes()].concat();
        assert!(failure(&claim).contains("4294967295 bytes"));
    }

    #[test]
    fn bad_headers_are_rejected() {
        assert!(failure(b"PK").contains("too short"));
        assert!(failure(b"not numpy").contains("x93NUMPY"));
        assert!(failure(&npy("{'descr': '<f8'}", &[])).contains("no `fortran_order`"));
        assert!(failure(&npy(&"(".repeat(3000), &[])).contains("structured"));
        let minus = "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}";
        assert!(failure(&npy(minus, &[])).contains("expected integers of at least 0"));
        let swapped = "{'descr': '>f8', 'fortran_order': False, 'shape': ()}";
        let message = failure(&npy(swapped, &[]));
        assert!(message.contains("unsupported element type `>f8`"));
        assert_eq!(message.matches("<u2").count(), 1, "{message}");
        for (own, bits) in
            [("<V2", "view('uint16')"), ("|V2", "view('uint16')"), ("|V1", "view('uint8')")]
        {
            let header = swapped.replace(">f8", own);
            let message = failure(&npy(&header, &[]));
            assert!(message.contains(bits), "{message}");
        }
    }
}
