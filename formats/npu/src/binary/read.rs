//! Decodes programs.

use super::crc::crc32;
use super::{HAS_TOKENS, MAGIC, SAME_ORIGIN, VERSION};
use crate::Op;
use crate::bytes::{Bytes, Error};
use crate::field::Field;
use crate::program::{Core, Fingerprint, Instruction, Origin, Program, Tokens};

/// Number of bytes of magic and version.
const START: usize = MAGIC.len() + 2;

/// Number of bytes of a fingerprint.
const MODEL: usize = 24;

/// Decodes the binary encoding of a program.
///
/// # Errors
/// The first offset at which the bytes differ from the output of [`super::encode`].
pub fn decode(file: &[u8]) -> Result<Program, Error> {
    if !file.starts_with(&MAGIC) {
        return Err(Error::new(0, "not a program: the first bytes differ"));
    }
    let version = file.get(MAGIC.len()..START);
    if version.is_some_and(|version| version != VERSION.to_le_bytes()) {
        return Err(Error::new(MAGIC.len(), "unknown version, expected 1"));
    }
    match file.split_last_chunk::<4>() {
        Some((body, crc)) if u32::from_le_bytes(*crc) == crc32(body) => decode_body(body),
        _ => Err(unsealed(file)),
    }
}

/// The error of a file with a wrong checksum: it is truncated, or was changed.
fn unsealed(file: &[u8]) -> Error {
    let size = file.len();
    match decode_body(file) {
        Ok(_) => Error::new(size, format!("cut off, of {size} bytes: the checksum is missing")),
        Err(error) if error.is_end => {
            let message = format!("cut off or damaged, of {size} bytes: {}", error.message);
            Error { message, ..error }
        }
        _ => Error::new(size.saturating_sub(4), "the checksum differs"),
    }
}

/// The program between the magic and the checksum.
fn decode_body(body: &[u8]) -> Result<Program, Error> {
    let mut bytes = Bytes::new(body);
    let _: [u8; START] = bytes.array()?;
    let count = bytes.count(2)?;
    let mut cores: Vec<Core> = Vec::with_capacity(count);
    for number in 1..=count {
        let core = decode_core(&mut bytes);
        let core = core.map_err(|error| error.within(|| format!("core {number} of {count}")))?;
        if cores.last().is_some_and(|last| last.id >= core.id) {
            return Err(bytes.error("cores are not in ascending order"));
        }
        cores.push(core);
    }
    let model = match bytes.left() {
        MODEL.. => Some(decode_model(&mut bytes)?),
        _ => None,
    };
    match bytes.left() {
        0 => Ok(Program { cores, model, part: None }),
        _ => Err(bytes.error("there are bytes after the last core")),
    }
}

fn decode_model(bytes: &mut Bytes<'_>) -> Result<Fingerprint, Error> {
    let mut number = || bytes.array().map(u64::from_le_bytes);
    let [images, layers, numbers] = [number()?, number()?, number()?];
    let model = Fingerprint { images, layers, numbers, splits: None, calibration: None };
    let text: Result<Vec<u8>, _> = (0..bytes.left()).map(|_| bytes.byte()).collect();
    let text = String::from_utf8(text?).ok();
    let model = text.and_then(|text| model.with_words(&text));
    model.ok_or_else(|| bytes.error("there are bytes after the last core"))
}

fn decode_core(bytes: &mut Bytes<'_>) -> Result<Core, Error> {
    let id = u32::decode(bytes)?;
    let count = bytes.count(2)?;
    let mut code: Vec<Instruction> = vec![];
    for number in 1..=count {
        let instruction = decode_instruction(code.last(), bytes);
        let place = || format!("instruction {number} of {count}");
        code.push(instruction.map_err(|error| error.within(place))?);
    }
    Ok(Core { id, code })
}

fn decode_instruction(
    before: Option<&Instruction>,
    bytes: &mut Bytes<'_>,
) -> Result<Instruction, Error> {
    let flags = bytes.byte()?;
    if flags & !(SAME_ORIGIN | HAS_TOKENS) != 0 {
        return Err(bytes.error("unknown flags of an instruction"));
    }
    let op = Op::decode(bytes)?;
    let tokens = match flags & HAS_TOKENS {
        0 => Tokens::default(),
        _ => Tokens { prev: Field::decode(bytes)?, next: Field::decode(bytes)? },
    };
    if op.is_config() && flags & HAS_TOKENS != 0 {
        return Err(bytes.error("an instruction that only writes registers has tokens"));
    }
    let origin = match (flags & SAME_ORIGIN, before) {
        (0, _) => decode_origin(bytes)?,
        (_, Some(before)) => before.origin.clone(),
        (_, None) => return Err(bytes.error("the first instruction has no origin")),
    };
    Ok(Instruction { op, origin, tokens })
}

fn decode_origin(bytes: &mut Bytes<'_>) -> Result<Origin, Error> {
    Ok(Origin {
        slyr: Field::decode(bytes)?,
        clyr: Vec::<u32>::decode(bytes)?.into(),
        s_flyr: Field::decode(bytes)?,
        c_flyr: Vec::<u32>::decode(bytes)?.into(),
        wkl: Field::decode(bytes)?,
        tile: Field::decode(bytes)?,
    })
}
