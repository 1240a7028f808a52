//! Exports ops to a program.
use super::fields::from_attribute;
use crate::attributes::{entries, integer, integers, op_integer, text};
use irc_mlir::{
    Attribute, OperationLike, OperationRef, PassError,
    read::{self, body_ops},
};
use irc_npu::{Core, Engine, Engines, Instruction, Op, Origin, Program, Tokens};

/// A program, and the op of each instruction: by index of the core, by instruction.
pub struct Exported<'c, 'a> {
    /// The program.
    pub program: Program,
    /// The ops of its instructions.
    pub ops: Vec<Vec<OperationRef<'c, 'a>>>,
}

/// Exports an `npu.program`.
///
/// # Errors
/// After a diagnostic at the op concerned: cores out of order, or an op that is not an instruction.
pub fn export<'c: 'a, 'a>(program: OperationRef<'c, 'a>) -> Result<Exported<'c, 'a>, PassError> {
    let mut exported = Exported { program: Program::default(), ops: vec![] };
    if let Some(model) = read::string(&program, "model") {
        let parsed = model.parse();
        exported.program.model = Some(
            parsed
                .map_err(|message: String| PassError::at(&program, format!("model: {message}")))?,
        );
    }
    for op in body_ops(program) {
        let core = core(op)?;
        if exported.program.cores.last().is_some_and(|last| last.id >= core.id) {
            return Err(PassError::at(&op, "cores must be in ascending order, each once"));
        }
        exported.program.cores.push(core);
        exported.ops.push(body_ops(op));
    }
    Ok(exported)
}

fn core(op: OperationRef<'_, '_>) -> Result<Core, PassError> {
    let code = body_ops(op)
        .into_iter()
        .map(|op| instruction(op).map_err(|message| PassError::at(&op, message)));
    let id = core_id(op).map_err(|message| PassError::at(&op, message))?;
    Ok(Core { id, code: code.collect::<Result<_, _>>()? })
}

/// The number of an `npu.core`.
pub(super) fn core_id(op: OperationRef<'_, '_>) -> Result<u32, String> {
    let id = op_integer(op, "id")?;
    u32::try_from(id).map_err(|_| format!("{id} is not the number of a core"))
}

/// Exports an instruction.
///
/// # Errors
/// Invalid fields, origin or tokens.
pub(super) fn instruction(op: OperationRef<'_, '_>) -> Result<Instruction, String> {
    let name = read::op_name(&op);
    let name = name.strip_prefix("npu.").unwrap_or(&name);
    let keys = Op::keys(name).ok_or_else(|| format!("'{name}' is not an instruction"))?;
    let mut fields = vec![];
    for key in keys {
        let attribute = op.attribute(key).map_err(|_| format!("expected a field '{key}'"))?;
        let value = from_attribute(attribute).ok_or_else(|| {
            format!("expected the value of a field in '{key}', found {attribute}")
        })?;
        fields.push((*key, value));
    }
    let tokens = Tokens { prev: engines(op, "prev")?, next: engines(op, "next")? };
    Ok(Instruction { op: Op::of_fields(name, fields)?, origin: origin(op)?, tokens })
}

fn engines(op: OperationRef<'_, '_>, name: &str) -> Result<Engines, String> {
    let mut engines = Engines::NONE;
    let Ok(attribute) = op.attribute(name) else { return Ok(engines) };
    for item in read::array_elements(attribute).unwrap_or_default() {
        let engine = text(item).and_then(|name| Engine::of_name(&name));
        let engine = engine.ok_or_else(|| {
            let known: Vec<_> = Engine::ALL.iter().map(|engine| engine.name()).collect();
            format!("expected one of {} in '{name}', found {item}", known.join(", "))
        })?;
        if !engines.push(engine) {
            return Err(format!("'{name}' names {engine} twice"));
        }
    }
    Ok(engines)
}

fn origin(op: OperationRef<'_, '_>) -> Result<Origin, String> {
    let mut origin = Origin::default();
    let Ok(attribute) = op.attribute("origin") else { return Ok(origin) };
    for (key, value) in entries(attribute)? {
        match key.as_str() {
            "slyr" => origin.slyr = number(&key, value)?,
            "s_flyr" => origin.s_flyr = number(&key, value)?,
            "wkl" => origin.wkl = number(&key, value)?,
            "tile" => origin.tile = number(&key, value)?,
            "clyr" => origin.clyr = numbers(&key, value)?.into(),
            "c_flyr" => origin.c_flyr = numbers(&key, value)?.into(),
            _ => return Err(format!("'origin' has no entry '{key}'")),
        }
    }
    Ok(origin)
}

fn number(key: &str, attribute: Attribute<'_>) -> Result<i32, String> {
    let number = integer(attribute).and_then(|value| value.try_into().ok());
    number.ok_or_else(|| format!("expected an integer of 32 bits in '{key}', found {attribute}"))
}

fn numbers(key: &str, attribute: Attribute<'_>) -> Result<Vec<u32>, String> {
    let list = integers(attribute).and_then(|values| {
        values.into_iter().map(|value| u32::try_from(value).ok()).collect::<Option<Vec<_>>>()
    });
    list.ok_or_else(|| format!("expected array<i64: ...> of numbers in '{key}', found {attribute}"))
}
