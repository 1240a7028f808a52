//! Builds the ops of a planned function.
use irc_mlir::ops::{arith, cf, func, memref, scf};
use irc_mlir::{
    Attribute, Block, BlockRef, Context, Location, OpSpec, OperationLike, OperationRef, Region,
    RegionLike, RegionRef, Type, Value, attr, rebind, ty,
};
/// Memory: a buffer of bytes and an offset in it.
#[derive(Clone, Copy)]
pub struct Memory<'c, 'a> {
    /// A memref of bytes.
    pub buffer: Value<'c, 'a>,
    /// The first byte.
    pub offset: Offset<'c, 'a>,
}

/// A number of bytes.
#[derive(Clone, Copy)]
pub enum Offset<'c, 'a> {
    /// Known at compile time.
    Fixed(u64),
    /// Computed at run time.
    Computed(Value<'c, 'a>),
}

/// Appends ops to a block of a function.
pub struct Emit<'c, 'a> {
    /// The context.
    pub context: &'c Context,
    /// The function's region.
    pub region: RegionRef<'c, 'a>,
    /// The block that ops are appended to.
    pub block: BlockRef<'c, 'a>,
    /// The location of new ops.
    pub location: Location<'c>,
}

impl<'c: 'a, 'a> Emit<'c, 'a> {
    /// Appends an op.
    pub fn op(&self, spec: OpSpec<'c>) -> OperationRef<'c, 'a> {
        spec.append(&self.block)
    }

    /// A spec of an op.
    pub fn spec(&self, name: &str) -> OpSpec<'c> {
        OpSpec::new(self.context, name, self.location)
    }

    /// The result of an op with a single result.
    pub fn value(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        to: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Value<'c, 'a> {
        let spec = self.spec(name).operands(operands).results(&[to]);
        let spec = attributes.iter().fold(spec, |spec, (name, value)| spec.attr(name, *value));
        result(self.op(spec), 0)
    }

    /// `memref<{bytes}xi8>`.
    pub fn bytes(&self, bytes: u64) -> Type<'c> {
        ty::parse(self.context, &format!("memref<{bytes}xi8>"))
    }

    /// A type, parsed from text.
    pub fn ty(&self, text: &str) -> Type<'c> {
        ty::parse(self.context, text)
    }

    /// An index constant.
    pub fn index(&self, value: i64) -> Value<'c, 'a> {
        let value = attr::index(self.context, value);
        self.value(arith::CONSTANT, &[], Type::index(self.context), &[("value", value)])
    }

    /// A constant condition.
    pub fn flag(&self, value: bool) -> Value<'c, 'a> {
        let value = attr::bool(self.context, value);
        self.value(arith::CONSTANT, &[], self.ty("i1"), &[("value", value)])
    }

    /// An `i32` constant.
    pub fn i32(&self, value: i32) -> Value<'c, 'a> {
        let value = attr::i32(self.context, value);
        self.value(arith::CONSTANT, &[], self.ty("i32"), &[("value", value)])
    }

    /// A binary op; the result has the type of the first operand.
    pub fn binary(&self, name: &str, left: Value<'c, 'a>, right: Value<'c, 'a>) -> Value<'c, 'a> {
        let to = irc_mlir::ValueLike::r#type(&left);
        let plain = [arith::ADDI, arith::MULI, arith::SUBI].contains(&name);
        let overflow = || attr::parse(self.context, "#arith.overflow<none>");
        let flags: Vec<_> = if plain { vec![("overflowFlags", overflow())] } else { vec![] };
        self.value(name, &[left, right], to, &flags)
    }

    /// A comparison of integers, by the number of MLIR's predicate.
    pub fn compare(
        &self,
        predicate: Predicate,
        left: Value<'c, 'a>,
        right: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let predicate = attr::i64(self.context, predicate as i64);
        self.value(arith::CMPI, &[left, right], self.ty("i1"), &[("predicate", predicate)])
    }

    /// `yes` if a condition holds, otherwise `no`.
    pub fn select(
        &self,
        condition: Value<'c, 'a>,
        yes: Value<'c, 'a>,
        no: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let to = irc_mlir::ValueLike::r#type(&yes);
        self.value(arith::SELECT, &[condition, yes, no], to, &[])
    }

    /// Memory as a memref of static shape.
    pub fn view(&self, memory: Memory<'c, 'a>, to: Type<'c>) -> Value<'c, 'a> {
        let offset = self.offset(memory.offset);
        self.value(memref::VIEW, &[memory.buffer, offset], to, &[])
    }

    /// Memory as `memref<1xi8>`, which stands for any number of bytes.
    pub fn opaque(&self, memory: Memory<'c, 'a>) -> Value<'c, 'a> {
        self.view(memory, self.bytes(1))
    }

    /// An offset as an index.
    pub fn offset(&self, offset: Offset<'c, 'a>) -> Value<'c, 'a> {
        match offset {
            Offset::Fixed(bytes) => self.index(bytes.cast_signed()),
            Offset::Computed(bytes) => bytes,
        }
    }

    /// Memory at a larger offset.
    pub fn shifted(&self, memory: Memory<'c, 'a>, by: Value<'c, 'a>) -> Memory<'c, 'a> {
        let offset = self.binary(arith::ADDI, self.offset(memory.offset), by);
        Memory { buffer: memory.buffer, offset: Offset::Computed(offset) }
    }

    /// Copies bytes between memory that does not overlap.
    pub fn copy(&self, from: Memory<'c, 'a>, to: Memory<'c, 'a>, bytes: Value<'c, 'a>) {
        let any = self.ty("memref<?xi8>");
        let view = |memory: Memory<'c, 'a>| {
            let operands = [memory.buffer, self.offset(memory.offset), bytes];
            self.value(memref::VIEW, &operands, any, &[])
        };
        let operands = [view(from), view(to)];
        self.op(self.spec(memref::COPY).operands(&operands));
    }

    /// Calls a function.
    pub fn call(
        &self,
        callee: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
    ) -> Vec<Value<'c, 'a>> {
        let callee = attr::symbol(self.context, callee);
        let spec = self.spec(func::CALL).attr("callee", callee).operands(operands);
        results_of(self.op(spec.results(results)))
    }

    /// An element in memory, as stored.
    pub fn load(&self, memory: Memory<'c, 'a>, element: &str) -> Value<'c, 'a> {
        let view = self.view(memory, self.ty(&format!("memref<{element}>")));
        self.value(memref::LOAD, &[view], self.ty(element), &[])
    }

    /// An integer in memory as an index.
    pub fn load_index(&self, memory: Memory<'c, 'a>, element: &str) -> Value<'c, 'a> {
        let loaded = self.load(memory, element);
        self.value(arith::INDEX_CAST, &[loaded], Type::index(self.context), &[])
    }

    /// The condition that a `bool` in memory represents.
    pub fn load_bool(&self, memory: Memory<'c, 'a>) -> Value<'c, 'a> {
        let loaded = self.load(memory, "i8");
        let zero = attr::parse(self.context, "0 : i8");
        let zero = self.value(arith::CONSTANT, &[], self.ty("i8"), &[("value", zero)]);
        self.compare(Predicate::Ne, loaded, zero)
    }

    /// A new block at the end of the function.
    pub fn new_block(&self) -> BlockRef<'c, 'a> {
        self.region.append_block(Block::new(&[]))
    }

    /// Ends the block with a branch and continues in a new block; returns the block of the other case.
    pub fn branch(&mut self, condition: Value<'c, 'a>) -> BlockRef<'c, 'a> {
        let (next, other) = (self.new_block(), self.new_block());
        let segments = attr::parse(self.context, "array<i32: 1, 0, 0>");
        let spec = self.spec(cf::COND_BR).operands(&[condition]);
        self.op(spec.attr("operandSegmentSizes", segments).successors(&[&next, &other]));
        self.block = next;
        other
    }

    /// `scf.if` with two empty regions: see [`Emit::enter`].
    pub fn choose(&self, condition: Value<'c, 'a>, types: &[Type<'c>]) -> OperationRef<'c, 'a> {
        let spec = self.spec(scf::IF).operands(&[condition]).results(types);
        self.op(spec.region(with_block(&[])).region(with_block(&[])))
    }

    /// `scf.while` over some values, with an empty condition and an empty body.
    pub fn repeat(&self, first: &[Value<'c, 'a>]) -> OperationRef<'c, 'a> {
        let types: Vec<Type<'c>> = first.iter().map(irc_mlir::ValueLike::r#type).collect();
        let arguments: Vec<_> = types.iter().map(|ty| (*ty, self.location)).collect();
        let spec = self.spec(scf::WHILE).operands(first).results(&types);
        self.op(spec.region(with_block(&arguments)).region(with_block(&arguments)))
    }

    /// Continues in a region of an op; returns the previous block.
    pub fn enter(&mut self, op: OperationRef<'c, 'a>, region: usize) -> BlockRef<'c, 'a> {
        std::mem::replace(&mut self.block, block_of(op, region))
    }

    /// Ends a region by yielding values.
    pub fn give(&self, values: &[Value<'c, 'a>]) {
        self.op(self.spec(scf::YIELD).operands(values));
    }
}

/// MLIR's predicates of `arith.cmpi`.
#[derive(Clone, Copy)]
pub enum Predicate {
    /// `==`
    Eq = 0,
    /// `!=`
    Ne = 1,
    /// `<`, signed
    Lt = 2,
    /// `<=`, signed
    Le = 3,
    /// `>`, signed
    Gt = 4,
    /// `>=`, signed
    Ge = 5,
    /// `<=`, unsigned
    Ule = 7,
}

fn with_block<'c>(arguments: &[(Type<'c>, Location<'c>)]) -> Region<'c> {
    let region = Region::new();
    region.append_block(Block::new(arguments));
    region
}

/// The first block of a region of an op.
pub fn block_of<'c: 'a, 'a>(op: OperationRef<'c, 'a>, region: usize) -> BlockRef<'c, 'a> {
    let block = op.region(region).ok().and_then(|region| region.first_block());
    match block {
        Some(block) => block,
        None => unreachable!("the op was built with a block in each region"),
    }
}

/// The arguments of a block.
pub fn arguments_of<'c: 'a, 'a>(block: BlockRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    use irc_mlir::BlockLike;
    let argument = |index| Some(rebind(block.argument(index).ok()?.into()));
    (0..block.argument_count()).filter_map(argument).collect()
}

fn result<'c: 'a, 'a>(op: OperationRef<'c, 'a>, index: usize) -> Value<'c, 'a> {
    match op.result(index) {
        Ok(result) => rebind(result.into()),
        Err(_) => unreachable!("the op was built with this result"),
    }
}

/// The results of an op.
pub fn results_of<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    (0..op.result_count()).map(|index| result(op, index)).collect()
}
