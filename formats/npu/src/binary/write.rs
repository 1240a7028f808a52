//! Encodes programs.

use super::crc::crc32;
use super::{HAS_TOKENS, MAGIC, SAME_ORIGIN, VERSION};
use crate::field::{Field, write_varint};
use crate::program::{Core, Fingerprint, Instruction, Origin, Program};

/// The binary encoding of a program.
pub fn encode(program: &Program) -> Vec<u8> {
    let mut body = vec![];
    write_varint(&mut body, program.cores.len() as u64);
    for core in &program.cores {
        encode_core(core, &mut body);
    }
    if let Some(model) = &program.model {
        let Fingerprint { images, layers, numbers, .. } = model;
        [images, layers, numbers].iter().for_each(|number| body.extend(number.to_le_bytes()));
        body.extend(model.words().bytes());
    }
    seal(&body)
}

/// A file with the given contents between version and checksum; for tests of the reader.
pub fn seal(body: &[u8]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(VERSION.to_le_bytes());
    file.extend(body);
    let crc = crc32(&file);
    file.extend(crc.to_le_bytes());
    file
}

fn encode_core(core: &Core, out: &mut Vec<u8>) {
    core.id.encode(out);
    write_varint(out, core.code.len() as u64);
    let mut before = None;
    for instruction in &core.code {
        encode_instruction(instruction, before, out);
        before = Some(&instruction.origin);
    }
}

fn encode_instruction(instruction: &Instruction, before: Option<&Origin>, out: &mut Vec<u8>) {
    let Instruction { op, origin, tokens } = instruction;
    let same = before == Some(origin);
    let synchronises = !tokens.prev.is_empty() || !tokens.next.is_empty();
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(flag(same, SAME_ORIGIN) | flag(synchronises, HAS_TOKENS));
    op.encode(out);
    if synchronises {
        tokens.prev.encode(out);
        tokens.next.encode(out);
    }
    if !same {
        encode_origin(origin, out);
    }
}

fn encode_origin(origin: &Origin, out: &mut Vec<u8>) {
    origin.slyr.encode(out);
    origin.clyr.to_vec().encode(out);
    origin.s_flyr.encode(out);
    origin.c_flyr.to_vec().encode(out);
    origin.wkl.encode(out);
    origin.tile.encode(out);
}
