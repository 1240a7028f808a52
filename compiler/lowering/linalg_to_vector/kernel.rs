//! The kernel as data: tensors, and stages that compute them over an iteration space.
//!
//! Every view of a tensor (transposed, broadcast, sliced, reshaped) becomes an [`Access`] to the
//! underlying linear buffer, so that later steps only see coefficients. `view` computes the effect of
//! shape ops on views.

mod view;

use super::{
    access::{Access, Linear, parse_map},
    error::{LowerError, Result},
    layout::{Layouts, row_major},
};
use irc_mlir::ops::{arith, func, linalg, math, tensor};
use irc_mlir::{
    Attribute, BlockLike, BlockRef, OperationLike, OperationRef, RegionLike, Type, Value, ValueLike,
};
use melior::ir::{
    attribute::DenseElementsAttribute,
    block::BlockArgument,
    operation::OperationResult,
    r#type::{RankedTensorType, ShapedTypeLike},
};
use view::{View, collapse, expand, reassociation, slice, wanted};

/// Index of a tensor in [`Kernel::tensors`].
pub type TensorId = usize;

/// The origin of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin<'c> {
    /// An argument of the function.
    Argument(usize),
    /// A splat of a scalar.
    Splat(Attribute<'c>),
    /// A constant with different elements: its `dense` attribute.
    Dense(Attribute<'c>),
    /// `tensor.empty`.
    Undefined,
    /// The result of a stage.
    Stage(usize),
}

/// A tensor of static shape, row-major.
#[derive(Debug, Clone)]
pub struct Tensor<'c> {
    /// Sizes in elements.
    pub shape: Vec<i64>,
    /// The element type.
    pub element: Type<'c>,
    /// Where the elements come from.
    pub origin: Origin<'c>,
}

/// An operand of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// The tensor read.
    pub tensor: TensorId,
    /// The element read by each iteration.
    pub access: Access,
}

/// A result of a stage.
#[derive(Debug, Clone)]
pub struct Output {
    /// The tensor written.
    pub tensor: TensorId,
    /// The element written by each iteration.
    pub access: Access,
    /// The initial value of the region's accumulator argument: the tensor of `outs`.
    pub init: Operand,
    /// Whether the region reads that argument.
    pub reads_init: bool,
}

/// One `linalg.generic`: its loops except those of size one, parallel ones first, in the order in
/// which they traverse the first output.
#[derive(Debug, Clone)]
pub struct Stage<'c, 'a> {
    /// The op, for messages and locations.
    pub op: OperationRef<'c, 'a>,
    /// Sizes of the loops.
    pub sizes: Vec<i64>,
    /// The number of parallel loops; the others reduce.
    pub parallel: usize,
    /// The new position of each loop of the op; `None` for a loop of size one.
    pub loop_of: Vec<Option<usize>>,
    /// Tensors read through the region's arguments.
    pub inputs: Vec<Operand>,
    /// Tensors written.
    pub outputs: Vec<Output>,
    /// Tensors read by `tensor.extract` in the region.
    pub gathered: Vec<TensorId>,
    /// The region's block.
    pub body: BlockRef<'c, 'a>,
}

impl Stage<'_, '_> {
    /// Whether any loop reduces.
    pub fn reduces(&self) -> bool {
        self.parallel < self.sizes.len()
    }

    /// The stage with its last loops merged, so that `count` loops remain; `None` if an access
    /// cannot be merged, or the region uses the index of a loop.
    pub fn joined(&self, count: usize) -> Option<Self> {
        let indices = irc_mlir::walk_collect(self.op, |op| name_of(op) == linalg::INDEX);
        if self.reduces() || count == 0 || self.sizes.len() <= count || !indices.is_empty() {
            return None;
        }
        let first = count - 1;
        let join = |access: &Access| {
            let coefs = &access.coefs;
            let walks = (first..coefs.len() - 1)
                .all(|dim| coefs[dim] == coefs[dim + 1] * self.sizes[dim + 1]);
            let kept = [&coefs[..first], &coefs[coefs.len() - 1..]].concat();
            walks.then_some(Access { offset: access.offset, coefs: kept })
        };
        let mut joined = self.clone();
        for operand in &mut joined.inputs {
            operand.access = join(&operand.access)?;
        }
        for output in &mut joined.outputs {
            output.access = join(&output.access)?;
            output.init.access = join(&output.init.access)?;
        }
        joined.sizes.truncate(first);
        joined.sizes.push(self.sizes[first..].iter().product());
        joined.parallel = count;
        joined.loop_of = vec![None; self.loop_of.len()];
        Some(joined)
    }
}

/// A kernel function as data.
#[derive(Debug)]
pub struct Kernel<'c, 'a> {
    /// Every tensor.
    pub tensors: Vec<Tensor<'c>>,
    /// Every stage, in program order.
    pub stages: Vec<Stage<'c, 'a>>,
    /// The tensors returned, with the view of them that is returned.
    pub results: Vec<Operand>,
    /// The sizes of each result.
    pub result_shapes: Vec<Vec<i64>>,
    views: Vec<(Value<'c, 'a>, View)>,
    /// The strides of values that are computed in place in a result.
    wanted: Vec<(Value<'c, 'a>, Vec<i64>)>,
}

impl<'c: 'a, 'a> Kernel<'c, 'a> {
    /// The number of ops of a stage per iteration; a math function counts as several.
    pub fn ops(&self, stage: usize) -> usize {
        let is_op = |op: OperationRef<'_, '_>| !name_of(op).starts_with(linalg::PREFIX);
        let ops = irc_mlir::walk_collect(self.stages[stage].op, is_op).into_iter();
        ops.map(|op| if name_of(op).starts_with(math::PREFIX) { 16 } else { 1 }).sum()
    }

    /// Reads a function whose arguments and results have the given layouts.
    ///
    /// # Errors
    /// At the first op that the input contract does not allow.
    pub fn read(func: OperationRef<'c, 'a>, layouts: &Layouts) -> Result<Self> {
        let block = entry(func)?;
        let mut kernel = Self {
            tensors: vec![],
            stages: vec![],
            results: vec![],
            result_shapes: vec![],
            views: vec![],
            wanted: wanted(block, layouts)?,
        };
        for index in 0..block.argument_count() {
            let value: Value = argument(func, block, index)?;
            let strides = layouts.argument(index).map(<[i64]>::to_vec);
            kernel.define(func, value, Origin::Argument(index), strides)?;
        }
        let mut next = block.first_operation();
        while let Some(op) = next {
            kernel.read_op(op)?;
            next = op.next_in_block();
        }
        Ok(kernel)
    }

    /// The tensor viewed by a value, with the offset and strides of the view.
    pub fn view_of(&self, value: Value<'c, 'a>) -> Option<(TensorId, i64, &[i64])> {
        let (_, view) = self.views.iter().find(|(known, _)| *known == value)?;
        Some((view.tensor, view.offset, &view.strides))
    }

    fn read_op(&mut self, op: OperationRef<'c, 'a>) -> Result<()> {
        let name = name_of(op);
        match name.as_str() {
            arith::CONSTANT => self.read_constant(op),
            tensor::EMPTY => self.define_result(op, Origin::Undefined),
            linalg::FILL => self.read_fill(op),
            linalg::GENERIC => self.read_generic(op),
            tensor::CAST => self.alias(op, |view, shape| Some(View { shape, ..view })),
            tensor::EXPAND_SHAPE => {
                let groups = reassociation(op)?;
                self.alias(op, |view, shape| expand(&view, shape, &groups))
            }
            tensor::COLLAPSE_SHAPE => {
                let groups = reassociation(op)?;
                self.alias(op, |view, shape| collapse(&view, shape, &groups))
            }
            tensor::EXTRACT_SLICE => self.read_slice(op),
            func::RETURN => self.read_return(op),
            _ => Err(LowerError::at(
                op,
                "no schedule for this op inside a kernel; hint: generalise named linalg ops first",
            )),
        }
    }

    fn read_constant(&mut self, op: OperationRef<'c, 'a>) -> Result<()> {
        let result = result_of(op)?;
        if shape_of(result.r#type()).is_none() {
            return Ok(());
        }
        let value = op.attribute("value").map_err(|error| LowerError::at(op, error.to_string()))?;
        let dense = DenseElementsAttribute::try_from(value)
            .map_err(|_| LowerError::at(op, "expected a dense constant"))?;
        let origin = if dense.is_splat() {
            Origin::Splat(dense.splat_value())
        } else {
            Origin::Dense(value)
        };
        self.define_result(op, origin)
    }

    fn read_fill(&mut self, op: OperationRef<'c, 'a>) -> Result<()> {
        let scalar = operand(op, 0)?;
        let splat = constant_of(scalar)
            .ok_or_else(|| LowerError::at(op, "expected a constant to fill with"))?;
        self.define_result(op, Origin::Splat(splat))
    }

    fn read_slice(&mut self, op: OperationRef<'c, 'a>) -> Result<()> {
        let list = |name| i64_list(op, name);
        let (offsets, sizes, steps) =
            (list("static_offsets")?, list("static_sizes")?, list("static_strides")?);
        if offsets.iter().chain(&sizes).chain(&steps).any(|value| *value == i64::MIN) {
            return Err(LowerError::at(op, "expected static offsets, sizes and strides"));
        }
        self.alias(op, |view, shape| slice(&view, shape, &offsets, &sizes, &steps))
    }

    fn read_return(&mut self, op: OperationRef<'c, 'a>) -> Result<()> {
        for value in op.operands() {
            let view = self.find(op, value)?.clone();
            let access = Access { offset: view.offset, coefs: view.strides };
            self.results.push(Operand { tensor: view.tensor, access });
            self.result_shapes.push(view.shape);
        }
        Ok(())
    }

    fn find(&self, op: OperationRef<'c, 'a>, value: Value<'c, 'a>) -> Result<&View> {
        let found = self.views.iter().find(|(known, _)| *known == value);
        found.map(|(_, view)| view).ok_or_else(|| {
            LowerError::at(
                op,
                format!("expected a tensor of the kernel, found '{}'", value.r#type()),
            )
        })
    }

    fn alias(
        &mut self,
        op: OperationRef<'c, 'a>,
        change: impl FnOnce(View, Vec<i64>) -> Option<View>,
    ) -> Result<()> {
        let view = self.find(op, operand(op, 0)?)?.clone();
        let result = result_of(op)?;
        let (shape, _) = static_shape(op, result.r#type())?;
        let found = change(view, shape).ok_or_else(|| {
            LowerError::at(op, "this view of a strided tensor needs a copy first")
        })?;
        self.views.push((result, found));
        Ok(())
    }

    fn define_result(&mut self, op: OperationRef<'c, 'a>, origin: Origin<'c>) -> Result<()> {
        self.define(op, result_of(op)?, origin, None).map(|_| ())
    }

    fn define(
        &mut self,
        op: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
        origin: Origin<'c>,
        strides: Option<Vec<i64>>,
    ) -> Result<TensorId> {
        let (shape, element) = static_shape(op, value.r#type())?;
        let tensor = self.tensors.len();
        let strides = strides.unwrap_or_else(|| row_major(&shape));
        self.views.push((value, View { tensor, offset: 0, strides, shape: shape.clone() }));
        self.tensors.push(Tensor { shape, element, origin });
        Ok(tensor)
    }

    fn read_generic(&mut self, op: OperationRef<'c, 'a>) -> Result<()> {
        let maps = indexing_maps(op)?;
        let outs = op.result_count();
        let ins = op.operand_count().checked_sub(outs).filter(|_| maps.len() == op.operand_count());
        let ins =
            ins.ok_or_else(|| LowerError::at(op, "expected one map and one result per output"))?;
        let views: Vec<View> =
            op.operands().map(|value| self.find(op, value).cloned()).collect::<Result<_>>()?;
        let kinds = iterator_kinds(op)?;
        let sizes = loop_sizes(op, &maps, &views, kinds.len())?;
        let raw: Vec<Access> =
            views.iter().zip(&maps).map(|(view, map)| access_of(view, map, kinds.len())).collect();
        let order = loop_order(&kinds, &sizes, raw.get(ins));
        let place = |d: usize| order.iter().position(|old| *old == d);
        let body = op.region(0).ok().and_then(|region| region.first_block());
        let body = body.ok_or_else(|| LowerError::at(op, "expected a region with a block"))?;
        let stage = self.stages.len();
        let input = |i: usize| Operand { tensor: views[i].tensor, access: raw[i].permuted(&order) };
        let inputs = (0..ins).map(&input).collect();
        let inits: Vec<Operand> = (ins..ins + outs).map(&input).collect();
        let mut outputs = vec![];
        for (index, init) in inits.into_iter().enumerate() {
            let value: Value =
                op.result(index).map_err(|e| LowerError::at(op, e.to_string()))?.into();
            let strides = self.wanted.iter().find(|(wanted, _)| *wanted == value);
            let strides = strides.map(|(_, strides)| strides.clone());
            let tensor = self.define(op, value, Origin::Stage(stage), strides)?;
            let view = self.find(op, value)?.clone();
            let access = access_of(&view, &maps[ins + index], kinds.len()).permuted(&order);
            let reads_init = !irc_mlir::uses(argument(op, body, ins + index)?).is_empty();
            outputs.push(Output { tensor, access, init, reads_init });
        }
        let gathered = self.gathered(op)?;
        self.stages.push(Stage {
            op,
            sizes: order.iter().map(|d| sizes[*d]).collect(),
            parallel: order.iter().filter(|d| !kinds[**d]).count(),
            loop_of: (0..kinds.len()).map(place).collect(),
            inputs,
            outputs,
            gathered,
            body,
        });
        Ok(())
    }

    fn gathered(&self, op: OperationRef<'c, 'a>) -> Result<Vec<TensorId>> {
        let extracts = irc_mlir::walk_collect(op, |nested| name_of(nested) == tensor::EXTRACT);
        let source = |nested| Ok(self.find(nested, operand(nested, 0)?)?.tensor);
        extracts.into_iter().map(source).collect()
    }
}

/// The name of an op.
pub fn name_of<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> String {
    op.name().as_string_ref().as_str().unwrap_or_default().to_owned()
}

/// An operand of an op.
///
/// # Errors
/// If the op has fewer.
pub fn operand<'c: 'a, 'a>(op: OperationRef<'c, 'a>, index: usize) -> Result<Value<'c, 'a>> {
    op.operand(index).map_err(|error| LowerError::at(op, error.to_string()))
}

/// The only result of an op.
///
/// # Errors
/// If the op has none.
pub fn result_of<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Result<Value<'c, 'a>> {
    Ok(op.result(0).map_err(|error| LowerError::at(op, error.to_string()))?.into())
}

/// An argument of a block of `op`.
///
/// # Errors
/// If the block has fewer.
pub fn argument<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    block: BlockRef<'c, 'a>,
    index: usize,
) -> Result<Value<'c, 'a>> {
    let argument: BlockArgument<'c, 'a> =
        block.argument(index).map_err(|error| LowerError::at(op, error.to_string()))?;
    Ok(argument.into())
}

/// The op that defines a value, unless it is a block argument.
pub fn defining_op<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    OperationResult::try_from(value).ok().map(|result| result.owner())
}

/// The attribute of a scalar `arith.constant`.
pub fn constant_of<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<Attribute<'c>> {
    let op = defining_op(value).filter(|op| name_of(*op) == arith::CONSTANT)?;
    op.attribute("value").ok()
}

/// The first block of a function.
///
/// # Errors
/// If it is a declaration.
pub fn entry<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<BlockRef<'c, 'a>> {
    let block = func.region(0).ok().and_then(|region| region.first_block());
    block.ok_or_else(|| LowerError::at(func, "expected a function with a body"))
}

/// The ranked tensor type, if it is one.
fn shape_of<'c>(ty: Type<'c>) -> Option<RankedTensorType<'c>> {
    RankedTensorType::try_from(ty).ok()
}

fn static_shape<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    ty: Type<'c>,
) -> Result<(Vec<i64>, Type<'c>)> {
    let fail = || LowerError::at(op, format!("expected a tensor of static shape, found '{ty}'"));
    let tensor = shape_of(ty).filter(ShapedTypeLike::has_static_shape).ok_or_else(fail)?;
    let size = |index| match tensor.dim_size(index) {
        Ok(melior::ir::r#type::DimSize::Static(size)) if size > 0 => Ok(size as i64),
        _ => Err(fail()),
    };
    Ok(((0..tensor.rank()).map(size).collect::<Result<_>>()?, tensor.element()))
}

fn list_attribute<'c: 'a, 'a>(op: OperationRef<'c, 'a>, name: &str) -> Result<Vec<Attribute<'c>>> {
    irc_mlir::read::elements(&op, name)
        .ok_or_else(|| LowerError::at(op, format!("expected an array attribute '{name}'")))
}

fn i64_list<'c: 'a, 'a>(op: OperationRef<'c, 'a>, name: &str) -> Result<Vec<i64>> {
    irc_mlir::read::integers(&op, name)
        .ok_or_else(|| LowerError::at(op, format!("expected an integer list '{name}'")))
}

fn indexing_maps<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Result<Vec<Vec<Linear>>> {
    let parse = |map: Attribute<'c>| {
        parse_map(&map.to_string()).map_err(|reason| LowerError::at(op, reason))
    };
    list_attribute(op, "indexing_maps")?.into_iter().map(parse).collect()
}

/// Whether each loop reduces.
fn iterator_kinds<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Result<Vec<bool>> {
    let kind = |attribute: Attribute<'c>| match attribute.to_string() {
        text if text.contains("parallel") => Ok(false),
        text if text.contains("reduction") => Ok(true),
        text => {
            Err(LowerError::at(op, format!("expected a parallel or reduction loop, found {text}")))
        }
    };
    list_attribute(op, "iterator_types")?.into_iter().map(kind).collect()
}

fn loop_sizes<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    maps: &[Vec<Linear>],
    views: &[View],
    loops: usize,
) -> Result<Vec<i64>> {
    let size = |d: usize| {
        let mut dims = maps.iter().zip(views).flat_map(|(map, view)| map.iter().zip(&view.shape));
        dims.find(|(linear, _)| linear.as_dim() == Some(d)).map(|(_, size)| *size)
    };
    (0..loops)
        .map(|d| {
            size(d).ok_or_else(|| {
                LowerError::at(op, format!("no operand gives the size of loop d{d}"))
            })
        })
        .collect()
}

fn access_of(view: &View, map: &[Linear], loops: usize) -> Access {
    let mut access = Access { offset: view.offset, coefs: vec![0; loops] };
    for (linear, stride) in map.iter().zip(&view.strides) {
        access.offset += linear.constant * stride;
        for (coef, part) in access.coefs.iter_mut().zip(&linear.coefs) {
            *coef += part * stride;
        }
    }
    access
}

/// The loops larger than one: parallel ones as they traverse the output, then the reductions.
fn loop_order(kinds: &[bool], sizes: &[i64], output: Option<&Access>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..kinds.len()).filter(|d| sizes[*d] != 1).collect();
    let stride = |d: usize| output.map_or(0, |access| access.coefs[d]);
    order.sort_by_key(|d| if kinds[*d] { (true, 0) } else { (false, -stride(*d)) });
    order
}
