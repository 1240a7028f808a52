//! Parameters: named tensors, as `tvm.runtime.save_param_dict` writes them.
//!
//! Little-endian and without any padding. A file is the magic number of a list, a reserved word,
//! the names (a count, then each as length and bytes), the count again, and the tensors: magic
//! number, reserved word, device type and id, rank, element type, shape, number of bytes, bytes in
//! row-major order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};

use crate::offset::at_byte;
use crate::types::{Code, DataType, MAX_RANK, Type};
use irc_diag::clip;

/// First word of a file.
const LIST_MAGIC: u64 = 0xF7E5_8D4F_0504_9CB7;

/// First word of a tensor.
const TENSOR_MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

/// Device type of host memory, the only one that TVM saves.
const CPU: i32 = 1;

/// Maximum length of a name, in bytes.
const MAX_NAME: u64 = 4096;

/// A named tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its bytes, row-major and little-endian; after reading an unaligned slice of the file.
    pub data: Bytes,
}

/// Reads parameters in file order, without copies; `None` after an error.
pub fn read(bytes: &Bytes, sink: &mut Sink) -> Option<Vec<Param>> {
    let before = sink.error_count();
    let mut reader = Reader { bytes, at: 0, sink };
    let params = reader.file();
    (sink.error_count() == before).then_some(params).flatten()
}

/// The index of each parameter, by name.
pub fn by_name(params: &[Param]) -> BTreeMap<&str, usize> {
    index(params.iter().enumerate().map(|(number, param)| (param.name.as_str(), number)))
}

/// Values by key; of those with the same key, the last. It does what `collect` does without sorting, whose code takes
/// 3 kB for each type in a library that must stay small.
pub fn index<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut found = BTreeMap::new();
    found.extend(pairs);
    found
}

/// Encodes parameters, in the order given.
///
/// The data of each must have the length of its type.
pub fn write(params: &[Param]) -> Bytes {
    let mut out = vec![];
    let count = params.len() as u64;
    for word in [LIST_MAGIC, 0, count] {
        out.extend(word.to_le_bytes());
    }
    for param in params {
        out.extend((param.name.len() as u64).to_le_bytes());
        out.extend(param.name.as_bytes());
    }
    out.extend(count.to_le_bytes());
    for Param { ty: Type { dtype, shape }, data, .. } in params {
        out.extend(TENSOR_MAGIC.to_le_bytes());
        out.extend(0u64.to_le_bytes());
        for word in [CPU, 0, shape.len() as i32] {
            out.extend(word.to_le_bytes());
        }
        out.extend([dtype.code as u8, dtype.bits]);
        out.extend(dtype.lanes.to_le_bytes());
        out.extend(shape.iter().flat_map(|dim| dim.to_le_bytes()));
        out.extend((data.len() as u64).to_le_bytes());
        out.extend_from_slice(data);
    }
    out.into()
}

struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
    sink: &'a mut Sink,
}

impl Reader<'_> {
    fn file(&mut self) -> Option<Vec<Param>> {
        if u64::from_le_bytes(self.array()?) != LIST_MAGIC {
            return self.reject(0, "mlf-params-magic", "the file has no header of parameters");
        }
        self.reserved()?;
        let names = self.names()?;
        let place = self.at;
        let count = u64::from_le_bytes(self.array()?);
        if count != names.len() as u64 {
            let message = format!("{} names, but {count} tensors", names.len());
            return self.reject(place, "mlf-params-count", &message);
        }
        let params = names.into_iter().map(|name| self.tensor(name));
        let params: Option<Vec<Param>> = params.collect();
        if params.is_some() && self.at < self.bytes.len() {
            self.report(self.at, "mlf-trailing", "there are bytes after the last tensor");
        }
        params
    }

    fn names(&mut self) -> Option<Vec<String>> {
        let place = self.at;
        let count = u64::from_le_bytes(self.array()?);
        // Each name has its length, each tensor at least the fixed words.
        const MIN_BYTES: u64 = 8 + 48;
        if count > (self.bytes.len() as u64) / MIN_BYTES {
            let message = format!("the file is too short for {count} tensors");
            return self.reject(place, "mlf-params-count", &message);
        }
        let (mut names, mut places) = (vec![], vec![]);
        for _ in 0..count {
            let place = self.at;
            let Some(name) = self.name() else { break };
            places.push(place);
            names.push(name);
        }
        let mut seen = BTreeSet::new();
        for (name, place) in names.iter().zip(places).filter(|(name, _)| !seen.insert(*name)) {
            let message = format!("tensor `{}` occurs twice", clip(name));
            self.report(place, "mlf-params-name", &message);
        }
        (names.len() as u64 == count).then_some(names)
    }

    fn name(&mut self) -> Option<String> {
        let place = self.at;
        let length = u64::from_le_bytes(self.array()?);
        if !(1..=MAX_NAME).contains(&length) {
            let message = format!("a name of {length} bytes");
            return self.reject(place, "mlf-params-name", &message);
        }
        let name = self.take(length)?;
        match std::str::from_utf8(&self.bytes[name]) {
            Ok(name) => Some(name.to_owned()),
            Err(_) => self.reject(place, "mlf-params-name", "a name is not UTF-8"),
        }
    }

    fn tensor(&mut self, name: String) -> Option<Param> {
        let place = self.at;
        if u64::from_le_bytes(self.array()?) != TENSOR_MAGIC {
            let message = format!("there is no tensor header for `{}`", clip(&name));
            return self.reject(place, "mlf-params-magic", &message);
        }
        self.reserved()?;
        let device = (i32::from_le_bytes(self.array()?), i32::from_le_bytes(self.array()?));
        if device != (CPU, 0) {
            let message = format!("`{}` is on device {device:?}, expected the host", clip(&name));
            self.report(place, "mlf-params-device", &message);
        }
        let ty = self.ty(&name)?;
        let data = self.data(&name, &ty)?;
        Some(Param { name, ty, data })
    }

    fn ty(&mut self, name: &str) -> Option<Type> {
        let place = self.at;
        let rank = i32::from_le_bytes(self.array()?);
        let ([code, bits], lanes) = (self.array()?, u16::from_le_bytes(self.array()?));
        if !(0..=MAX_RANK as i32).contains(&rank) {
            let message = format!("`{}` has rank {rank}", clip(name));
            return self.reject(place, "mlf-params-shape", &message);
        }
        let known = Code::ALL.into_iter().find(|known| *known as u8 == code);
        let Some(code) = known.filter(|_| bits > 0 && lanes == 1) else {
            let message = format!(
                "`{}` has an element type unknown to TVM: code {code}, {bits} bits, {lanes} lanes",
                clip(name)
            );
            return self.reject(place, "mlf-params-dtype", &message);
        };
        let shape = (0..rank).map(|_| Some(i64::from_le_bytes(self.array()?)));
        let shape: Option<Vec<i64>> = shape.collect();
        Some(Type { dtype: DataType { code, bits, lanes }, shape: shape? })
    }

    fn data(&mut self, name: &str, ty: &Type) -> Option<Bytes> {
        let place = self.at;
        let stated = u64::from_le_bytes(self.array()?);
        let Some(bytes) = ty.bytes() else {
            let message = format!("`{}` has the invalid type {ty}", clip(name));
            return self.reject(place, "mlf-params-shape", &message);
        };
        if stated != bytes {
            let message = format!("`{}` is {ty}, {bytes} bytes, but states {stated}", clip(name));
            return self.reject(place, "mlf-params-size", &message);
        }
        Some(self.bytes.slice(self.take(bytes)?))
    }

    fn reserved(&mut self) -> Option<()> {
        let place = self.at;
        match u64::from_le_bytes(self.array()?) {
            0 => Some(()),
            _ => self.reject(place, "mlf-params-magic", "a reserved word is not zero"),
        }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.take(N as u64)?;
        self.bytes[taken].first_chunk().copied()
    }

    /// The range of the next bytes.
    fn take(&mut self, count: u64) -> Option<Range<usize>> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let Some(end) = end.filter(|end| *end <= self.bytes.len()) else {
            return self.reject(self.at, "mlf-truncated", "the file ends too early");
        };
        let taken = self.at..end;
        self.at = end;
        Some(taken)
    }

    fn report(&mut self, at: usize, code: &'static str, message: &str) {
        self.sink.push(at_byte(Diagnostic::error(code, message), at));
    }

    fn reject<T>(&mut self, at: usize, code: &'static str, message: &str) -> Option<T> {
        self.report(at, code, message);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Vec<Param> {
        let ty = |code, bits, shape: &[i64]| Type {
            dtype: DataType::scalar(code, bits),
            shape: shape.to_vec(),
        };
        let param = |name: &str, ty: Type| {
            let data = vec![7; ty.bytes().expect("a size") as usize].into();
            Param { name: name.into(), ty, data }
        };
        vec![
            param("w", ty(Code::Float, 32, &[2, 3])),
            param("flag", ty(Code::Uint, 1, &[])),
            param("none", ty(Code::Bfloat, 16, &[0])),
        ]
    }

    #[test]
    fn parameters_read_back() {
        let bytes = write(&params());
        let mut sink = Sink::new();
        assert_eq!(read(&bytes, &mut sink), Some(params()), "{sink:?}");
        assert_eq!(bytes[..8], [0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7]);
    }

    #[test]
    fn data_stay_where_they_are() {
        let bytes = write(&params());
        let read = read(&bytes, &mut Sink::new()).expect("sound");
        let range = bytes.as_ptr_range();
        assert!(range.contains(&read[0].data.as_ptr()));
    }

    #[test]
    fn every_cut_is_rejected() {
        let bytes = write(&params());
        for length in 0..bytes.len() {
            let mut sink = Sink::new();
            assert_eq!(read(&bytes.slice(..length), &mut sink), None, "cut at {length}");
            assert!(sink.has_errors());
        }
    }

    #[test]
    fn changed_bytes_do_no_harm() {
        let bytes = write(&params());
        for at in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[at] ^= 0xff;
            let mut sink = Sink::new();
            let is_read = read(&changed.into(), &mut sink).is_some();
            assert_eq!(is_read, !sink.has_errors());
        }
    }
}
