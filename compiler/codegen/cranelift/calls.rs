//! Calls, and addresses of functions and globals.
use super::{
    function::{Body, Op, Parts, Result, unsupported},
    types::{Element, Shape, parts},
};
use cranelift_codegen::ir::{
    AbiParam, FuncRef, InstBuilder, Signature, Value as ClifValue, types::I64,
};
use cranelift_module::Module as _;
use irc_mlir::{OperationLike, ValueLike};

impl Body<'_, '_, '_> {
    /// Translates a call of a function by name or by address.
    pub fn call(&mut self, op: Op<'_, '_>, callee: Option<String>) -> Result<()> {
        let mut operands = Vec::new();
        let first = usize::from(callee.is_none());
        for index in first..op.operand_count() {
            operands.push(self.operand(&op, index)?);
        }
        let arguments: Parts = operands.concat();
        let call = match callee {
            Some(name) => {
                let function = self.function(&op, &name)?;
                if !self.fits(function, &arguments) {
                    return Err(unsupported(&op, "operands that its function does not take"));
                }
                self.b.ins().call(function, &arguments)
            }
            None => {
                let signature = self.signature_of(&op, &arguments)?;
                let signature = self.b.import_signature(signature);
                let address = self.scalar(&op, 0)?;
                self.b.ins().call_indirect(signature, address, &arguments)
            }
        };
        if op.result_count() == 0 {
            return Ok(());
        }
        let results = self.b.inst_results(call).to_vec();
        self.define(&op, results)
    }

    /// Whether a function accepts the arguments.
    fn fits(&self, function: FuncRef, arguments: &[ClifValue]) -> bool {
        let signature = &self.b.func.dfg.signatures[self.b.func.dfg.ext_funcs[function].signature];
        let types = arguments.iter().map(|value| self.b.func.dfg.value_type(*value));
        types.eq(signature.params.iter().map(|parameter| parameter.value_type))
    }

    fn signature_of(&mut self, op: &Op<'_, '_>, arguments: &[ClifValue]) -> Result<Signature> {
        let mut signature = self.unit.signature();
        let types = arguments.iter().map(|value| self.b.func.dfg.value_type(*value));
        signature.params = types.map(AbiParam::new).collect();
        for result in op.results() {
            let ty = self.type_of(op, result.r#type())?;
            let results = parts(&ty).ok_or_else(|| unsupported(op, "this result"))?;
            signature.returns.extend(results.into_iter().map(AbiParam::new));
        }
        Ok(signature)
    }

    fn function(&mut self, op: &Op<'_, '_>, name: &str) -> Result<FuncRef> {
        if let Some(known) = self.functions.get(name) {
            return Ok(*known);
        }
        let Some(id) = self.unit.functions.get(name).copied() else {
            return Err(unsupported(op, "a call of something that is no function"));
        };
        let function = self.unit.object.declare_func_in_func(id, self.b.func);
        self.functions.insert(name.to_owned(), function);
        Ok(function)
    }

    /// The address of a global or a function.
    pub fn address_of(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        if self.unit.functions.contains_key(name) {
            let function = self.function(op, name)?;
            return Ok(vec![self.b.ins().func_addr(I64, function)]);
        }
        let global = match self.globals.get(name) {
            Some(global) => *global,
            None => {
                let Some(id) = self.unit.globals.get(name).copied() else {
                    return Err(unsupported(op, "something that is no global"));
                };
                let global = self.unit.object.declare_data_in_func(id, self.b.func);
                self.globals.insert(name.to_owned(), global);
                global
            }
        };
        let address = self.b.ins().symbol_value(I64, global);
        Ok(vec![address])
    }

    /// A function of the C library on each lane, by its name for doubles; half floats are computed in
    /// `f32`, as LLVM does.
    pub fn library_call(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.result_shape(op)?;
        let wide = if shape.element.is_small_float() { shape.of(Element::Float) } else { shape };
        let name = match wide.element {
            Element::Double => name.to_owned(),
            Element::Float => format!("{name}f"),
            _ => return Err(unsupported(op, "this type")),
        };
        let mut operands = Vec::new();
        for index in 0..op.operand_count() {
            let (from, value) = (self.operand_shape(op, index)?, self.operand(op, index)?);
            operands.push(self.float(from, wide, &value));
        }
        let function = self.library_function(op, &name, wide, operands.len())?;
        let mut value = self.zeros(wide);
        for lane in 0..wide.lanes.unwrap_or(1) {
            let scalars: Parts =
                operands.iter().map(|operand| self.extract(wide, operand, lane)).collect();
            let call = self.b.ins().call(function, &scalars);
            let result = self.b.inst_results(call)[0];
            match wide.lanes {
                None => value = vec![result],
                Some(_) => self.insert(wide, &mut value, lane, result),
            }
        }
        Ok(self.float(wide, shape, &value))
    }

    fn library_function(
        &mut self,
        op: &Op<'_, '_>,
        name: &str,
        shape: Shape,
        operands: usize,
    ) -> Result<FuncRef> {
        if !self.unit.functions.contains_key(name) {
            let parameter = AbiParam::new(shape.element.scalar());
            let mut signature = self.unit.signature();
            signature.params = vec![parameter; operands];
            signature.returns = vec![parameter];
            self.unit.import(name, &signature)?;
        }
        self.function(op, name)
    }
}
