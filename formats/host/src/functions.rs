//! The functions of a program, applied to tensors.

use crate::image::{self, Pixels};
use crate::{Function, FunctionError, PixelFormat, case, number};
use irc_tensor::{DType, Strings, Tensor, TensorType};
use std::sync::Arc;

/// Maximum number of bytes of the strings of one run.
const MAX_BYTES: usize = 1 << 29;

/// Applies functions to tensors whose strings are handles of one table.
#[derive(Debug, Default)]
pub struct Functions {
    /// The file that was decoded last, until its pixels are used.
    image: Option<(Vec<u8>, PixelFormat, Pixels)>,
}

impl Functions {
    /// The result of a function, of a shape with its number of elements; strings are handles in `strings`,
    /// to which new ones are added.
    ///
    /// # Errors
    /// Operands of the wrong types; a string that is not a number; strings of more than half a gigabyte; an
    /// image that cannot be decoded, or is too large.
    pub fn apply(
        &mut self,
        function: &Function,
        strings: &mut Strings,
        operands: &[&Tensor],
        shape: &[i64],
    ) -> Result<Tensor, FunctionError> {
        let types: Vec<DType> = operands.iter().map(|operand| operand.dtype()).collect();
        function.expect(&types)?;
        let shape = shape.to_vec();
        let handles: Vec<Vec<i64>> = match function {
            Function::ImageSize(_) | Function::Pixels(_) => vec![],
            _ => operands.iter().map(|operand| integers(operand)).collect(),
        };
        let result = TensorType::new(function.result(), shape);
        match function {
            Function::Concat => {
                let (left, right) = (&handles[0], &handles[1]);
                new_strings(result, strings, left.len().min(right.len()), &mut |strings, at| {
                    Ok([&*text(strings, left[at]), &*text(strings, right[at])].concat())
                })
            }
            Function::Lower => {
                new_strings(result, strings, handles[0].len(), &mut |strings, at| {
                    Ok(case::lower(&text(strings, handles[0][at])))
                })
            }
            Function::Upper => {
                new_strings(result, strings, handles[0].len(), &mut |strings, at| {
                    Ok(case::upper(&text(strings, handles[0][at])))
                })
            }
            Function::Part(splitter) => {
                let (of, indices) = (&handles[0], &handles[1]);
                let mut searches = splitter.searches();
                // Usually, the next part is of the same string.
                let (mut last, mut parts) = (None, vec![]);
                new_strings(result, strings, of.len().min(indices.len()), &mut |strings, at| {
                    let string = text(strings, of[at]);
                    if last.replace(of[at]) != Some(of[at]) {
                        parts = splitter.parts(&mut searches, &string)?;
                    }
                    let part = usize::try_from(indices[at]).ok().and_then(|index| parts.get(index));
                    Ok(part.map_or(vec![], |part| string[part.clone()].to_vec()))
                })
            }
            Function::CountParts(splitter) => {
                let mut searches = splitter.searches();
                let mut counts = Vec::with_capacity(handles[0].len());
                for handle in &handles[0] {
                    let parts = splitter.parts(&mut searches, &text(strings, *handle))?;
                    counts.push(parts.len() as i64);
                }
                Ok(Tensor::from_values(result.shape, &counts)?)
            }
            Function::Matches(pattern) => {
                let mut search = pattern.search();
                let matches = |handle: &i64| {
                    let text = text(strings, *handle);
                    u8::from(std::str::from_utf8(&text).is_ok() && search.accepts(&text))
                };
                let bytes: Vec<u8> = handles[0].iter().map(matches).collect();
                Ok(Tensor::from_bytes(result, &bytes)?)
            }
            Function::Format(_) => {
                let texts = number::written(operands[0]);
                new_strings(result, strings, texts.len(), &mut |_, at| {
                    Ok(texts[at].clone().into_bytes())
                })
            }
            Function::Parse(_) => parsed(result, strings, &handles[0]),
            Function::ImageSize(_) | Function::Pixels(_) if !cfg!(feature = "images") => {
                Err(FunctionError::Image(image::NO_IMAGES.to_owned()))
            }
            Function::ImageSize(format) => {
                let (file, format) = (operands[0].bytes().to_vec(), *format);
                let pixels = image::decode(&file, format).map_err(FunctionError::Image)?;
                let size = Tensor::from_values(result.shape, &pixels.size)?;
                self.image = Some((file, format, pixels));
                Ok(size)
            }
            Function::Pixels(format) => {
                let file = operands[0].bytes();
                let known = self.image.take();
                let known = known.filter(|(own, of, _)| own == file && of == format);
                let pixels = match known {
                    Some((_, _, pixels)) => pixels,
                    None => image::decode(file, *format).map_err(FunctionError::Image)?,
                };
                Ok(Tensor::from_bytes(result, &pixels.bytes)?)
            }
        }
    }
}

/// The handles of strings, or indices; empty for other numbers.
fn integers(tensor: &Tensor) -> Vec<i64> {
    if !matches!(tensor.dtype(), DType::String | DType::I64) {
        return vec![];
    }
    tensor.bytes().as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect()
}

fn text(strings: &Strings, handle: i64) -> Arc<[u8]> {
    strings.get(handle).cloned().unwrap_or_else(|| Arc::from(&b""[..]))
}

/// A string, from its index.
type NewString<'a> = dyn FnMut(&Strings, usize) -> Result<Vec<u8>, FunctionError> + 'a;

/// So many strings.
fn new_strings(
    ty: TensorType,
    strings: &mut Strings,
    count: usize,
    text: &mut NewString<'_>,
) -> Result<Tensor, FunctionError> {
    let mut handles = Vec::with_capacity(count);
    for at in 0..count {
        let text = text(strings, at)?;
        handles.push(strings.intern(&text));
        if strings.bytes() > MAX_BYTES {
            return Err(FunctionError::TooLong(MAX_BYTES));
        }
    }
    Ok(Tensor::from_values(ty.shape, &handles)?.reinterpret(DType::String)?)
}

fn parsed(ty: TensorType, strings: &Strings, handles: &[i64]) -> Result<Tensor, FunctionError> {
    let (mut floats, mut integers) = (vec![], vec![]);
    for handle in handles {
        match number::read(&text(strings, *handle), ty.dtype)? {
            number::Number::Float(value) => floats.push(value),
            number::Number::Integer(value) => integers.push(value as i64),
        }
    }
    if ty.dtype.is_float() {
        return Ok(Tensor::from_f64(ty, &floats)?);
    }
    // The low bytes of an integer are its value modulo the size of its type.
    let width = ty.dtype.size();
    let bits = ty.dtype.bits();
    let mut bytes = Vec::with_capacity(width * integers.len());
    for value in integers {
        let low = match (bits, ty.dtype.is_signed_integer()) {
            (bits @ 2..8, true) => value << (64 - bits) >> (64 - bits),
            (bits @ 2..8, false) => value & ((1 << bits) - 1),
            _ => value,
        };
        let first = if cfg!(target_endian = "big") { 8 - width } else { 0 };
        bytes.extend_from_slice(&low.to_ne_bytes()[first..first + width]);
    }
    Ok(Tensor::from_bytes(ty, &bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Separator, Splitter};

    fn run(function: &Function, texts: &[&str], more: &[Tensor]) -> Result<Tensor, FunctionError> {
        let (name, arguments) = (function.name(), function.arguments());
        let compiled = Function::read_compiled(name, &arguments, &function.automata());
        assert_eq!(compiled.as_ref(), Ok(function));
        let mut strings = Strings::default();
        let first = Tensor::from_strings([texts.len() as i64], texts).expect("strings");
        let mut operands = vec![first.interned(&mut strings)];
        operands.extend(more.iter().map(|tensor| tensor.clone().interned(&mut strings)));
        let operands: Vec<&Tensor> = operands.iter().collect();
        let shape = operands[0].shape();
        let found = Functions::default().apply(function, &mut strings, &operands, shape)?;
        Ok(found.resolved(&strings))
    }

    fn texts(texts: &[&str]) -> Tensor {
        Tensor::from_strings([texts.len() as i64], texts).expect("strings")
    }

    #[test]
    fn every_function_has_its_result() {
        let joined = run(&Function::Concat, &["a", "b"], &[texts(&["c", ""])]);
        assert_eq!(joined, Ok(texts(&["ac", "b"])));
        let separator = Separator { delimiter: b",".to_vec(), max_parts: Some(2) };
        let separator = Splitter::Delimiter(separator);
        let counts = run(&Function::CountParts(separator.clone()), &["a,b,c", ""], &[]);
        assert_eq!(counts.expect("counts").to_f64(), [2.0, 0.0]);
        let index = Tensor::from_values([3], &[1i64, 0, 7]).expect("a tensor");
        let parts = run(&Function::Part(separator), &["a,b,c", "a,b,c", "x"], &[index]);
        assert_eq!(parts, Ok(texts(&["b,c", "a", ""])));
        let part = Function::Part(Splitter::Characters);
        let index = Tensor::from_values([2], &[1i64, -1]).expect("a tensor");
        assert_eq!(run(&part, &["a\u{e9}", "b"], &[index]), Ok(texts(&["\u{e9}", ""])));
        assert_eq!(run(&Function::Upper, &["a\u{e9}"], &[]), Ok(texts(&["A\u{c9}"])));
        assert_eq!(run(&Function::Lower, &["A"], &[]), Ok(texts(&["a"])));
        let arguments = ["a+".to_owned()];
        let automaton = ["61-61>1 |0|2 match".to_owned()];
        let matches = Function::read_compiled("matches", &arguments, &automaton).expect("valid");
        assert_eq!(run(&matches, &["aa", "ab"], &[]).expect("bools").to_f64(), [1.0, 0.0]);
        for automata in [&[][..], &["61-61>1".to_owned()], &vec![automaton[0].clone(); 2]] {
            assert!(Function::read_compiled("matches", &arguments, automata).is_err());
        }
        let parsed = run(&Function::Parse(DType::U8), &["300", "-1"], &[]);
        assert_eq!(parsed.expect("numbers").to_f64(), [44.0, 255.0]);
        let parsed = run(&Function::Parse(DType::I4), &["7", "8"], &[]);
        assert_eq!(parsed.expect("numbers").to_f64(), [7.0, -8.0]);
        let parsed = run(&Function::Parse(DType::F16), &["0.1"], &[]);
        assert_eq!(parsed.expect("numbers").to_f64(), [0.0999755859375]);
        assert!(run(&Function::Parse(DType::F32), &["x"], &[]).is_err());
        let error = run(&Function::Concat, &["a"], &[]).expect_err("one operand").to_string();
        assert_eq!(error, "concat: expected string, string, found string");
    }

    #[test]
    fn numbers_become_strings() {
        let mut strings = Strings::default();
        let x = Tensor::from_values([2], &[1.5f32, -0.0]).expect("a tensor");
        let format = Function::Format(DType::F32);
        let found =
            Functions::default().apply(&format, &mut strings, &[&x], &[2]).expect("strings");
        assert_eq!(found.resolved(&strings), texts(&["1.5", "-0"]));
    }

    #[test]
    fn strings_that_double_in_a_loop_end_with_an_error() {
        let mut strings = Strings::default();
        let long = "x".repeat(1 << 20);
        let mut word = Tensor::from_strings([1], &[long]).expect("a string").interned(&mut strings);
        let mut function = Functions::default();
        let error = loop {
            match function.apply(&Function::Concat, &mut strings, &[&word, &word], &[1]) {
                Ok(next) => word = next,
                Err(error) => break error,
            }
        };
        assert_eq!(error, FunctionError::TooLong(MAX_BYTES));
    }
}
