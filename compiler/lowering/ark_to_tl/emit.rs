//! Building `tl` ops at one node.
use irc_ark_format::model::DataType;
use irc_dialects::ark::element_type;
use irc_mlir::{
    Attribute, BlockRef, Context, Location, OpSpec, Type, Value, attr,
    melior::ir::operation::OperationResult,
};

/// A value with its type.
#[derive(Clone)]
pub struct Val<'c, 'a> {
    /// The SSA value.
    pub value: Value<'c, 'a>,
    /// Its element type.
    pub dtype: DataType,
    /// Its shape.
    pub shape: Vec<i64>,
}

impl Val<'_, '_> {
    /// Number of elements.
    pub fn elements(&self) -> i64 {
        self.shape.iter().product()
    }
}

/// The builtin tensor type of an element type and a shape.
pub fn ty<'c>(context: &'c Context, dtype: DataType, shape: &[i64]) -> Type<'c> {
    irc_mlir::ty::tensor(shape, element_type(context, dtype))
}

/// Appends ops that share a location and a node.
pub struct Emitter<'c, 'a> {
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    location: Location<'c>,
    node: Option<u64>,
}

impl<'c: 'a, 'a> Emitter<'c, 'a> {
    /// An emitter at the end of a block.
    pub fn new(
        context: &'c Context,
        block: BlockRef<'c, 'a>,
        location: Location<'c>,
        node: Option<u64>,
    ) -> Self {
        Self { context, block, location, node }
    }

    /// The same place in the block, for ops from another place in the file.
    pub fn at(&self, location: Location<'c>) -> Self {
        Self { context: self.context, block: self.block, location, node: self.node }
    }

    /// The context, for attributes.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// Appends `tl.<name>`.
    pub fn op(
        &mut self,
        name: &str,
        operands: &[&Val<'c, 'a>],
        attributes: &[(&str, Attribute<'c>)],
        (dtype, shape): (DataType, &[i64]),
    ) -> Val<'c, 'a> {
        let values: Vec<_> = operands.iter().map(|operand| operand.value).collect();
        let mut spec = OpSpec::new(self.context, &format!("tl.{name}"), self.location)
            .operands(&values)
            .results(&[ty(self.context, dtype, shape)]);
        for (name, value) in attributes {
            spec = spec.attr(name, *value);
        }
        let node = self.node.map(|node| attr::i64(self.context, node.cast_signed()));
        let op = spec.maybe_attr("ark.node", node).append(&self.block);
        let result: Result<OperationResult<'c, 'a>, _> = op.result(0);
        let value = result.expect("the op was built with a result").into();
        Val { value, dtype, shape: shape.to_vec() }
    }

    /// The same elements under another shape.
    pub fn reshape(&mut self, val: Val<'c, 'a>, shape: &[i64]) -> Val<'c, 'a> {
        if val.shape == shape {
            return val;
        }
        self.op("reshape", &[&val], &[], (val.dtype, shape))
    }

    /// The same bytes as another type.
    pub fn retype(&mut self, val: Val<'c, 'a>, dtype: DataType, shape: &[i64]) -> Val<'c, 'a> {
        if val.dtype == dtype {
            return self.reshape(val, shape);
        }
        self.op("bitcast", &[&val], &[], (dtype, shape))
    }

    /// The box of `shape` at `offsets`.
    pub fn slice(&mut self, val: Val<'c, 'a>, offsets: &[i64], shape: &[i64]) -> Val<'c, 'a> {
        if val.shape == shape {
            return val;
        }
        let offsets = attr::i64s(self.context, offsets);
        self.op("slice", &[&val], &[("offsets", offsets)], (val.dtype, shape))
    }

    /// `dest` with the box at `offsets` replaced.
    pub fn update(
        &mut self,
        dest: &Val<'c, 'a>,
        source: &Val<'c, 'a>,
        offsets: &[i64],
    ) -> Val<'c, 'a> {
        let offsets = attr::i64s(self.context, offsets);
        self.op("update", &[dest, source], &[("offsets", offsets)], (dest.dtype, &dest.shape))
    }

    /// One value everywhere.
    pub fn fill(&mut self, value: f64, dtype: DataType, shape: &[i64]) -> Val<'c, 'a> {
        // Integers take the factor truncated, as a C++ conversion does.
        let value = if dtype.is_float() { value } else { value.trunc() };
        let value = attr::float(self.context, Type::float64(self.context), value);
        self.op("fill", &[], &[("value", value)], (dtype, shape))
    }
}
