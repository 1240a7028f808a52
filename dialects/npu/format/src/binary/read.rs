//! Bytes to programs.

use super::crc::crc32;
use super::{Bytes, Fault, HAS_TOKENS, MAGIC, SAME_ORIGIN, VERSION};
use crate::Op;
use crate::field::Field;
use crate::program::{Core, Instruction, Origin, Program, Tokens};

/// The program of a binary form.
///
/// # Errors
/// The first place where the bytes are not what [`super::encode`] writes.
pub fn decode(file: &[u8]) -> Result<Program, Fault> {
    let mut bytes = Bytes::new(checked(file)?);
    let _: [u8; MAGIC.len() + 2] = bytes.array()?;
    let count = bytes.count(2)?;
    let mut cores: Vec<Core> = Vec::with_capacity(count);
    for _ in 0..count {
        let core = decode_core(&mut bytes)?;
        if cores.last().is_some_and(|last| last.id >= core.id) {
            return Err(bytes.fault("cores are not in ascending order"));
        }
        cores.push(core);
    }
    match bytes.left() {
        0 => Ok(Program { cores }),
        _ => Err(bytes.fault("there are bytes after the last core")),
    }
}

/// The file without its checksum, once magic, version and checksum are right.
fn checked(file: &[u8]) -> Result<&[u8], Fault> {
    if !file.starts_with(&MAGIC) {
        return Err(Fault { offset: 0, message: "not a program: the first bytes differ" });
    }
    let version = file.get(MAGIC.len()..MAGIC.len() + 2);
    if version.is_some_and(|version| version != VERSION.to_le_bytes()) {
        return Err(Fault { offset: MAGIC.len(), message: "unknown version, expected 1" });
    }
    let Some((body, crc)) = file.split_last_chunk::<4>() else {
        return Err(Fault { offset: file.len(), message: "the file ends too early" });
    };
    match u32::from_le_bytes(*crc) == crc32(body) {
        true => Ok(body),
        false => Err(Fault { offset: body.len(), message: "the checksum differs" }),
    }
}

fn decode_core(bytes: &mut Bytes<'_>) -> Result<Core, Fault> {
    let id = u32::decode(bytes)?;
    let count = bytes.count(2)?;
    let mut code: Vec<Instruction> = vec![];
    for _ in 0..count {
        let instruction = decode_instruction(code.last(), bytes)?;
        code.push(instruction);
    }
    Ok(Core { id, code })
}

fn decode_instruction(
    before: Option<&Instruction>,
    bytes: &mut Bytes<'_>,
) -> Result<Instruction, Fault> {
    let flags = bytes.byte()?;
    if flags & !(SAME_ORIGIN | HAS_TOKENS) != 0 {
        return Err(bytes.fault("unknown flags of an instruction"));
    }
    let op = Op::decode(bytes)?;
    let tokens = match flags & HAS_TOKENS {
        0 => Tokens::default(),
        _ => Tokens { prev: Field::decode(bytes)?, next: Field::decode(bytes)? },
    };
    if op.is_config() && flags & HAS_TOKENS != 0 {
        return Err(bytes.fault("an instruction that only writes registers has tokens"));
    }
    let origin = match (flags & SAME_ORIGIN, before) {
        (0, _) => decode_origin(bytes)?,
        (_, Some(before)) => before.origin.clone(),
        (_, None) => return Err(bytes.fault("the first instruction has no origin")),
    };
    Ok(Instruction { op, origin, tokens })
}

fn decode_origin(bytes: &mut Bytes<'_>) -> Result<Origin, Fault> {
    Ok(Origin {
        slyr: Field::decode(bytes)?,
        clyr: Field::decode(bytes)?,
        s_flyr: Field::decode(bytes)?,
        c_flyr: Field::decode(bytes)?,
        wkl: Field::decode(bytes)?,
        tile: Field::decode(bytes)?,
    })
}
