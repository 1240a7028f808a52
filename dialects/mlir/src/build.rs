//! Terse construction of ops, attributes and types by name.
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
}

impl<'c> OpSpec<'c> {
    /// Starts an op.
    pub fn new(context: &'c Context, name: &str, location: Location<'c>) -> Self {
        // melior's builder keeps a pointer to the name, so it must point at what this owns.
        let name = name.to_owned();
        let builder = OperationBuilder::new(&name, location);
        Self { context, name, builder }
    }

    /// Appends operands.
    pub fn operands(mut self, values: &[Value<'c, '_>]) -> Self {
        self.builder = self.builder.add_operands(values);
        self
    }

    /// Appends results.
    pub fn results(mut self, types: &[Type<'c>]) -> Self {
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

    /// Adds a region.
    pub fn region(mut self, region: Region<'c>) -> Self {
        self.builder = self.builder.add_regions([region]);
        self
    }

    /// Adds blocks that the op may go on in.
    pub fn successors(mut self, blocks: &[&Block<'c>]) -> Self {
        self.builder = self.builder.add_successors(blocks);
        self
    }

    /// Builds the op, detached.
    ///
    /// # Panics
    /// When MLIR cannot create it: an unregistered name, or result types that do not infer.
    pub fn build(self) -> Operation<'c> {
        let name = self.name;
        self.builder.build().unwrap_or_else(|error| panic!("cannot build '{name}': {error}"))
    }

    /// Builds the op at the end of a block.
    pub fn append<'a>(self, block: &impl BlockLike<'c, 'a>) -> OperationRef<'c, 'a>
    where
        'c: 'a,
    {
        block.append_operation(self.build())
    }

    /// Builds the op before another of the same block.
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
    OpSpec::new(context, "func.func", location)
        .attr("sym_name", StringAttribute::new(context, name).into())
        .attr("function_type", melior::ir::attribute::TypeAttribute::new(signature.into()).into())
        .region(region_of(body))
}

/// Attribute constructors.
pub mod attr {
    use super::{Attribute, Context, Type};
    use melior::ir::{
        attribute::{
            ArrayAttribute, BoolAttribute, DenseI64ArrayAttribute, FlatSymbolRefAttribute,
            FloatAttribute, IntegerAttribute, StringAttribute, TypeAttribute,
        },
        r#type::IntegerType,
    };

    /// A string.
    pub fn string<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
        StringAttribute::new(context, text).into()
    }
    /// An `i64`.
    pub fn i64(context: &Context, value: i64) -> Attribute<'_> {
        IntegerAttribute::new(IntegerType::new(context, 64).into(), value).into()
    }
    /// An `i32`.
    pub fn i32(context: &Context, value: i32) -> Attribute<'_> {
        IntegerAttribute::new(IntegerType::new(context, 32).into(), i64::from(value)).into()
    }
    /// An `index`.
    pub fn index(context: &Context, value: i64) -> Attribute<'_> {
        IntegerAttribute::new(Type::index(context), value).into()
    }
    /// A boolean.
    pub fn bool(context: &Context, value: bool) -> Attribute<'_> {
        BoolAttribute::new(context, value).into()
    }
    /// A float of the given type.
    pub fn float<'c>(context: &'c Context, ty: Type<'c>, value: f64) -> Attribute<'c> {
        FloatAttribute::new(context, ty, value).into()
    }
    /// `array<i64: ...>`.
    pub fn i64s<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
        DenseI64ArrayAttribute::new(context, values).into()
    }
    /// `array<i8: ...>`.
    pub fn bytes<'c>(context: &'c Context, bytes: &[u8]) -> Attribute<'c> {
        let values = bytes.as_ptr().cast();
        // Safety: the context copies as many bytes as there are.
        unsafe {
            let raw = mlir_sys::mlirDenseI8ArrayGet(context.to_raw(), bytes.len() as isize, values);
            Attribute::from_raw(raw)
        }
    }
    /// An array.
    pub fn array<'c>(context: &'c Context, values: &[Attribute<'c>]) -> Attribute<'c> {
        ArrayAttribute::new(context, values).into()
    }
    /// `@name`.
    pub fn symbol<'c>(context: &'c Context, name: &str) -> Attribute<'c> {
        FlatSymbolRefAttribute::new(context, name).into()
    }
    /// A type as an attribute.
    pub fn ty(ty: Type<'_>) -> Attribute<'_> {
        TypeAttribute::new(ty).into()
    }
    /// `unit`.
    pub fn unit(context: &Context) -> Attribute<'_> {
        Attribute::unit(context)
    }
    /// Parses any attribute's text.
    ///
    /// # Panics
    /// When the text is not an attribute.
    pub fn parse<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
        Attribute::parse(context, text).unwrap_or_else(|| panic!("not an attribute: {text}"))
    }
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
