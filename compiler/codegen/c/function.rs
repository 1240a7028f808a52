//! One function: its blocks, its values, and which file translates which op.
use super::{
    super::{
        blocks::reverse_postorder,
        constant::Constant,
        inst::{Inst, Unknown},
        layout::{self, Element, Shape},
    },
    types::{self, is_wide},
    unit::{Function, Unit},
};
use crate::codegen::CodegenError;
use irc_mlir::{
    BlockLike, BlockRef, OperationLike, OperationRef, RegionLike, Type as MlirType, TypeLike,
    Value, ValueLike,
    llvm::{self, Type},
    read::{self, identity},
};
use std::{collections::HashMap, fmt::Write, rc::Rc};

/// The result of a translation.
pub type Result<T> = std::result::Result<T, CodegenError>;

/// The scalars and vectors of a value, as names or literals.
pub type Parts = Vec<String>;

/// An op of the module.
pub type Op<'c, 'a> = OperationRef<'c, 'a>;

/// A block's label and the variables of its arguments.
pub struct Label {
    /// Its name.
    pub name: String,
    /// The variables with their types.
    pub arguments: Vec<(Shape, String)>,
}

/// The translation of one function. Hash tables are never iterated, so their order does not affect the
/// output.
pub struct Body<'u> {
    /// The file that contains the function.
    pub unit: &'u mut Unit,
    /// What the function returns.
    pub results: Vec<Shape>,
    /// Declarations of variables, which precede the first statement.
    pub variables: String,
    /// Whether it uses a fused multiply-add.
    pub multiplies_and_adds: bool,
    text: String,
    next: usize,
    values: HashMap<usize, Parts>,
    constants: HashMap<usize, Constant>,
    blocks: HashMap<usize, Rc<Label>>,
    types: HashMap<usize, Rc<Type>>,
}

impl<'u> Body<'u> {
    /// An empty translation.
    pub fn new(unit: &'u mut Unit) -> Self {
        Body {
            unit,
            results: Vec::new(),
            variables: String::new(),
            multiplies_and_adds: false,
            text: String::new(),
            next: 0,
            values: HashMap::new(),
            constants: HashMap::new(),
            blocks: HashMap::new(),
            types: HashMap::new(),
        }
    }

    /// Translates the body of a function.
    ///
    /// # Errors
    /// At the first op without a translation; a diagnostic at it has been emitted.
    pub fn translate(&mut self, op: Op<'_, '_>, function: &Function) -> Result<()> {
        let entry = op.region(0).ok().and_then(|region| region.first_block());
        let Some(entry) = entry else { return Err(no_translation(&op)) };
        self.results.clone_from(&function.results);
        self.parameters(&op, entry, function)?;
        let order = reverse_postorder(entry);
        for (index, block) in order.iter().enumerate().skip(1) {
            let label = self.label(&op, *block, index)?;
            self.blocks.insert(block.to_raw().ptr as usize, Rc::new(label));
        }
        for block in order {
            if let Some(label) = self.block_of(block) {
                let _ = writeln!(self.text, "{}:;", label.name);
            }
            let mut next = block.first_operation();
            while let Some(op) = next {
                self.op(op)?;
                next = op.next_in_block();
            }
        }
        Ok(())
    }

    /// The translated body: variables, then statements.
    pub fn text(&self) -> String {
        format!("{}{}", self.variables, self.text)
    }

    fn parameters(
        &mut self,
        op: &Op<'_, '_>,
        entry: BlockRef<'_, '_>,
        function: &Function,
    ) -> Result<()> {
        let names = (0..function.inputs.len()).map(|index| format!("a{index}"));
        for (shape, name) in function.inputs.iter().zip(names.clone()) {
            self.variables += &self.unit.unpacked(*shape, &name).unwrap_or_default();
        }
        let mut names = names;
        for index in 0..entry.argument_count() {
            let Ok(argument) = entry.argument(index) else { continue };
            let count = self.shapes_of(op, ValueLike::r#type(&argument))?.len();
            let parts = names.by_ref().take(count).collect();
            self.values.insert(identity(argument.into()), parts);
        }
        Ok(())
    }

    fn label(&mut self, op: &Op<'_, '_>, block: BlockRef<'_, '_>, index: usize) -> Result<Label> {
        let mut label = Label { name: format!("l{index}"), arguments: Vec::new() };
        for index in 0..block.argument_count() {
            let Ok(argument) = block.argument(index) else { continue };
            let mut parts = Parts::new();
            for shape in self.shapes_of(op, ValueLike::r#type(&argument))? {
                let name = self.fresh("x");
                let ty = self.unit.ty(shape);
                let _ = writeln!(self.variables, "  {};", types::declared(&ty, &name));
                label.arguments.push((shape, name.clone()));
                parts.push(name);
            }
            self.values.insert(identity(argument.into()), parts);
        }
        Ok(label)
    }

    fn op(&mut self, op: Op<'_, '_>) -> Result<()> {
        let name = read::op_name(&op);
        let value = match Inst::of(&op, &name).map_err(|what| unknown(&op, what))? {
            Inst::Constant(constant) => return self.constant(op, constant),
            Inst::Branch => return self.jump(&op),
            Inst::CondBranch { yes, no } => return self.branch(&op, yes, no),
            Inst::Switch(switch) => return self.switch(&op, &switch),
            Inst::Return => return self.give(op),
            Inst::Unreachable => {
                // Unreachable; if reached, execution must not continue into other code.
                self.line("__builtin_trap();");
                return Ok(());
            }
            Inst::Call(callee) => return self.call(op, callee),
            Inst::AddressOf(name) => self.address_of(&op, &name)?,
            Inst::Load => return self.load_value(&op),
            Inst::Store => return self.store_value(&op),
            Inst::ElementPointer(pointer) => return self.element_pointer(op, &pointer),
            Inst::Alloca(ty, align) => return self.alloca(op, &ty, align),
            Inst::Atomic(change) => self.atomic(&op, change)?,
            Inst::ExtractElement => self.extract_element(&op)?,
            Inst::InsertElement => return self.insert_element(&op),
            Inst::Shuffle(lanes) => self.shuffle_vector(&op, &lanes)?,
            Inst::ExtractVector(from) => self.extract_vector(&op, from)?,
            Inst::InsertVector(at) => self.insert_vector(&op, at)?,
            Inst::ExtractValue(position) => return self.extract_value(&op, &position),
            Inst::InsertValue(position) => return self.insert_value(&op, &position),
            Inst::Cast(name) => return self.cast(op, name),
            Inst::Integers(name) => self.integers(&op, name)?,
            Inst::Shift(name) => self.shift(&op, name)?,
            Inst::Divide(name) => self.divide(&op, name)?,
            Inst::Floats(name) => self.floats(&op, name)?,
            Inst::Negate => self.negate(&op)?,
            Inst::CompareIntegers(predicate) => self.icmp(&op, predicate)?,
            Inst::CompareFloats(predicate) => self.fcmp(&op, predicate)?,
            Inst::Select => return self.select(&op),
            Inst::Hint => return Ok(()),
            // Every variable is live for the whole call.
            Inst::StackSave => self.unit.literal(Element::Pointer, 0),
            Inst::Expect => {
                let parts = self.parts(&op, 0)?;
                return self.define_parts(&op, parts);
            }
            Inst::Library(name) => self.library_call(&op, name)?,
            Inst::Reduce { kind, any_order } => self.reduce(&op, kind, any_order)?,
            Inst::Overflowing(kind) => return self.overflowing(&op, kind),
            Inst::CopyMemory(name, length) => return self.copy_memory(op, name, length),
            Inst::MaskedLoad => self.masked_load(&op)?,
            Inst::MaskedStore => return self.masked_store(op),
            Inst::Fma => self.fma(&op)?,
            Inst::CopySign => self.sign(&op, true)?,
            Inst::Magnitude => self.sign(&op, false)?,
            Inst::Rounding(name) => self.rounding(&op, name)?,
            Inst::FloatExtreme(name) => self.float_extreme(&op, name)?,
            Inst::IntegerExtreme(name) => self.integer_extreme(&op, name)?,
            Inst::Bits(name) => self.bits(&op, name)?,
            Inst::Funnel(name) => self.funnel(&op, name)?,
            Inst::Saturating(name) => self.saturating(&op, name)?,
            Inst::SaturatingCast { signed } => self.float_to_integer_saturated(&op, signed)?,
            Inst::FloatClass(classes) => self.float_class(&op, classes)?,
        };
        self.define(&op, &value)
    }

    /// Records a constant: scalars as literals, vectors as variables.
    fn constant(&mut self, op: Op<'_, '_>, constant: Constant) -> Result<()> {
        let result = result(&op)?;
        let shapes = self.shapes_of(&op, result.r#type())?;
        let odd = || unsupported(&op, "this constant");
        let (mut first, mut parts) = (0, Parts::new());
        let mut last: Option<(Shape, String, String)> = None;
        for shape in shapes {
            let lanes = shape.lanes.unwrap_or(1) as usize;
            let number = |at| constant.bits(at, shape.element);
            let numbers: Option<Vec<u128>> = (first..first + lanes).map(number).collect();
            let numbers = numbers.ok_or_else(odd)?;
            first += lanes;
            if shape.lanes.is_none() {
                parts.push(self.unit.literal(shape.element, numbers[0]));
                continue;
            }
            let text = self.vector_literal(shape, &numbers);
            let known = last.take().filter(|(same, known, _)| *same == shape && *known == text);
            let name = known.map_or_else(|| self.name(shape, &text), |(_, _, name)| name);
            parts.push(name.clone());
            last = Some((shape, text, name));
        }
        self.constants.insert(identity(result), constant);
        self.values.insert(identity(result), parts);
        Ok(())
    }

    fn vector_literal(&mut self, shape: Shape, numbers: &[u128]) -> String {
        if numbers.iter().all(|number| *number == 0) {
            return "{0}".to_owned();
        }
        let lane = |number: &u128| match shape.element {
            Element::Int(1) => (if number & 1 == 1 { "-1" } else { "0" }).to_owned(),
            Element::Pointer => format!("0x{number:x}ull"),
            element => self.unit.literal(element, *number),
        };
        format!("{{{}}}", numbers.iter().map(lane).collect::<Vec<_>>().join(", "))
    }

    /// Adds a statement.
    pub fn line(&mut self, statement: &str) {
        let _ = writeln!(self.text, "  {statement}");
    }

    /// An unused name.
    pub fn fresh(&mut self, letter: &str) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }

    /// Assigns an expression to a new variable.
    pub fn name(&mut self, shape: Shape, expression: &str) -> String {
        let name = self.fresh("v");
        let declared = types::constant(&self.unit.ty(shape), &name);
        self.line(&format!("{declared} = {expression};"));
        name
    }

    /// An argument of a call: the address of a variable if its type is wide.
    pub fn argument(&mut self, shape: Shape, expression: &str) -> String {
        if !is_wide(shape) {
            return expression.to_owned();
        }
        if expression.chars().all(char::is_alphanumeric) {
            return format!("&{expression}");
        }
        let name = self.name(shape, expression);
        format!("&{name}")
    }

    /// A call of a helper function.
    pub fn invoke(&mut self, helper: &str, arguments: &[(Shape, &str)]) -> String {
        let arguments: Vec<String> =
            arguments.iter().map(|(shape, value)| self.argument(*shape, value)).collect();
        format!("{helper}({})", arguments.join(", "))
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

    /// The scalars and vectors that make up a value of a type.
    pub fn shapes_of(&mut self, op: &Op<'_, '_>, ty: MlirType<'_>) -> Result<Vec<Shape>> {
        let read = self.type_of(op, ty)?;
        shapes(&read).ok_or_else(|| unsupported(op, &format!("the type {ty}")))
    }

    fn shape_of_type(&mut self, op: &Op<'_, '_>, ty: MlirType<'_>) -> Result<Shape> {
        let read = self.type_of(op, ty)?;
        Shape::of_type(&read).ok_or_else(|| unsupported(op, &format!("the type {ty}")))
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
    pub fn parts(&mut self, op: &Op<'_, '_>, index: usize) -> Result<Parts> {
        let value = operand(op, index)?;
        let parts = self.values.get(&identity(value)).cloned();
        parts.ok_or_else(|| unsupported(op, "a value that is not defined before it"))
    }

    /// An operand that is a scalar or a vector, with its shape.
    pub fn operand(&mut self, op: &Op<'_, '_>, index: usize) -> Result<(Shape, String)> {
        let value = operand(op, index)?;
        let shape = self.shape_of_type(op, value.r#type())?;
        match self.parts(op, index)?.pop() {
            Some(part) => Ok((shape, part)),
            None => Err(no_translation(op)),
        }
    }

    /// All operands, with their shapes.
    pub fn operands(&mut self, op: &Op<'_, '_>) -> Result<Vec<(Shape, String)>> {
        (0..op.operand_count()).map(|index| self.operand(op, index)).collect()
    }

    /// An operand that is a scalar.
    pub fn scalar(&mut self, op: &Op<'_, '_>, index: usize) -> Result<String> {
        match self.operand(op, index)? {
            (Shape { lanes: None, .. }, value) => Ok(value),
            _ => Err(unsupported(op, "an operand that is not a scalar")),
        }
    }

    /// The integer in every lane of an operand, if it is known.
    pub fn known(&self, op: &Op<'_, '_>, index: usize) -> Option<u64> {
        self.constants.get(&identity(operand(op, index).ok()?))?.integer()
    }

    /// Assigns an expression to the only result.
    pub fn define(&mut self, op: &Op<'_, '_>, expression: &str) -> Result<()> {
        let shape = self.result_shape(op)?;
        let name = self.name(shape, expression);
        self.define_parts(op, vec![name])
    }

    /// Records the parts of the only result.
    pub fn define_parts(&mut self, op: &Op<'_, '_>, parts: Parts) -> Result<()> {
        self.values.insert(identity(result(op)?), parts);
        Ok(())
    }

    /// The label of a block; `None` for the entry.
    pub fn block_of(&self, block: BlockRef<'_, '_>) -> Option<Rc<Label>> {
        self.blocks.get(&(block.to_raw().ptr as usize)).cloned()
    }
}

/// The scalars and vectors that make up a value of a type.
pub fn shapes(ty: &Type) -> Option<Vec<Shape>> {
    Some(layout::leaves(ty)?.into_iter().map(|(shape, _)| shape).collect())
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

/// The error of an op that has no translation.
pub fn no_translation(op: &Op<'_, '_>) -> CodegenError {
    CodegenError::at(op, "this op has no translation to C")
}

/// The error of an op with a translation, but not of this variant.
pub fn unsupported(op: &Op<'_, '_>, what: &str) -> CodegenError {
    CodegenError::at(op, &format!("{what} has no translation to C here"))
}
