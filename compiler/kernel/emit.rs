//! Appends `arith`, `scf`, `vector` and `memref` ops at the end of a block.
use irc_mlir::ops::{arith, llvm, memref, scf, vector};
use irc_mlir::{OpSpec, attr, read};
use melior::{
    Context,
    ir::{
        Attribute, Block, BlockLike, BlockRef, Location, Region, RegionLike, Type, TypeLike, Value,
        ValueLike,
        attribute::DenseElementsAttribute,
        operation::{OperationLike, OperationRef},
        r#type::{IntegerType, MemRefType, ShapedTypeLike},
    },
};

/// The number of elements of one SSA value: a scalar, or a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// One element.
    Scalar,
    /// A 1-D vector.
    Vector(i64),
}

impl Lanes {
    /// The type of this number of `element`s.
    pub fn of<'c>(self, element: Type<'c>) -> Type<'c> {
        match self {
            Self::Scalar => element,
            Self::Vector(width) => Type::vector(&[width as u64], element),
        }
    }

    /// The number of elements per value.
    pub fn count(self) -> i64 {
        match self {
            Self::Scalar => 1,
            Self::Vector(width) => width,
        }
    }
}

/// A 1-D view of an argument, an output or a part of the workspace.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'c, 'a> {
    /// The `memref<N x element>`; of `i8` if it is read only and elements are `i1`, of which vectors pack the bits.
    pub memref: Value<'c, 'a>,
    /// The element type.
    pub element: Type<'c>,
}

impl<'c: 'a, 'a> Buffer<'c, 'a> {
    /// The element type in memory.
    pub fn stored(&self) -> Type<'c> {
        MemRefType::try_from(self.memref.r#type()).map_or(self.element, |ty| ty.element())
    }
}

/// Bytes of a cache line.
const LINE: i64 = 64;

/// Where a line of memory is prefetched to, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// Into the first-level cache, to be read.
    Read,
    /// Into the first-level cache, to be written.
    Write,
    /// Into the second-level cache, to be read.
    L2,
}

/// An insertion point at the end of a block. Copies append to the same block.
#[derive(Clone, Copy)]
pub struct Emit<'c, 'a> {
    /// The context of every op.
    pub context: &'c Context,
    /// The block to append to.
    pub block: BlockRef<'c, 'a>,
    /// The location of new ops.
    pub location: Location<'c>,
}

impl<'c: 'a, 'a> Emit<'c, 'a> {
    /// A spec of an op, without operands, results and attributes.
    pub fn spec(&self, name: &str) -> OpSpec<'c> {
        OpSpec::new(self.context, name, self.location)
    }

    /// Appends the op and returns its first result.
    pub fn value(&self, spec: OpSpec<'c>) -> Value<'c, 'a> {
        first_result(spec.append(&self.block))
    }

    /// Appends an op without attributes and returns its result.
    pub fn op(&self, name: &str, operands: &[Value<'c, 'a>], ty: Type<'c>) -> Value<'c, 'a> {
        self.value(self.spec(name).operands(operands).results(&[ty]))
    }

    /// Appends a two-operand op whose result has the type of its first operand.
    pub fn binary(&self, name: &str, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.op(name, &[a, b], a.r#type())
    }

    /// The same insertion point, with another location for new ops.
    pub fn at(&self, location: Location<'c>) -> Self {
        Self { location, ..*self }
    }

    /// `f32`.
    pub fn f32(&self) -> Type<'c> {
        Type::float32(self.context)
    }

    /// A signless integer type.
    pub fn int(&self, bits: u32) -> Type<'c> {
        IntegerType::new(self.context, bits).into()
    }

    /// An `index` constant.
    pub fn index(&self, value: i64) -> Value<'c, 'a> {
        self.constant(attr::index(self.context, value), Type::index(self.context), Lanes::Scalar)
    }

    /// A constant from its scalar attribute, splatted over the lanes.
    pub fn constant(
        &self,
        scalar: Attribute<'c>,
        element: Type<'c>,
        lanes: Lanes,
    ) -> Value<'c, 'a> {
        let ty = lanes.of(element);
        let value = match lanes {
            Lanes::Scalar => scalar,
            Lanes::Vector(_) => DenseElementsAttribute::splat(ty, scalar).into(),
        };
        self.value(self.spec(arith::CONSTANT).attr("value", value).results(&[ty]))
    }

    /// A floating-point constant.
    pub fn float(&self, value: f64, element: Type<'c>, lanes: Lanes) -> Value<'c, 'a> {
        self.constant(attr::float(self.context, element, value), element, lanes)
    }

    /// An integer constant of the given width.
    pub fn integer(&self, value: i64, bits: u32, lanes: Lanes) -> Value<'c, 'a> {
        let element = self.int(bits);
        let scalar = melior::ir::attribute::IntegerAttribute::new(element, value).into();
        self.constant(scalar, element, lanes)
    }

    /// The zero of a float, integer or index type.
    pub fn zero(&self, element: Type<'c>, lanes: Lanes) -> Value<'c, 'a> {
        if is_float(element) {
            return self.float(0.0, element, lanes);
        }
        let scalar = melior::ir::attribute::IntegerAttribute::new(element, 0).into();
        self.constant(scalar, element, lanes)
    }

    /// `a + b` on indices.
    pub fn add(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::ADDI, a, b)
    }

    /// `a + constant` on indices; `a` itself for zero.
    pub fn offset(&self, a: Value<'c, 'a>, by: i64) -> Value<'c, 'a> {
        if by == 0 { a } else { self.add(a, self.index(by)) }
    }

    /// `a * constant` on indices; `a` itself for one.
    pub fn scale(&self, a: Value<'c, 'a>, by: i64) -> Value<'c, 'a> {
        if by == 1 { a } else { self.binary(arith::MULI, a, self.index(by)) }
    }

    /// `base + sum(iv * coefficient)`, without the zero terms.
    pub fn linear(
        &self,
        base: Value<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        coefs: &[i64],
    ) -> Value<'c, 'a> {
        let terms = ivs.iter().zip(coefs).filter(|(_, coef)| **coef != 0);
        terms.fold(base, |sum, (iv, coef)| self.add(sum, self.scale(*iv, *coef)))
    }

    /// The minimum of two indices.
    pub fn min(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::MINSI, a, b)
    }

    /// The maximum of two indices.
    pub fn max(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::MAXSI, a, b)
    }

    /// Compares two indices with an `arith.cmpi` predicate number.
    pub fn compare(&self, predicate: i64, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        let spec = self.spec(arith::CMPI).operands(&[a, b]).results(&[self.int(1)]);
        self.value(spec.attr("predicate", attr::i64(self.context, predicate)))
    }

    /// A scalar in every lane.
    pub fn splat(&self, scalar: Value<'c, 'a>, lanes: Lanes) -> Value<'c, 'a> {
        match lanes {
            Lanes::Scalar => scalar,
            Lanes::Vector(_) => self.op(vector::BROADCAST, &[scalar], lanes.of(scalar.r#type())),
        }
    }

    /// Loads one element.
    pub fn load(&self, buffer: Buffer<'c, 'a>, at: Value<'c, 'a>) -> Value<'c, 'a> {
        let value = self.op(memref::LOAD, &[buffer.memref, at], buffer.stored());
        self.of_bytes(value, buffer, Lanes::Scalar)
    }

    /// Loaded elements as they are computed with: bytes that are `i1` are compared with 0.
    fn of_bytes(
        &self,
        value: Value<'c, 'a>,
        buffer: Buffer<'c, 'a>,
        lanes: Lanes,
    ) -> Value<'c, 'a> {
        const NOT_EQUAL: i64 = 1;
        if buffer.stored() == buffer.element {
            return value;
        }
        let operands = [value, self.zero(buffer.stored(), lanes)];
        let predicate = attr::i64(self.context, NOT_EQUAL);
        let spec = self.spec(arith::CMPI).attr("predicate", predicate).operands(&operands);
        self.value(spec.results(&[lanes.of(buffer.element)]))
    }

    /// Loads contiguous elements from `at` on; masked-off lanes are zero and not read.
    pub fn load_lanes(
        &self,
        buffer: Buffer<'c, 'a>,
        at: Value<'c, 'a>,
        lanes: Lanes,
        mask: Option<Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        let ty = lanes.of(buffer.stored());
        let value = match (lanes, mask) {
            (Lanes::Scalar, _) => return self.load(buffer, at),
            (_, None) => self.op(vector::LOAD, &[buffer.memref, at], ty),
            (_, Some(mask)) => {
                let zero = self.zero(buffer.stored(), lanes);
                self.op(vector::MASKEDLOAD, &[buffer.memref, at, mask, zero], ty)
            }
        };
        self.of_bytes(value, buffer, lanes)
    }

    /// Loads contiguous elements from `at` on; masked-off lanes are not read, and are those of another vector.
    pub fn load_beside(
        &self,
        buffer: Buffer<'c, 'a>,
        at: Value<'c, 'a>,
        (mask, outside): (Value<'c, 'a>, Value<'c, 'a>),
    ) -> Value<'c, 'a> {
        let operands = [buffer.memref, at, mask, outside];
        self.op(vector::MASKEDLOAD, &operands, outside.r#type())
    }

    /// Loads elements at `at + stride * lane`: every second one by two loads, if which lanes are needed is known.
    pub fn load_strided(
        &self,
        buffer: Buffer<'c, 'a>,
        (at, stride): (Value<'c, 'a>, i64),
        lanes: Lanes,
        mask: Option<Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        let count = lanes.count();
        let live = mask.map_or(Some(count), first_lanes_of);
        match live
            .filter(|live| stride == 2 && buffer.element.is_f32() && (1..=count).contains(live))
        {
            None => self.gather(buffer, at, self.iota(stride, lanes), lanes, mask),
            Some(live) => {
                // The last element that is read is the last one that is needed.
                let length = 2 * live - 1;
                let first = self.load_lanes(buffer, at, lanes, self.tail_mask(length, lanes));
                let rest = length - (count - 1);
                let second = match rest > 0 {
                    false => first,
                    true => {
                        let mask = self.tail_mask(rest, lanes);
                        self.load_lanes(buffer, self.offset(at, count - 1), lanes, mask)
                    }
                };
                let pick = |lane| if 2 * lane < count { 2 * lane } else { 2 * lane + 1 };
                self.shuffle(first, second, &(0..count).map(pick).collect::<Vec<_>>())
            }
        }
    }

    /// Loads elements at `at + offsets[lane]`.
    pub fn gather(
        &self,
        buffer: Buffer<'c, 'a>,
        at: Value<'c, 'a>,
        offsets: Value<'c, 'a>,
        lanes: Lanes,
        mask: Option<Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        let mask = mask.unwrap_or_else(|| self.integer(1, 1, lanes));
        let zero = self.zero(buffer.stored(), lanes);
        let operands = [buffer.memref, at, offsets, mask, zero];
        let value = self.op(vector::GATHER, &operands, lanes.of(buffer.stored()));
        self.of_bytes(value, buffer, lanes)
    }

    /// Stores one element, or contiguous lanes from `at` on where the mask is set.
    pub fn store(
        &self,
        value: Value<'c, 'a>,
        buffer: Buffer<'c, 'a>,
        at: Value<'c, 'a>,
        lanes: Lanes,
        mask: Option<Value<'c, 'a>>,
    ) {
        if let (Lanes::Vector(_), Some(mask)) = (lanes, mask)
            && first_lanes_of(mask) == Some(1)
        {
            // LLVM 22 stores more than one lane of a truncated vector then; see docs/kernels.md.
            let first = self.extract(value, buffer.element, 0);
            return self.store(first, buffer, at, Lanes::Scalar, None);
        }
        let (name, operands) = match (lanes, mask) {
            (Lanes::Scalar, _) => (memref::STORE, vec![value, buffer.memref, at]),
            (_, None) => (vector::STORE, vec![value, buffer.memref, at]),
            (_, Some(mask)) => (vector::MASKEDSTORE, vec![buffer.memref, at, mask, value]),
        };
        self.spec(name).operands(&operands).append(&self.block);
    }

    /// Stores a vector of `f32` past the caches, at an address that is a multiple of its size. Other threads see it after a
    /// [`Self::fence`].
    pub fn stream(
        &self,
        value: Value<'c, 'a>,
        buffer: Buffer<'c, 'a>,
        at: Value<'c, 'a>,
        lanes: Lanes,
    ) {
        self.spec(vector::STORE)
            .operands(&[value, buffer.memref, at])
            .attr("nontemporal", attr::bool(self.context, true))
            .attr("alignment", attr::i64(self.context, 4 * lanes.count()))
            .append(&self.block);
    }

    /// Makes all stores so far visible to other threads before later ones.
    pub fn fence(&self) {
        const SEQUENTIALLY_CONSISTENT: i64 = 7;
        self.spec(llvm::FENCE)
            .attr("ordering", attr::i64(self.context, SEQUENTIALLY_CONSISTENT))
            .append(&self.block);
    }

    /// The address of memory.
    pub fn address(&self, buffer: Buffer<'c, 'a>) -> Value<'c, 'a> {
        let index = Type::index(self.context);
        self.op(memref::EXTRACT_ALIGNED_POINTER_AS_INDEX, &[buffer.memref], index)
    }

    /// Whether memory starts at a multiple of the size of a cache line.
    pub fn is_aligned(&self, buffer: Buffer<'c, 'a>) -> Value<'c, 'a> {
        let rest = self.binary(arith::ANDI, self.address(buffer), self.index(LINE - 1));
        self.compare(0, rest, self.index(0))
    }

    /// Memory on the stack for so many elements, aligned to a cache line.
    pub fn stack(&self, elements: i64, element: Type<'c>) -> Buffer<'c, 'a> {
        let ty = MemRefType::new(element, &[elements], None, None).into();
        let segments = attr::parse(self.context, "array<i32: 0, 0>");
        let spec = self.spec(memref::ALLOCA).results(&[ty]).attr("operandSegmentSizes", segments);
        let memref = self.value(spec.attr("alignment", attr::i64(self.context, LINE)));
        Buffer { memref, element }
    }

    /// Prefetches the cache line of an element, for a read or a write.
    pub fn prefetch(&self, buffer: Buffer<'c, 'a>, at: Value<'c, 'a>, to: Prefetch) {
        self.spec(memref::PREFETCH)
            .operands(&[buffer.memref, at])
            .attr("isWrite", attr::bool(self.context, to == Prefetch::Write))
            .attr("localityHint", attr::i32(self.context, if to == Prefetch::L2 { 2 } else { 3 }))
            .attr("isDataCache", attr::bool(self.context, true))
            .append(&self.block);
    }

    /// A mask with the first `live` lanes set; `None` if all are.
    pub fn tail_mask(&self, live: i64, lanes: Lanes) -> Option<Value<'c, 'a>> {
        if live >= lanes.count() {
            return None;
        }
        let sizes = attr::i64s(self.context, &[live]);
        let spec = self.spec(vector::CONSTANT_MASK).attr("mask_dim_sizes", sizes);
        Some(self.value(spec.results(&[lanes.of(self.int(1))])))
    }

    /// A mask with the first `live` lanes set, which may be more than there are; `None` for one element.
    pub fn first_lanes(&self, live: Value<'c, 'a>, lanes: Lanes) -> Option<Value<'c, 'a>> {
        match lanes {
            Lanes::Scalar => None,
            Lanes::Vector(_) => Some(self.op(vector::CREATE_MASK, &[live], lanes.of(self.int(1)))),
        }
    }

    /// `0, stride, 2 * stride, ...` as indices.
    pub fn iota(&self, stride: i64, lanes: Lanes) -> Value<'c, 'a> {
        let step =
            self.value(self.spec(vector::STEP).results(&[lanes.of(Type::index(self.context))]));
        let stride = self.splat(self.index(stride), lanes);
        self.binary(arith::MULI, step, stride)
    }

    /// `width` lanes of a vector, starting at lane `from`.
    pub fn slice(
        &self,
        vector: Value<'c, 'a>,
        element: Type<'c>,
        from: i64,
        width: i64,
    ) -> Value<'c, 'a> {
        let list = |value: i64| attr::array(self.context, &[attr::i64(self.context, value)]);
        let spec = self.spec(vector::EXTRACT_STRIDED_SLICE).operands(&[vector]);
        let spec =
            spec.attr("offsets", list(from)).attr("sizes", list(width)).attr("strides", list(1));
        self.value(spec.results(&[Type::vector(&[width as u64], element)]))
    }

    /// The lanes of two vectors of so many, one after the other.
    pub fn concatenated(
        &self,
        [low, high]: [Value<'c, 'a>; 2],
        element: Type<'c>,
        lanes: i64,
    ) -> Value<'c, 'a> {
        let picks: Vec<i64> = (0..2 * lanes).collect();
        self.shuffle_to(low, high, &picks, Lanes::Vector(2 * lanes).of(element))
    }

    /// The lanes of a vector combined by halves to one scalar.
    ///
    /// # Errors
    /// Those of `combine`, which gets two values of so many lanes.
    pub fn by_halves<E>(
        &self,
        vector: Value<'c, 'a>,
        element: Type<'c>,
        lanes: Lanes,
        combine: impl Fn(Value<'c, 'a>, Value<'c, 'a>, Lanes) -> Result<Value<'c, 'a>, E>,
    ) -> Result<Value<'c, 'a>, E> {
        let (mut value, mut width) = (vector, lanes.count());
        while width > 1 {
            width /= 2;
            let [low, high] = [0, width].map(|from| self.slice(value, element, from, width));
            value = combine(low, high, Lanes::Vector(width))?;
        }
        Ok(self.extract(value, element, 0))
    }

    /// One lane as a scalar.
    pub fn extract(&self, vector: Value<'c, 'a>, element: Type<'c>, lane: i64) -> Value<'c, 'a> {
        let spec = self.spec(vector::EXTRACT).operands(&[vector]).results(&[element]);
        self.value(spec.attr("static_position", attr::i64s(self.context, &[lane])))
    }

    /// Lanes of `a` and `b` in the order of `picks`; the numbers of `b`'s lanes follow those of `a`'s.
    pub fn shuffle(&self, a: Value<'c, 'a>, b: Value<'c, 'a>, picks: &[i64]) -> Value<'c, 'a> {
        self.shuffle_to(a, b, picks, a.r#type())
    }

    /// The same with another number of lanes: the type has as many as are picked.
    pub fn shuffle_to(
        &self,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
        picks: &[i64],
        ty: Type<'c>,
    ) -> Value<'c, 'a> {
        let spec = self.spec(vector::SHUFFLE).operands(&[a, b]).results(&[ty]);
        self.value(spec.attr("mask", attr::i64s(self.context, picks)))
    }

    /// `scf.for`: `body` gets the induction variable and the carried values and returns their next values.
    pub fn for_each<E>(
        &self,
        (lower, upper, step): (Value<'c, 'a>, Value<'c, 'a>, i64),
        carried: &[Value<'c, 'a>],
        body: impl FnOnce(Self, Value<'c, 'a>, &[Value<'c, 'a>]) -> Result<Vec<Value<'c, 'a>>, E>,
    ) -> Result<Vec<Value<'c, 'a>>, E> {
        self.for_each_step((lower, upper, self.index(step)), carried, body)
    }

    /// As [`Emit::for_each`], with a step that is a value.
    pub fn for_each_step<E>(
        &self,
        (lower, upper, step): (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>),
        carried: &[Value<'c, 'a>],
        body: impl FnOnce(Self, Value<'c, 'a>, &[Value<'c, 'a>]) -> Result<Vec<Value<'c, 'a>>, E>,
    ) -> Result<Vec<Value<'c, 'a>>, E> {
        let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
        let mut arguments = vec![(Type::index(self.context), self.location)];
        arguments.extend(types.iter().map(|ty| (*ty, self.location)));
        let region = Region::new();
        region.append_block(Block::new(&arguments));
        let mut operands = vec![lower, upper, step];
        operands.extend(carried);
        let spec = self.spec(scf::FOR).operands(&operands).results(&types).region(region);
        let op = spec.append(&self.block);
        let inner = Self { block: body_of(op, 0), ..*self };
        let arguments = arguments_of(inner.block);
        let next = body(inner, arguments[0], &arguments[1..])?;
        inner.spec(scf::YIELD).operands(&next).append(&inner.block);
        Ok(op.results().map(Into::into).collect())
    }

    /// `scf.while`: `step` gets the carried values and returns whether to continue, and their next values.
    pub fn repeat_while<E>(
        &self,
        carried: &[Value<'c, 'a>],
        step: impl FnOnce(Self, &[Value<'c, 'a>]) -> Result<(Value<'c, 'a>, Vec<Value<'c, 'a>>), E>,
    ) -> Result<Vec<Value<'c, 'a>>, E> {
        let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
        let arguments: Vec<_> = types.iter().map(|ty| (*ty, self.location)).collect();
        let region = || {
            let region = Region::new();
            region.append_block(Block::new(&arguments));
            region
        };
        let spec = self.spec(scf::WHILE).operands(carried).results(&types);
        let op = spec.region(region()).region(region()).append(&self.block);
        let [before, after] = [0, 1].map(|index| Self { block: body_of(op, index), ..*self });
        let (more, next) = step(before, &arguments_of(before.block))?;
        let operands: Vec<_> = [more].into_iter().chain(next).collect();
        before.spec(scf::CONDITION).operands(&operands).append(&before.block);
        after.spec(scf::YIELD).operands(&arguments_of(after.block)).append(&after.block);
        Ok(op.results().map(Into::into).collect())
    }

    /// A loop over `0..extent` without carried values; emits no loop for an extent of one.
    pub fn loop_over<E>(
        &self,
        extent: i64,
        body: impl FnOnce(Self, Value<'c, 'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        if extent == 1 {
            return body(*self, self.index(0));
        }
        let bounds = (self.index(0), self.index(extent), 1);
        self.for_each(bounds, &[], |e, iv, _| body(e, iv).map(|()| vec![])).map(|_| ())
    }

    /// A loop over the vectors of so many elements: `body` gets the first element of each, and the lanes of the last if
    /// it is not whole.
    pub fn each_vector<E>(
        &self,
        count: i64,
        lanes: Lanes,
        mut body: impl FnMut(Self, Value<'c, 'a>, Option<Value<'c, 'a>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = count / lanes.count() * lanes.count();
        if whole > 0 {
            let bounds = (self.index(0), self.index(whole), lanes.count());
            self.for_each(bounds, &[], |e, at, _| body(e, at, None).map(|()| vec![]))?;
        }
        match whole < count {
            true => body(*self, self.index(whole), self.tail_mask(count - whole, lanes)),
            false => Ok(()),
        }
    }

    /// `scf.if` with both branches yielding values of the given types.
    pub fn if_else<E>(
        &self,
        condition: Value<'c, 'a>,
        types: &[Type<'c>],
        then: impl FnOnce(Self) -> Result<Vec<Value<'c, 'a>>, E>,
        otherwise: impl FnOnce(Self) -> Result<Vec<Value<'c, 'a>>, E>,
    ) -> Result<Vec<Value<'c, 'a>>, E> {
        let region = || {
            let region = Region::new();
            region.append_block(Block::new(&[]));
            region
        };
        let spec = self.spec(scf::IF).operands(&[condition]).results(types);
        let op = spec.region(region()).region(region()).append(&self.block);
        let branch = |index| Self { block: body_of(op, index), ..*self };
        let (first, second) = (branch(0), branch(1));
        let values = then(first)?;
        first.spec(scf::YIELD).operands(&values).append(&first.block);
        let values = otherwise(second)?;
        second.spec(scf::YIELD).operands(&values).append(&second.block);
        Ok(op.results().map(Into::into).collect())
    }

    /// A 1-D memref of the workspace, starting at byte `offset`.
    pub fn workspace_view(
        &self,
        workspace: Value<'c, 'a>,
        offset: i64,
        elements: i64,
        element: Type<'c>,
    ) -> Buffer<'c, 'a> {
        let space = MemRefType::try_from(workspace.r#type()).ok().and_then(|ty| ty.memory_space());
        let ty = MemRefType::new(element, &[elements], None, space).into();
        let memref = self.op(memref::VIEW, &[workspace, self.index(offset)], ty);
        Buffer { memref, element }
    }

    /// As [`Emit::workspace_view`] of an argument of the function, at the start of the function's block.
    pub fn view_at_start(
        &self,
        block: BlockRef<'c, 'a>,
        workspace: Value<'c, 'a>,
        (offset, elements): (i64, i64),
        element: Type<'c>,
    ) -> Buffer<'c, 'a> {
        let index = Type::index(self.context);
        let start = self.spec(arith::CONSTANT).results(&[index]);
        let start = start.attr("value", attr::index(self.context, offset)).build();
        let start = block.insert_operation(0, start);
        let ty = MemRefType::new(element, &[elements], None, None).into();
        let view = self.spec(memref::VIEW).operands(&[workspace, first_result(start)]);
        let view = block.insert_operation_after(start, view.results(&[ty]).build());
        Buffer { memref: first_result(view), element }
    }
}

/// How many first lanes a mask has set, if it is a constant of those.
fn first_lanes_of(mask: Value<'_, '_>) -> Option<i64> {
    let made = read::defining_op(mask)?;
    let sizes = read::integers(&made, "mask_dim_sizes")?;
    let [lanes] = sizes[..] else { return None };
    (read::op_name(&made) == vector::CONSTANT_MASK).then_some(lanes)
}

fn body_of<'c: 'a, 'a>(op: OperationRef<'c, 'a>, region: usize) -> BlockRef<'c, 'a> {
    let region = op.region(region).unwrap_or_else(|error| panic!("op was built with it: {error}"));
    region.first_block().unwrap_or_else(|| panic!("the region was built with a block"))
}

fn arguments_of<'c: 'a, 'a>(block: BlockRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    let arguments = (0..block.argument_count()).map(|index| block.argument(index).map(Into::into));
    let arguments: Result<_, _> = arguments.collect();
    arguments.unwrap_or_else(|error| panic!("the block was built with these arguments: {error}"))
}

/// The first result of an op.
pub fn first_result<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Value<'c, 'a> {
    op.result(0).unwrap_or_else(|error| panic!("op was built with a result: {error}")).into()
}

/// Whether a scalar type is a float.
pub fn is_float(ty: Type<'_>) -> bool {
    ty.is_float()
}

/// Whether a scalar type is a 16-bit float, which is computed on in `f32`.
pub fn is_half(ty: Type<'_>) -> bool {
    ty.is_f16() || ty.is_bf16()
}
