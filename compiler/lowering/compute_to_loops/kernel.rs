//! A kernel of loops as data: values in memory, and steps that compute them.
use super::{expression::RESULT, nest::Nest, rows::Rows};
use crate::attributes::{KERNEL, OVERWRITES, TASK, dictionaries};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, Location, OperationLike, OperationRef, PassError, RegionLike, Value as MlirValue,
    ValueLike, is_used_only_by, read,
};
use irc_packing::Packing;
use irc_tl::{Algorithm, Compute, DType, Dim, Op, Scalar, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A value of a [`Kernel`], by position.
pub(super) type ValueId = usize;

/// The memory of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// An input.
    Input(usize),
    /// An output.
    Output(usize),
    /// The workspace, at this offset in bytes.
    Scratch(i64),
}

/// Where computed values are until the results are known.
const UNPLACED: Origin = Origin::Scratch(-1);

/// A value in memory.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) ty: Type,
    pub(super) origin: Origin,
}

/// The computation of a step.
pub(super) enum Work<'c> {
    /// Loops around an expression: one result.
    Nest(Nest),
    /// Several of these, which compute one row after another: the result of the last.
    Rows(Rows<'c>),
    /// An algorithm.
    Algorithm(Algorithm),
}

/// One step.
pub(super) struct Step<'c> {
    pub(super) work: Work<'c>,
    pub(super) operands: Vec<ValueId>,
    pub(super) results: Vec<ValueId>,
    pub(super) location: Location<'c>,
}

/// A kernel; the first values are its inputs.
pub(super) struct Kernel<'c> {
    pub(super) values: Vec<Value>,
    pub(super) inputs: usize,
    pub(super) symbols: Vec<Arc<str>>,
    pub(super) steps: Vec<Step<'c>>,
    pub(super) results: Vec<ValueId>,
    /// The size of the workspace in bytes.
    pub(super) workspace: i64,
    /// Whether results may be in the memory of operands, element by element.
    pub(super) is_in_place: bool,
    /// The results whose memory may hold other elements that the kernel reads.
    pub(super) overwrites: Vec<bool>,
    /// The inputs that are packed, and how.
    pub(super) packed: Vec<Packing>,
    /// The size of the memory of a part in bytes.
    pub(super) part_bytes: i64,
}

impl<'c> Kernel<'c> {
    /// Reads a kernel function.
    ///
    /// # Errors
    /// At an op that has no loops, or whose scratch has no known size.
    pub(super) fn read<'a>(func: OperationRef<'c, 'a>) -> Result<Self, PassError>
    where
        'c: 'a,
    {
        let block = func.region(0).ok().and_then(|region| region.first_block());
        let block = block.ok_or_else(|| PassError::at(&func, "has no body"))?;
        let results = dictionaries(&func, "res_attrs").into_iter();
        let overwrites = results.map(|each| OVERWRITES.of(each).is_some()).collect();
        let is_task = KERNEL.read(&func).is_some_and(|info| info.kind == TASK);
        let mut reader = Reader { overwrites, is_task, ..Reader::default() };
        for index in 0..block.argument_count() {
            let argument = block.argument(index);
            let argument = argument.map_err(|error| PassError::at(&func, error.to_string()))?;
            let ty = tl::type_of(argument.r#type());
            let ty = ty.map_err(|message| PassError::at(&func, message))?;
            let id = reader.value(ty, Origin::Input(index));
            reader.ids.insert(key(argument.into()), id);
        }
        let inputs = reader.values.len();
        for op in read::body_ops(func) {
            if read::op_name(&op) == func::RETURN {
                reader.returns(op).map_err(|message| PassError::at(&op, message))?;
            } else {
                reader.op(op).map_err(|message| PassError::at(&op, message))?;
            }
        }
        let Reader { values, steps, results, workspace, overwrites, is_task, .. } = reader;
        let symbols = vec![];
        let is_in_place = is_task;
        let packed = vec![];
        let mut kernel = Self {
            values,
            inputs,
            symbols,
            steps,
            results,
            workspace,
            is_in_place,
            overwrites,
            packed,
            part_bytes: 0,
        };
        kernel.symbols = kernel.find_symbols();
        Ok(kernel)
    }

    /// How an input is packed, if it is.
    pub(super) fn packing(&self, input: ValueId) -> Option<&Packing> {
        self.packed.iter().find(|packing| packing.argument() == input)
    }

    /// All symbols of types and steps, in the order of names.
    fn find_symbols(&self) -> Vec<Arc<str>> {
        let mut dims: Vec<Dim> = vec![];
        self.values.iter().for_each(|value| dims.extend(value.ty.dims.iter().cloned()));
        for step in &self.steps {
            match &step.work {
                Work::Nest(nest) => nest.sizes(&mut dims),
                Work::Rows(rows) => rows.sizes(&mut dims),
                Work::Algorithm(Algorithm::TopK { k, .. }) => dims.push(k.clone()),
                Work::Algorithm(Algorithm::TreeEnsemble { targets, .. }) => {
                    dims.push(targets.clone());
                }
                Work::Algorithm(
                    Algorithm::Scan { .. }
                    | Algorithm::NonZero
                    | Algorithm::NonMaxSuppression { .. },
                ) => {}
            }
        }
        let symbols: BTreeSet<_> = dims.iter().flat_map(Dim::symbols).collect();
        symbols.into_iter().collect()
    }
}

#[derive(Default)]
struct Reader<'c> {
    values: Vec<Value>,
    /// By identity of the MLIR value.
    ids: BTreeMap<usize, ValueId>,
    steps: Vec<Step<'c>>,
    results: Vec<ValueId>,
    workspace: i64,
    /// The results whose memory may hold values that the kernel reads.
    overwrites: Vec<bool>,
    /// Whether results may be in the memory of operands, element by element.
    is_task: bool,
    /// The type of a value between steps whose size is not known.
    open: Option<Type>,
}

impl<'c> Reader<'c> {
    fn value(&mut self, ty: Type, origin: Origin) -> ValueId {
        self.values.push(Value { ty, origin });
        self.values.len() - 1
    }

    /// A value in the workspace; if it is returned, it moves to an output.
    fn scratch(&mut self, ty: Type) -> ValueId {
        self.value(ty, UNPLACED)
    }

    fn op<'a>(&mut self, op: OperationRef<'c, 'a>) -> Result<(), String>
    where
        'c: 'a,
    {
        let operands = self.operands(op)?;
        let types = op.results().map(|result| tl::type_of(result.r#type()));
        let types = types.collect::<Result<Vec<_>, _>>()?;
        if tl::is_view(&op) {
            return self.view(op, operands[0], types);
        }
        let operand_types: Vec<Type> =
            operands.iter().map(|id| self.values[*id].ty.clone()).collect();
        let work = match tl::algorithm_of(op)? {
            Some(algorithm) => Work::Algorithm(algorithm),
            None => {
                let nest = nest_of(&tl::op_of(op)?, &operand_types, &types[0])?;
                if let Some(sum) = self.follow(op, &nest, &operands) {
                    self.values[sum].ty = types[0].clone();
                    let result = op.result(0).map_err(|error| error.to_string())?;
                    self.ids.insert(key(result.into()), sum);
                    return Ok(());
                }
                Work::Nest(nest)
            }
        };
        let results: Vec<_> = types.into_iter().map(|ty| self.scratch(ty)).collect();
        for (result, id) in op.results().zip(&results) {
            self.ids.insert(key(result.into()), *id);
        }
        self.steps.push(Step { work, operands, results, location: op.location() });
        Ok(())
    }

    /// Makes a map the epilogue of the sum before it, which has no memory of its own as its size is not known. Returns the
    /// value, which is that of the map then.
    fn follow<'a>(
        &mut self,
        op: OperationRef<'c, 'a>,
        map: &Nest,
        operands: &[ValueId],
    ) -> Option<ValueId>
    where
        'c: 'a,
    {
        let Step { work: Work::Nest(nest), operands: read, results, .. } = self.steps.last_mut()?
        else {
            return None;
        };
        let [sum] = results[..] else { return None };
        let is_open = self.values[sum].ty.known().is_none();
        let is_sum = nest.compute.reduction.is_some();
        let is_map = map.compute.reduction.is_none() && map.epilogue.is_none() && !map.is_view;
        if !is_open || !is_sum || !is_map || !operands.contains(&sum) {
            return None;
        }
        let mut values = op.operands().zip(operands).filter(|(_, id)| **id == sum);
        if !values.all(|(value, _)| is_used_only_by(value, |user| user == op)) {
            return None;
        }
        let dims = &self.values[sum].ty.dims;
        let mut is_own = map.compute.dims == *dims;
        map.compute.body.walk(&mut |part| {
            if let Scalar::Load(operand, at) = part
                && operands[*operand] == sum
            {
                is_own &= map.compute.is_own(at, dims);
            }
        });
        if !is_own {
            return None;
        }
        let reduced = nest.epilogue.take().unwrap_or_else(|| Scalar::load(RESULT, []));
        nest.epilogue = Some(map.compute.body.replace(&mut |part| {
            let Scalar::Load(operand, at) = part else { return None };
            let id = operands[*operand];
            if id == sum {
                return Some(reduced.clone());
            }
            let place = read.iter().position(|known| *known == id).unwrap_or_else(|| {
                read.push(id);
                read.len() - 1
            });
            Some(Scalar::Load(place, at.clone()))
        }));
        Some(sum)
    }

    /// The same memory under another type, with elements of the same width.
    fn view<'a>(
        &mut self,
        op: OperationRef<'c, 'a>,
        operand: ValueId,
        mut types: Vec<Type>,
    ) -> Result<(), String>
    where
        'c: 'a,
    {
        let (from, to) = (self.values[operand].ty.dtype, types[0].dtype);
        // Small floats are bytes in memory.
        let is_float = |dtype: DType| dtype.is_float() && !dtype.is_small();
        if from.size() != to.size() || is_float(from) != is_float(to) {
            return Err(format!("expected {to} to be stored as {from} in a kernel of loops"));
        }
        let result = op.result(0).map_err(|error| error.to_string())?;
        let ty = types.swap_remove(0);
        // A new value in the same memory, with its own type.
        let id = self.value(ty, self.values[operand].origin);
        self.steps.push(Step {
            work: Work::Nest(Nest::view()),
            operands: vec![operand],
            results: vec![id],
            location: op.location(),
        });
        self.ids.insert(key(result.into()), id);
        Ok(())
    }

    fn operands<'a>(&self, op: OperationRef<'c, 'a>) -> Result<Vec<ValueId>, String>
    where
        'c: 'a,
    {
        let known = |operand: MlirValue| self.ids.get(&key(operand)).copied();
        let outside = || "uses a value from outside its kernel".to_owned();
        op.operands().map(|operand| known(operand).ok_or_else(outside)).collect()
    }

    /// Places returned values in the outputs and the others in the workspace.
    fn returns<'a>(&mut self, op: OperationRef<'c, 'a>) -> Result<(), String>
    where
        'c: 'a,
    {
        let returned = self.operands(op)?;
        let mut places: BTreeMap<ValueId, Origin> = BTreeMap::new();
        let last = self.last();
        for (index, id) in returned.into_iter().enumerate() {
            let base = self.base(id);
            let output = Origin::Output(index);
            let overwrites = self.overwrites.get(index).copied().unwrap_or(false)
                || self.is_task && !last.contains(&base);
            let free =
                self.values[base].origin == UNPLACED && !places.contains_key(&base) && !overwrites;
            if free {
                places.insert(base, output);
                self.results.push(id);
            } else {
                let copy = self.copy(id, output, op.location());
                self.results.push(copy);
            }
        }
        for id in 0..self.values.len() {
            let base = self.base(id);
            if self.values[base].origin == UNPLACED {
                let place = match places.get(&base) {
                    Some(output) => *output,
                    None => self.reserve(base),
                };
                self.values[base].origin = place;
            }
            self.values[id].origin = self.values[base].origin;
        }
        self.steps.retain(|step| !matches!(&step.work, Work::Nest(nest) if nest.is_view));
        self.join_rows()
    }

    /// Makes the steps one that computes rows, if there is a value between them of no known size.
    fn join_rows(&mut self) -> Result<(), String> {
        let Some(ty) = self.open.take() else { return Ok(()) };
        let (rows, operands) = self.rows().ok_or_else(|| {
            format!("expected scratch of a known size inside a kernel of loops, found {ty}")
        })?;
        let Some(Step { results, location, .. }) = self.steps.pop() else { return Ok(()) };
        self.steps = vec![Step { work: Work::Rows(rows), operands, results, location }];
        Ok(())
    }

    /// The steps as those of rows, with the operands from outside.
    fn rows(&self) -> Option<(Rows<'c>, Vec<ValueId>)> {
        let made: Vec<ValueId> = self.steps.iter().map(|step| step.results[0]).collect();
        let mut outside: Vec<ValueId> = vec![];
        for operand in self.steps.iter().flat_map(|step| &step.operands) {
            if !made.contains(operand) && !outside.contains(operand) {
                outside.push(*operand);
            }
        }
        let all: Vec<ValueId> = outside.iter().chain(&made).copied().collect();
        let types: Vec<Type> = all.iter().map(|value| self.values[*value].ty.clone()).collect();
        let parts = self.steps.iter().map(|step| {
            let Work::Nest(nest) = &step.work else { return None };
            let number = |operand: &ValueId| all.iter().position(|value| value == operand);
            let operands = step.operands.iter().map(number).collect::<Option<Vec<_>>>()?;
            Some((nest, operands, step.location))
        });
        let parts = parts.collect::<Option<Vec<_>>>()?;
        let rows = Rows::of(&parts, &types, outside.len())?;
        Some((rows, outside))
    }

    /// The results of the last step that computes.
    fn last(&self) -> Vec<ValueId> {
        let is_view = |step: &&Step<'_>| matches!(&step.work, Work::Nest(nest) if nest.is_view);
        let last = self.steps.iter().rev().find(|step| !is_view(step));
        last.map_or(vec![], |step| step.results.clone())
    }

    fn copy(&mut self, from: ValueId, to: Origin, location: Location<'c>) -> ValueId {
        let ty = self.values[from].ty.clone();
        let loops: Vec<_> = (0..ty.rank()).map(Scalar::Loop).collect();
        let compute = Compute::map(ty.dims.clone(), Scalar::load(0, loops));
        let copy = self.value(ty, to);
        let work = Work::Nest(Nest::of(compute));
        self.steps.push(Step { work, operands: vec![from], results: vec![copy], location });
        copy
    }

    /// The value whose memory a view uses.
    fn base(&self, id: ValueId) -> ValueId {
        let views = self.steps.iter().find_map(|step| match &step.work {
            Work::Nest(nest) if nest.is_view && step.results[0] == id => Some(step.operands[0]),
            _ => None,
        });
        views.map_or(id, |from| self.base(from))
    }

    /// Reserves memory in the workspace, aligned to a cache line. A value of no known size has none: see [`Rows`].
    fn reserve(&mut self, id: ValueId) -> Origin {
        let ty = &self.values[id].ty;
        // The product of its sizes may be known although they are not: 0.
        let flat = Type::new(ty.dtype, [ty.elements()]);
        let size = flat.known().and_then(|known| known.byte_size().ok());
        let offset = self.workspace;
        let Some(size) = size.and_then(|size| i64::try_from(size).ok()) else {
            self.open.get_or_insert_with(|| ty.clone());
            return Origin::Scratch(offset);
        };
        self.workspace += (size + 63) / 64 * 64;
        Origin::Scratch(offset)
    }
}

fn nest_of(op: &Op, operands: &[Type], result: &Type) -> Result<Nest, String> {
    if let Some(sum) = op.dividend() {
        let compute = sum.as_compute(operands).ok_or("has axes beyond its operand")?;
        return Ok(Nest::mean(compute, result.dtype));
    }
    if result.dims.iter().any(|dim| dim.is(0)) {
        // The result is empty, whatever the op.
        return Ok(Nest::of(Compute::map(result.dims.clone(), Scalar::number(0, result.dtype))));
    }
    let compute = op.as_compute(operands).ok_or("has no form as loops around an expression")?;
    Ok(Nest::of(compute))
}

/// The identity of a value while its function exists.
fn key(value: MlirValue<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}
