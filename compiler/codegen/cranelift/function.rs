//! One function: its blocks, its values, and which file translates which op.
use super::{
    types::{self, Element, Shape},
    unit::Unit,
};
use crate::codegen::{
    CodegenError,
    blocks::reverse_postorder,
    constant::Constant,
    inst::{Inst, Unknown},
};
use cranelift_codegen::ir::{
    Block as ClifBlock, FuncRef, GlobalValue, InstBuilder, MemFlagsData, Type as Clif,
    Value as ClifValue, types::I8X16,
};
use cranelift_frontend::FunctionBuilder;
use irc_mlir::{
    BlockLike, BlockRef, OperationLike, OperationRef, RegionLike, Type as MlirType, TypeLike,
    Value, ValueLike,
    llvm::{self, Type},
    read,
};
use std::{collections::HashMap, rc::Rc};

/// The result of a translation.
pub type Result<T> = std::result::Result<T, CodegenError>;

/// The parts of a value.
pub type Parts = Vec<ClifValue>;

/// An op of the module.
pub type Op<'c, 'a> = OperationRef<'c, 'a>;

/// The representation of a value of the module.
enum Representation {
    Parts(Parts),
    /// Materialised in each block that uses it, so that it takes no register in between.
    Constant(Rc<Constant>),
}

/// The translation of one function. Hash tables are never iterated, so their order does not affect the
/// output.
pub struct Body<'f, 'b, 'u> {
    /// The builder of the function.
    pub b: &'f mut FunctionBuilder<'b>,
    /// The object that contains the function.
    pub unit: &'u mut Unit,
    values: HashMap<usize, Representation>,
    blocks: HashMap<usize, ClifBlock>,
    types: HashMap<usize, Rc<Type>>,
    /// Constants that the current block has materialised.
    materialised: HashMap<usize, Parts>,
    pub(super) functions: HashMap<String, FuncRef>,
    pub(super) globals: HashMap<String, GlobalValue>,
}

impl<'f, 'b, 'u> Body<'f, 'b, 'u> {
    /// An empty translation.
    pub fn new(b: &'f mut FunctionBuilder<'b>, unit: &'u mut Unit) -> Self {
        Body {
            b,
            unit,
            values: HashMap::new(),
            blocks: HashMap::new(),
            types: HashMap::new(),
            materialised: HashMap::new(),
            functions: HashMap::new(),
            globals: HashMap::new(),
        }
    }

    /// Translates the body of a function.
    ///
    /// # Errors
    /// At the first op without a translation; a diagnostic at it has been emitted.
    pub fn translate(&mut self, function: Op<'_, '_>) -> Result<()> {
        let region = function.region(0).ok();
        let Some(entry) = region.and_then(|region| region.first_block()) else {
            return Err(CodegenError::new("cranelift: a function without a body"));
        };
        let order = reverse_postorder(entry);
        for block in &order {
            let clif = self.b.create_block();
            self.blocks.insert(block.to_raw().ptr as usize, clif);
            for index in 0..block.argument_count() {
                let Ok(argument) = block.argument(index) else { continue };
                let types = self.part_types(&function, ValueLike::r#type(&argument))?;
                let parts =
                    types.into_iter().map(|ty| self.b.append_block_param(clif, ty)).collect();
                self.values.insert(argument.to_raw().ptr as usize, Representation::Parts(parts));
            }
        }
        for block in order {
            let clif = self.blocks[&(block.to_raw().ptr as usize)];
            self.b.switch_to_block(clif);
            self.materialised.clear();
            let mut next = block.first_operation();
            while let Some(op) = next {
                self.op(op)?;
                next = op.next_in_block();
            }
        }
        self.b.seal_all_blocks();
        Ok(())
    }

    fn op(&mut self, op: Op<'_, '_>) -> Result<()> {
        let name = read::op_name(&op);
        let value = match Inst::of(&op, &name).map_err(|what| unknown(&op, what))? {
            Inst::Constant(constant) => {
                let result = result(&op)?;
                self.values.insert(key(result), Representation::Constant(constant.into()));
                return Ok(());
            }
            Inst::Branch => return self.jump(&op),
            Inst::CondBranch { yes, no } => return self.branch(&op, yes, no),
            Inst::Switch(switch) => return self.switch(&op, &switch),
            Inst::Return => return self.give(&op),
            Inst::Unreachable => return self.trap(&op),
            Inst::Call(callee) => return self.call(op, callee),
            Inst::AddressOf(name) => self.address_of(&op, &name)?,
            Inst::Load => self.load_value(&op)?,
            Inst::Store => return self.store_value(&op),
            Inst::ElementPointer(pointer) => self.element_pointer(&op, &pointer)?,
            Inst::Alloca(ty, align) => self.alloca(&op, &ty, align)?,
            Inst::Atomic(change) => self.atomic(&op, change)?,
            Inst::ExtractElement => self.extract_element(&op)?,
            Inst::InsertElement => self.insert_element(&op)?,
            Inst::Shuffle(lanes) => self.shuffle_vector(&op, &lanes)?,
            Inst::ExtractVector(from) => self.extract_vector(&op, from)?,
            Inst::InsertVector(at) => self.insert_vector(&op, at)?,
            Inst::ExtractValue(position) => self.extract_value(&op, &position)?,
            Inst::InsertValue(position) => self.insert_value(&op, &position)?,
            Inst::Cast(name) => return self.cast(op, name),
            Inst::Integers(name) => self.integers(&op, name)?,
            Inst::Shift(name) => self.shift(&op, name)?,
            Inst::Divide(name) => self.divide(&op, name)?,
            Inst::Floats(name) => self.floats(&op, name)?,
            Inst::Negate => {
                let (shape, value) = (self.operand_shape(&op, 0)?, self.operand(&op, 0)?);
                self.negate(shape, &value)
            }
            Inst::CompareIntegers(predicate) => self.icmp(&op, predicate)?,
            Inst::CompareFloats(predicate) => self.fcmp(&op, predicate)?,
            Inst::Select => self.select(&op)?,
            Inst::Hint => return Ok(()),
            // Every stack slot is live for the whole call.
            Inst::StackSave => vec![self.b.ins().iconst(Element::Pointer.scalar(), 0)],
            Inst::Expect => self.operand(&op, 0)?,
            Inst::Library(name) => self.library_call(&op, name)?,
            Inst::Reduce { kind, any_order } => self.reduce(&op, kind, any_order)?,
            Inst::Overflowing(kind) => self.overflowing(&op, kind)?,
            Inst::CopyMemory(name, length) => return self.copy_memory(op, name, length),
            Inst::MaskedLoad => self.masked_load(&op)?,
            Inst::MaskedStore => return self.masked_store(op),
            Inst::Fma => self.fma(&op)?,
            Inst::CopySign => self.copy_sign(&op)?,
            Inst::Magnitude => {
                let (shape, value) = (self.operand_shape(&op, 0)?, self.operand(&op, 0)?);
                self.magnitude(shape, &value)
            }
            Inst::Rounding(name) => self.rounding(&op, name)?,
            Inst::FloatExtreme(name) => self.float_extreme(&op, name)?,
            Inst::IntegerExtreme(name) => {
                let shape = self.operand_shape(&op, 0)?;
                let (left, right) = (self.operand(&op, 0)?, self.operand(&op, 1)?);
                self.extreme(shape, name, &left, &right)
            }
            Inst::Bits(name) => self.bits(&op, name)?,
            Inst::Funnel(name) => self.funnel(&op, name)?,
            Inst::Saturating(name) => self.saturating(&op, name)?,
            Inst::SaturatingCast { signed } => {
                let (from, to) = (self.operand_shape(&op, 0)?, self.result_shape(&op)?);
                let value = self.operand(&op, 0)?;
                let value = self.float_to_integer_saturated(from, to, &value, signed);
                value.ok_or_else(|| unsupported(&op, "these types"))?
            }
            Inst::FloatClass(classes) => self.float_class(&op, classes)?,
        };
        self.define(&op, value)
    }

    /// The type of a value, parsed once for each distinct type.
    pub fn type_of(&mut self, op: &Op<'_, '_>, ty: MlirType<'_>) -> Result<Rc<Type>> {
        let key = ty.to_raw().ptr as usize;
        if let Some(known) = self.types.get(&key) {
            return Ok(known.clone());
        }
        let read = llvm::type_of(ty).ok_or_else(|| unsupported(op, &format!("the type {ty}")))?;
        let read = Rc::new(read);
        self.types.insert(key, read.clone());
        Ok(read)
    }

    fn part_types(&mut self, op: &Op<'_, '_>, ty: MlirType<'_>) -> Result<Vec<Clif>> {
        let read = self.type_of(op, ty)?;
        types::parts(&read).ok_or_else(|| unsupported(op, &format!("the type {ty}")))
    }

    /// The scalar or vector shape of a type.
    pub fn shape_of_type(&mut self, op: &Op<'_, '_>, ty: MlirType<'_>) -> Result<Shape> {
        let read = self.type_of(op, ty)?;
        Shape::of_type(&read).ok_or_else(|| unsupported(op, &format!("the type {ty}")))
    }

    /// The shape of an operand.
    pub fn operand_shape(&mut self, op: &Op<'_, '_>, index: usize) -> Result<Shape> {
        let value = operand(op, index)?;
        self.shape_of_type(op, value.r#type())
    }

    /// The shape of the only result.
    pub fn result_shape(&mut self, op: &Op<'_, '_>) -> Result<Shape> {
        let value = result(op)?;
        self.shape_of_type(op, value.r#type())
    }

    /// The type of an operand.
    pub fn operand_type(&mut self, op: &Op<'_, '_>, index: usize) -> Result<Rc<Type>> {
        let value = operand(op, index)?;
        self.type_of(op, value.r#type())
    }

    /// The type of the only result.
    pub fn result_type(&mut self, op: &Op<'_, '_>) -> Result<Rc<Type>> {
        let value = result(op)?;
        self.type_of(op, value.r#type())
    }

    /// The parts of an operand.
    pub fn operand(&mut self, op: &Op<'_, '_>, index: usize) -> Result<Parts> {
        let value = operand(op, index)?;
        self.parts_of(op, value)
    }

    /// The parts of a value.
    pub fn parts_of(&mut self, op: &Op<'_, '_>, value: Value<'_, '_>) -> Result<Parts> {
        let constant = match self.values.get(&key(value)) {
            Some(Representation::Parts(parts)) => return Ok(parts.clone()),
            Some(Representation::Constant(constant)) => constant.clone(),
            None => return Err(unsupported(op, "a value that is not defined before it")),
        };
        if let Some(parts) = self.materialised.get(&key(value)) {
            return Ok(parts.clone());
        }
        let ty = self.type_of(op, value.r#type())?;
        let parts = self.materialise(&constant, &ty);
        let parts = parts.ok_or_else(|| unsupported(op, "this constant"))?;
        self.materialised.insert(key(value), parts.clone());
        Ok(parts)
    }

    /// The only part of an operand that is a scalar.
    pub fn scalar(&mut self, op: &Op<'_, '_>, index: usize) -> Result<ClifValue> {
        match self.operand(op, index)?.as_slice() {
            [part] if self.operand_shape(op, index)?.lanes.is_none() => Ok(*part),
            _ => Err(unsupported(op, "an operand that is not a scalar")),
        }
    }

    /// The integer in every lane of an operand, if it is known.
    pub fn known(&self, op: &Op<'_, '_>, index: usize) -> Option<u64> {
        match self.values.get(&key(operand(op, index).ok()?))? {
            Representation::Constant(constant) => constant.integer(),
            Representation::Parts(_) => None,
        }
    }

    /// Records the parts of the only result.
    pub fn define(&mut self, op: &Op<'_, '_>, parts: Parts) -> Result<()> {
        let result = result(op)?;
        self.values.insert(key(result), Representation::Parts(parts));
        Ok(())
    }

    /// The Cranelift block of a block.
    pub fn block_of(&self, block: BlockRef<'_, '_>) -> Option<ClifBlock> {
        self.blocks.get(&(block.to_raw().ptr as usize)).copied()
    }

    /// The same bits as another type of the same size.
    pub fn bits_as(&mut self, ty: Clif, value: ClifValue) -> ClifValue {
        if self.b.func.dfg.value_type(value) == ty {
            return value;
        }
        let little = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
        self.b.ins().bitcast(ty, little, value)
    }

    /// A register of zeros.
    pub fn zero(&mut self, ty: Clif) -> ClifValue {
        let zeros = self.b.func.dfg.constants.insert(vec![0; 16].into());
        let zero = self.b.ins().vconst(I8X16, zeros);
        self.bits_as(ty, zero)
    }

    /// A scalar zero or a register of zeros, for the parts of a shape.
    pub fn zeros(&mut self, shape: Shape) -> Parts {
        if shape.lanes.is_some() {
            let zero = self.zero(shape.part());
            return vec![zero; shape.parts()];
        }
        vec![match shape.element {
            Element::Float => self.b.ins().f32const(0.0),
            Element::Double => self.b.ins().f64const(0.0),
            Element::Int(128) => {
                let half = self.b.ins().iconst(types::int(64), 0);
                self.b.ins().iconcat(half, half)
            }
            element => self.b.ins().iconst(element.scalar(), 0),
        }]
    }
}

fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

/// An operand of an op.
pub fn operand<'c: 'a, 'a>(op: &Op<'c, 'a>, index: usize) -> Result<Value<'c, 'a>> {
    op.operand(index).map_err(|_| unsupported(op, "this number of operands"))
}

/// The only result of an op.
pub fn result<'c: 'a, 'a>(op: &Op<'c, 'a>) -> Result<Value<'c, 'a>> {
    op.result(0).map(Into::into).map_err(|_| unsupported(op, "this number of results"))
}

/// The error of an op that is not an instruction.
pub fn unknown(op: &Op<'_, '_>, what: Unknown) -> CodegenError {
    what.map_or_else(|| no_translation(op), |what| unsupported(op, &what))
}

/// The error of an op that the quick tier does not support.
pub fn no_translation(op: &Op<'_, '_>) -> CodegenError {
    CodegenError::at(op, "the quick tier does not translate this op; use --backend llvm")
}

/// The error of an op that the quick tier supports, but not in this variant.
pub fn unsupported(op: &Op<'_, '_>, what: &str) -> CodegenError {
    CodegenError::at(
        op,
        &format!("the quick tier does not translate {what} here; use --backend llvm"),
    )
}
