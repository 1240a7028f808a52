//! Ops that move lanes and fields: extraction, insertion, permutation.
use super::{
    super::layout::{self, Shape},
    arithmetic::{lane_of, to_lane},
    function::{Body, Op, Result, no_translation, operand, unsupported},
    types::padded,
};
use irc_mlir::{llvm::Type, ops, read};

impl Body<'_> {
    /// Consecutive lanes of a vector.
    pub fn extract_vector(&mut self, op: &Op<'_, '_>, from: u32) -> Result<String> {
        let (shape, value) = self.operand(op, 0)?;
        let lanes = self.result_shape(op)?.lanes.unwrap_or(1);
        let lanes: Vec<_> = (from..from.saturating_add(lanes)).map(Some).collect();
        Ok(self.shuffled(shape, &value, &value, &lanes))
    }

    /// One lane of a vector.
    pub fn extract_element(&mut self, op: &Op<'_, '_>) -> Result<String> {
        let (shape, value) = self.operand(op, 0)?;
        let lane = self.lane(op, shape, 1)?;
        Ok(lane_of(shape.element, &value, lane))
    }

    /// A vector with one lane replaced.
    pub fn insert_element(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let (shape, value) = self.operand(op, 0)?;
        let scalar = self.scalar(op, 1)?;
        let lane = self.lane(op, shape, 2)?;
        let ty = self.unit.ty(shape);
        let name = self.fresh("v");
        self.line(&format!("{ty} {name} = {value};"));
        self.line(&format!("{name}[{lane}] = {};", to_lane(shape.element, &scalar)));
        self.define_parts(op, vec![name])
    }

    /// The lane index of an operand; an index out of range is mapped to a valid lane, so that memory
    /// accesses stay in bounds.
    fn lane(&mut self, op: &Op<'_, '_>, shape: Shape, index: usize) -> Result<String> {
        let most = padded(shape.lanes.ok_or_else(|| no_translation(op))?) - 1;
        if let Some(known) = self.known(op, index) {
            return Ok((known & u64::from(most)).to_string());
        }
        let lane = self.scalar(op, index)?;
        Ok(format!("{lane} & {most}"))
    }

    /// Lanes of two concatenated vectors.
    pub fn shuffle_vector(&mut self, op: &Op<'_, '_>, lanes: &[Option<u32>]) -> Result<String> {
        if let Some(scalar) = self.broadcast_of(op, lanes) {
            let shape = self.result_shape(op)?;
            return Ok(self.splat(shape, &scalar));
        }
        let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        Ok(self.shuffled(shape, &left, &right, lanes))
    }

    /// The scalar that a shuffle broadcasts, if it was inserted only for that.
    fn broadcast_of(&mut self, op: &Op<'_, '_>, lanes: &[Option<u32>]) -> Option<String> {
        if lanes.iter().any(|lane| *lane != Some(0)) {
            return None;
        }
        let insert = read::defining_op(operand(op, 0).ok()?)?;
        let inserted = read::op_name(&insert) == ops::llvm::INSERTELEMENT;
        if !inserted || self.known(&insert, 2) != Some(0) {
            return None;
        }
        self.scalar(&insert, 1).ok()
    }

    /// A vector of lanes of two concatenated vectors of one shape.
    fn shuffled(&mut self, shape: Shape, left: &str, right: &str, lanes: &[Option<u32>]) -> String {
        let own = shape.lanes.unwrap_or(1);
        let place = |lane: &Option<u32>| match lane {
            Some(lane) if *lane < own => lane.to_string(),
            Some(lane) => (padded(own) + lane - own).to_string(),
            None => "-1".to_owned(),
        };
        let mut places: Vec<String> = lanes.iter().map(place).collect();
        places.resize(padded(lanes.len() as u32) as usize, "-1".to_owned());
        format!("__builtin_shufflevector({left}, {right}, {})", places.join(", "))
    }

    /// A vector with consecutive lanes replaced.
    pub fn insert_vector(&mut self, op: &Op<'_, '_>, at: u32) -> Result<String> {
        let ((shape, into), (part_shape, part)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let (all, some) = (shape.lanes.unwrap_or(1), part_shape.lanes.unwrap_or(1));
        // Both operands of a shuffle have the same type.
        let spread: Vec<_> = (0..all).map(|lane| (lane < some).then_some(lane)).collect();
        let part = self.shuffled(part_shape, &part, &part, &spread);
        let part = self.name(shape, &part);
        let source = |lane: u32| match lane.checked_sub(at) {
            Some(lane) if lane < some => all + lane,
            _ => lane,
        };
        let lanes: Vec<_> = (0..all).map(|lane| Some(source(lane))).collect();
        Ok(self.shuffled(shape, &into, &part, &lanes))
    }

    /// A field of an aggregate.
    pub fn extract_value(&mut self, op: &Op<'_, '_>, position: &[i64]) -> Result<()> {
        let range = self.field(op, position)?;
        let parts = self.parts(op, 0)?.drain(range).collect();
        self.define_parts(op, parts)
    }

    /// An aggregate with one field replaced.
    pub fn insert_value(&mut self, op: &Op<'_, '_>, position: &[i64]) -> Result<()> {
        let range = self.field(op, position)?;
        let mut value = self.parts(op, 0)?;
        value.splice(range, self.parts(op, 1)?);
        self.define_parts(op, value)
    }

    fn field(&mut self, op: &Op<'_, '_>, position: &[i64]) -> Result<std::ops::Range<usize>> {
        let ty = self.operand_type(op, 0)?;
        parts_at(&ty, position).ok_or_else(|| unsupported(op, "this position"))
    }
}

/// The range of an aggregate's values that make up a field.
pub fn parts_at(ty: &Type, position: &[i64]) -> Option<std::ops::Range<usize>> {
    let count = |ty: &Type| Some(layout::leaves(ty)?.len());
    let (mut inner, mut first) = (ty, 0);
    for index in position {
        let index = usize::try_from(*index).ok()?;
        match inner {
            Type::Array(element, length) if (index as u64) < *length => {
                first += index * count(element)?;
                inner = element;
            }
            Type::Struct { fields, .. } => {
                let before = fields.get(..index)?.iter().map(count);
                first += before.sum::<Option<usize>>()?;
                inner = fields.get(index)?;
            }
            _ => return None,
        }
    }
    Some(first..first + count(inner)?)
}
