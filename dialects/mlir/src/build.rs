//! Terse construction of ops, attributes and types by name.
use crate::{
    key::{AttributeValue, Key},
    ops::{self, func},
};
use melior::{
    Context,
    ir::{
        Attribute, Block, BlockLike, Identifier, Location, Operation, OperationRef, Region,
        RegionLike, Type, Value, attribute::StringAttribute, operation::OperationBuilder,
    },
};

/// An op to build: name, operands, results, attributes, regions.
pub struct OpSpec<'c> {
    context: &'c Context,
    name: String,
    builder: OperationBuilder<'c>,
    operands: usize,
    results: usize,
}

impl<'c> OpSpec<'c> {
    /// Starts an op.
    pub fn new(context: &'c Context, name: &str, location: Location<'c>) -> Self {
        // melior's builder keeps a pointer to the name, so it must point into this struct.
        let name = name.to_owned();
        let builder = OperationBuilder::new(&name, location);
        Self { context, name, builder, operands: 0, results: 0 }
    }

    /// Appends operands.
    pub fn operands(mut self, values: &[Value<'c, '_>]) -> Self {
        self.operands += values.len();
        self.builder = self.builder.add_operands(values);
        self
    }

    /// Appends results.
    pub fn results(mut self, types: &[Type<'c>]) -> Self {
        self.results += types.len();
        self.builder = self.builder.add_results(types);
        self
    }

    /// Adds an attribute.
    pub fn attr(mut self, name: &str, value: Attribute<'c>) -> Self {
        let name = Identifier::new(self.context, name);
        self.builder = self.builder.add_attributes(&[(name, value)]);
        self
    }

    /// Adds an attribute when there is one.
    pub fn maybe_attr(self, name: &str, value: Option<Attribute<'c>>) -> Self {
        match value {
            Some(value) => self.attr(name, value),
            None => self,
        }
    }

    /// Adds an attribute of a known type.
    pub fn with<T: AttributeValue>(self, key: Key<T>, value: T::Given<'_>) -> Self {
        let value = T::encode(self.context, value);
        self.attr(key.name(), value)
    }

    /// Adds a region.
    pub fn region(mut self, region: Region<'c>) -> Self {
        self.builder = self.builder.add_regions([region]);
        self
    }

    /// Adds successor blocks.
    pub fn successors(mut self, blocks: &[&Block<'c>]) -> Self {
        self.builder = self.builder.add_successors(blocks);
        self
    }

    /// Builds the op, detached.
    ///
    /// # Panics
    /// If MLIR cannot create it: an unregistered name, or result types that cannot be inferred. If an op
    /// of [`ops`] has numbers of operands or results other than in the table.
    pub fn build(self) -> Operation<'c> {
        let name = self.name;
        if let Some(arity) = ops::arity(&name) {
            let is = |expected: Option<usize>, found| expected.is_none_or(|count| count == found);
            assert!(is(arity.operands, self.operands), "'{name}' with {} operands", self.operands);
            assert!(is(arity.results, self.results), "'{name}' with {} results", self.results);
        }
        self.builder.build().unwrap_or_else(|error| panic!("cannot build '{name}': {error}"))
    }

    /// Builds the op at the end of a block.
    pub fn append<'a>(self, block: &impl BlockLike<'c, 'a>) -> OperationRef<'c, 'a>
    where
        'c: 'a,
    {
        block.append_operation(self.build())
    }

    /// Builds the op before another in the same block.
    pub fn before<'a>(
        self,
        block: &impl BlockLike<'c, 'a>,
        other: OperationRef<'c, 'a>,
    ) -> OperationRef<'c, 'a>
    where
        'c: 'a,
    {
        block.insert_operation_before(other, self.build())
    }
}

/// A block with arguments of the given types, in a region of its own.
pub fn block_with<'c>(types: &[Type<'c>], location: Location<'c>) -> (Region<'c>, Block<'c>) {
    let arguments: Vec<_> = types.iter().map(|ty| (*ty, location)).collect();
    (Region::new(), Block::new(&arguments))
}

/// A region of one block.
pub fn region_of<'c>(block: Block<'c>) -> Region<'c> {
    let region = Region::new();
    region.append_block(block);
    region
}

/// A `func.func` with the given body block.
pub fn function<'c>(
    context: &'c Context,
    name: &str,
    inputs: &[Type<'c>],
    results: &[Type<'c>],
    body: Block<'c>,
    location: Location<'c>,
) -> OpSpec<'c> {
    let signature = melior::ir::r#type::FunctionType::new(context, inputs, results);
    OpSpec::new(context, func::FUNC, location)
        .attr("sym_name", StringAttribute::new(context, name).into())
        .attr("function_type", melior::ir::attribute::TypeAttribute::new(signature.into()).into())
        .region(region_of(body))
}

/// Type constructors.
pub mod ty {
    use super::{Context, Type};

    /// Parses any type's text.
    ///
    /// # Panics
    /// When the text is not a type.
    pub fn parse<'c>(context: &'c Context, text: &str) -> Type<'c> {
        Type::parse(context, text).unwrap_or_else(|| panic!("not a type: {text}"))
    }
    /// A ranked tensor.
    pub fn tensor<'c>(shape: &[i64], element: Type<'c>) -> Type<'c> {
        let dims: Vec<u64> = shape.iter().map(|dim| *dim as u64).collect();
        melior::ir::r#type::RankedTensorType::new(&dims, element, None).into()
    }
}
