//! Ops on scalars in the region of a `linalg.generic`, and on scalars or vectors in the body of a loop.
use super::{
    element::{Element, Kind},
    emit::{Emit, Lanes, first_result},
    expand_math::expand,
};
use irc_mlir::ops::{arith, linalg, math};
use irc_mlir::{Attribute, BlockRef, Context, Location, OpSpec, Type, Value, attr};
use melior::ir::attribute::DenseElementsAttribute;

/// Appends ops to a generic's region, or to the body of a loop.
pub struct Scope<'c, 'a> {
    pub context: &'c Context,
    pub block: BlockRef<'c, 'a>,
    pub location: Location<'c>,
    /// Whether functions of `math` are expanded if they have an expansion.
    pub expand: bool,
    /// The elements of each value. Types and constants are given as those of one element.
    pub lanes: Lanes,
}

impl<'c: 'a, 'a> Scope<'c, 'a> {
    /// An op with one result of the given type.
    pub fn op<'b>(
        &self,
        name: &str,
        operands: &[Value<'c, '_>],
        result_type: Type<'c>,
    ) -> Value<'c, 'b>
    where
        'c: 'b,
    {
        self.with(name, operands, result_type, &[])
    }

    /// An op with one result and attributes.
    pub fn with<'b>(
        &self,
        name: &str,
        operands: &[Value<'c, '_>],
        result_type: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Value<'c, 'b>
    where
        'c: 'b,
    {
        if self.expand && name.starts_with(math::PREFIX) {
            let e = Emit { context: self.context, block: self.block, location: self.location };
            let operands: Vec<Value> = operands.iter().map(|x| rebound(*x)).collect();
            if let Some(value) = expand(e, name, &operands, result_type, self.lanes) {
                return rebound(value);
            }
        }
        let mut spec = OpSpec::new(self.context, name, self.location)
            .operands(operands)
            .results(&[self.lanes.of(result_type)]);
        for (key, value) in attributes {
            let value =
                if name == arith::CONSTANT { self.of_lanes(result_type, *value) } else { *value };
            spec = spec.attr(key, value);
        }
        rebound(first_result(spec.append(&self.block)))
    }

    pub fn constant<'b>(&self, element: Element<'c>, value: f64) -> Value<'c, 'b>
    where
        'c: 'b,
    {
        let value = constant_attribute(self.context, element, value);
        self.with(arith::CONSTANT, &[], element.storage, &[("value", value)])
    }

    /// A constant of an element in all lanes.
    fn of_lanes(&self, element: Type<'c>, value: Attribute<'c>) -> Attribute<'c> {
        match self.lanes {
            Lanes::Scalar => value,
            Lanes::Vector(_) => DenseElementsAttribute::splat(self.lanes.of(element), value).into(),
        }
    }

    pub fn index_constant<'b>(&self, value: i64) -> Value<'c, 'b>
    where
        'c: 'b,
    {
        let index = Type::index(self.context);
        self.with(arith::CONSTANT, &[], index, &[("value", attr::index(self.context, value))])
    }

    /// The current value of a loop.
    pub fn loop_index<'b>(&self, dim: usize) -> Value<'c, 'b>
    where
        'c: 'b,
    {
        let dim = attr::i64(self.context, dim as i64);
        self.with(linalg::INDEX, &[], Type::index(self.context), &[("dim", dim)])
    }
}

fn rebound<'c: 'b, 'b>(value: Value<'c, '_>) -> Value<'c, 'b> {
    irc_mlir::rebind(value)
}

/// A constant of an element type; values out of range saturate.
pub(crate) fn constant_spec<'c>(
    context: &'c Context,
    location: Location<'c>,
    element: Element<'c>,
    value: f64,
) -> OpSpec<'c> {
    let value = constant_attribute(context, element, value);
    OpSpec::new(context, arith::CONSTANT, location).attr("value", value).results(&[element.storage])
}

/// A number as an attribute of an element type; values out of range saturate.
fn constant_attribute<'c>(context: &'c Context, element: Element<'c>, value: f64) -> Attribute<'c> {
    match element.kind {
        _ if let Some(dtype) = element.small => {
            let code = Element::code(dtype, value) as i8;
            attr::parse(context, &format!("{code} : {}", element.storage))
        }
        Kind::Float => attr::float(context, element.storage, value),
        _ => attr::parse(context, &format!("{} : {}", element.saturate(value), element.storage)),
    }
}
