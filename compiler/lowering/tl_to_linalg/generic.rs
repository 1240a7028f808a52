//! Emits `linalg.generic` and the tensor ops around it.
use super::{Contents, Lowered, squeezed, wide_dims};
use crate::kernel::{
    element::Element,
    emit::{Lanes, first_result},
    scope::{Scope, constant_spec},
};
use irc_mlir::ops::{linalg, tensor};
use irc_mlir::{
    Block, BlockLike, BlockRef, Context, Location, OpSpec, Region, RegionLike, Type, Value,
    ValueLike, attr, region_of, ty,
};

/// Appends ops to a kernel's block.
pub struct Emitter<'c, 'a> {
    pub context: &'c Context,
    pub block: BlockRef<'c, 'a>,
    pub location: Location<'c>,
}

/// An operand of a generic: the tensor and the loop of each of its dimensions.
pub struct Access<'c, 'a> {
    pub tensor: Value<'c, 'a>,
    pub loops: Vec<usize>,
}

/// An operand of a generic whose dimensions are sums of loops, each times a stride.
pub struct Sums<'c, 'a> {
    pub tensor: Value<'c, 'a>,
    pub dims: Vec<Vec<(usize, i64)>>,
}

impl<'c, 'a> Access<'c, 'a> {
    /// The same operand, each of whose dimensions is a sum of one loop.
    pub fn sums(&self) -> Sums<'c, 'a> {
        Sums { tensor: self.tensor, dims: self.loops.iter().map(|dim| vec![(*dim, 1)]).collect() }
    }
}

/// The loops of a generic: their number and which of them reduce.
pub struct Loops {
    pub count: usize,
    pub reductions: Vec<usize>,
}

impl Loops {
    /// Only parallel loops.
    pub fn parallel(count: usize) -> Self {
        Loops { count, reductions: Vec::new() }
    }
}

impl<'c: 'a, 'a> Emitter<'c, 'a> {
    pub fn new(context: &'c Context, block: BlockRef<'c, 'a>) -> Self {
        Self { context, block, location: Location::unknown(context) }
    }

    pub fn at(&self, location: Location<'c>) -> Self {
        Self { context: self.context, block: self.block, location }
    }

    /// Appends an op with one result.
    pub fn value(&self, spec: OpSpec<'c>) -> Value<'c, 'a> {
        first_result(spec.append(&self.block))
    }

    pub fn spec(&self, name: &str) -> OpSpec<'c> {
        OpSpec::new(self.context, name, self.location)
    }

    /// An uninitialised tensor.
    pub fn empty(&self, shape: &[i64], element: Element<'c>) -> Value<'c, 'a> {
        self.value(self.spec(tensor::EMPTY).results(&[ty::tensor(shape, element.storage)]))
    }

    /// A constant before the generics that use it.
    pub fn constant(&self, element: Element<'c>, value: f64) -> Value<'c, 'a> {
        self.value(constant_spec(self.context, self.location, element, value))
    }

    /// A tensor filled with one value.
    pub fn fill(&self, shape: &[i64], element: Element<'c>, value: f64) -> Value<'c, 'a> {
        let scalar = self.constant(element, value);
        let init = self.empty(shape, element);
        let block = Block::new(&[(element.storage, self.location); 2]);
        if let Ok(input) = block.argument(0) {
            OpSpec::new(self.context, linalg::YIELD, self.location)
                .operands(&[input.into()])
                .append(&block);
        }
        let region = region_of(block);
        self.value(
            self.spec(linalg::FILL)
                .operands(&[scalar, init])
                .results(&[init.r#type()])
                .attr("operandSegmentSizes", attr::parse(self.context, "array<i32: 1, 1>"))
                .region(region),
        )
    }

    /// A `linalg.generic`; `body` is passed a scope and one scalar per input, then the output's.
    pub fn generic(
        &self,
        inputs: &[Access<'c, 'a>],
        output: Access<'c, 'a>,
        loops: &Loops,
        body: impl FnOnce(&Scope<'c, '_>, &[Value<'c, '_>]) -> Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let sums: Vec<Sums> = inputs.iter().map(Access::sums).collect();
        self.generic_of_sums(&sums, output, loops, body)
    }

    /// Like [`Emitter::generic`], with inputs whose dimensions are sums of loops.
    pub fn generic_of_sums(
        &self,
        inputs: &[Sums<'c, 'a>],
        output: Access<'c, 'a>,
        loops: &Loops,
        body: impl FnOnce(&Scope<'c, '_>, &[Value<'c, '_>]) -> Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let written = output.sums();
        let accesses: Vec<&Sums> = inputs.iter().chain([&written]).collect();
        let operands: Vec<Value> = accesses.iter().map(|access| access.tensor).collect();
        let scalars: Vec<_> = operands
            .iter()
            .filter_map(|tensor| irc_mlir::read::tensor_of(tensor.r#type()))
            .map(|(_, element)| (element, self.location))
            .collect();
        let region = Region::new();
        let block = region.append_block(Block::new(&scalars));
        let arguments: Vec<Value> = (0..scalars.len())
            .filter_map(|index| Some(block.argument(index).ok()?.into()))
            .collect();
        // The block may be used for 'a: it is owned by the op appended below.
        let (context, location) = (self.context, self.location);
        let scope = Scope { context, block, location, expand: false, lanes: Lanes::Scalar };
        let yielded = body(&scope, &arguments);
        OpSpec::new(self.context, linalg::YIELD, self.location).operands(&[yielded]).append(&block);

        let maps: Vec<String> =
            accesses.iter().map(|access| map_text(loops.count, &access.dims)).collect();
        let kinds = (0..loops.count).map(|index| {
            let reduces = loops.reductions.contains(&index);
            let kind = if reduces { "reduction" } else { "parallel" };
            format!("#linalg.iterator_type<{kind}>")
        });
        let segments = format!("array<i32: {}, 1>", inputs.len());
        self.value(
            self.spec(linalg::GENERIC)
                .operands(&operands)
                .results(&[output.tensor.r#type()])
                .attr("indexing_maps", attr::parse(self.context, &format!("[{}]", maps.join(", "))))
                .attr("iterator_types", attr::parse(self.context, &list(kinds)))
                .attr("operandSegmentSizes", attr::parse(self.context, &segments))
                .region(region),
        )
    }

    /// The tensor of a value, filled if it is a splat.
    pub fn materialise(&self, value: &Lowered<'c, 'a>) -> Value<'c, 'a> {
        match value.contents {
            Contents::Tensor(tensor) => tensor,
            Contents::Splat(number) => self.fill(&squeezed(&value.shape), value.element, number),
        }
    }

    /// Drops the dimensions of extent 1.
    pub fn squeeze(
        &self,
        tensor: Value<'c, 'a>,
        shape: &[i64],
        element: Element<'c>,
    ) -> Value<'c, 'a> {
        if wide_dims(shape).len() == shape.len() {
            return tensor;
        }
        let narrow = ty::tensor(&squeezed(shape), element.storage);
        self.value(
            self.spec(tensor::COLLAPSE_SHAPE)
                .operands(&[tensor])
                .results(&[narrow])
                .attr("reassociation", attr::parse(self.context, &reassociation(shape))),
        )
    }

    /// Restores the dimensions of extent 1.
    pub fn expand(&self, tensor: Value<'c, 'a>, shape: &[i64], wide: Type<'c>) -> Value<'c, 'a> {
        if wide_dims(shape).len() == shape.len() {
            return tensor;
        }
        self.value(
            self.spec(tensor::EXPAND_SHAPE)
                .operands(&[tensor])
                .results(&[wide])
                .attr("reassociation", attr::parse(self.context, &reassociation(shape)))
                .attr("static_output_shape", attr::i64s(self.context, shape)),
        )
    }
}

fn map_text(count: usize, dims: &[Vec<(usize, i64)>]) -> String {
    let all: Vec<_> = (0..count).map(|dim| format!("d{dim}")).collect();
    let term = |(dim, step): &(usize, i64)| match step {
        1 => format!("d{dim}"),
        _ => format!("d{dim} * {step}"),
    };
    let sum = |terms: &Vec<(usize, i64)>| match &terms[..] {
        [] => "0".to_owned(),
        _ => terms.iter().map(term).collect::<Vec<_>>().join(" + "),
    };
    let used: Vec<_> = dims.iter().map(sum).collect();
    format!("affine_map<({}) -> ({})>", all.join(", "), used.join(", "))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Groups each dimension that is not 1 with the ones before it; trailing ones join the last group.
fn reassociation(shape: &[i64]) -> String {
    let wide = wide_dims(shape);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut start = 0;
    for (position, dim) in wide.iter().enumerate() {
        let end = if position + 1 == wide.len() { shape.len() } else { dim + 1 };
        groups.push((start..end).collect());
        start = end;
    }
    list(groups.iter().map(|group| list(group.iter().map(usize::to_string))))
}
