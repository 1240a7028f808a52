//! Ops that move lanes and fields: extraction, insertion, permutation.
use super::{
    super::layout::{self, Shape},
    arithmetic::{lane_of, to_lane},
    function::{Body, Op, Result, no_translation, operand, unsupported},
    types::padded,
};
use irc_mlir::{
    llvm::{self, Type},
    read,
};

impl Body<'_> {
    /// Translates an op that moves lanes.
    pub fn lanes_op(&mut self, op: Op<'_, '_>, name: &str) -> Result<()> {
        match name {
            "extractelement" => self.extract_element(&op),
            "insertelement" => self.insert_element(&op),
            "shufflevector" => self.shuffle_vector(&op),
            "vector.extract" => {
                let from = position(&op)?;
                let (shape, value) = self.operand(&op, 0)?;
                let lanes = self.result_shape(&op)?.lanes.unwrap_or(1);
                let lanes: Vec<_> = (from..from.saturating_add(lanes)).map(Some).collect();
                let value = self.shuffled(shape, &value, &value, &lanes);
                self.define(&op, &value)
            }
            _ => self.insert_vector(&op),
        }
    }

    fn extract_element(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let (shape, value) = self.operand(op, 0)?;
        let lane = self.lane(op, shape, 1)?;
        let scalar = lane_of(shape.element, &value, lane);
        self.define(op, &scalar)
    }

    fn insert_element(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let (shape, value) = self.operand(op, 0)?;
        let scalar = self.scalar(op, 1)?;
        let lane = self.lane(op, shape, 2)?;
        let ty = self.unit.ty(shape);
        let name = self.fresh("v");
        self.line(&format!("{ty} {name} = {value};"));
        self.line(&format!("{name}[{lane}] = {};", to_lane(shape.element, &scalar)));
        self.define_parts(op, vec![name])
    }

    /// The lane that an operand names; one that there is none of is another, so that it leads
    /// nowhere else.
    fn lane(&mut self, op: &Op<'_, '_>, shape: Shape, index: usize) -> Result<String> {
        let most = padded(shape.lanes.ok_or_else(|| no_translation(op))?) - 1;
        if let Some(known) = self.known(op, index) {
            return Ok((known & u64::from(most)).to_string());
        }
        let lane = self.scalar(op, index)?;
        Ok(format!("{lane} & {most}"))
    }

    fn shuffle_vector(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let mask = llvm::numbers(op, "mask").ok_or_else(|| no_translation(op))?;
        let lanes: Vec<Option<u32>> = mask.iter().map(|lane| u32::try_from(*lane).ok()).collect();
        let value = match self.broadcast_of(op, &lanes) {
            Some(scalar) => {
                let shape = self.result_shape(op)?;
                self.splat(shape, &scalar)
            }
            None => {
                let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
                self.shuffled(shape, &left, &right, &lanes)
            }
        };
        self.define(op, &value)
    }

    /// The scalar that a shuffle puts into every lane, where it was inserted for just that.
    fn broadcast_of(&mut self, op: &Op<'_, '_>, lanes: &[Option<u32>]) -> Option<String> {
        if lanes.iter().any(|lane| *lane != Some(0)) {
            return None;
        }
        let insert = read::defining_op(operand(op, 0).ok()?)?;
        let inserted = read::op_name(&insert) == "llvm.insertelement";
        if !inserted || self.known(&insert, 2) != Some(0) {
            return None;
        }
        self.scalar(&insert, 1).ok()
    }

    /// A vector whose lanes are some of those of two others of one shape, side by side.
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

    fn insert_vector(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let at = position(op)?;
        let ((shape, into), (part_shape, part)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let (all, some) = (shape.lanes.unwrap_or(1), part_shape.lanes.unwrap_or(1));
        // Both sides of a shuffle are of one type.
        let spread: Vec<_> = (0..all).map(|lane| (lane < some).then_some(lane)).collect();
        let part = self.shuffled(part_shape, &part, &part, &spread);
        let part = self.name(shape, &part);
        let source = |lane: u32| match lane.checked_sub(at) {
            Some(lane) if lane < some => all + lane,
            _ => lane,
        };
        let lanes: Vec<_> = (0..all).map(|lane| Some(source(lane))).collect();
        let value = self.shuffled(shape, &into, &part, &lanes);
        self.define(op, &value)
    }

    /// Translates an op on fields.
    pub fn aggregate(&mut self, op: Op<'_, '_>, name: &str) -> Result<()> {
        let position = llvm::numbers(&op, "position").ok_or_else(|| no_translation(&op))?;
        let ty = self.operand_type(&op, 0)?;
        let range = parts_at(&ty, &position).ok_or_else(|| unsupported(&op, "this position"))?;
        let mut value = self.parts(&op, 0)?;
        if name == "extractvalue" {
            return self.define_parts(&op, value.drain(range).collect());
        }
        let field = self.parts(&op, 1)?;
        value.splice(range, field);
        self.define_parts(&op, value)
    }
}

/// Which of the values of an aggregate a field is.
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

fn position(op: &Op<'_, '_>) -> Result<u32> {
    let position = read::integer(op, "pos").and_then(|position| u32::try_from(position).ok());
    position.ok_or_else(|| unsupported(op, "this position"))
}
