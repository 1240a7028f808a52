//! Calls, and addresses of functions and globals.
use super::{
    super::layout::{Element, Shape},
    arithmetic::Operand,
    function::{Body, Op, Parts, Result, unsupported},
    types::{Lane, is_wide},
};
use irc_mlir::{OperationLike, ValueLike};

impl Body<'_> {
    /// Translates a call of a function by name or by address.
    pub fn call(&mut self, op: Op<'_, '_>, callee: Option<String>) -> Result<()> {
        let mut arguments: Vec<Operand> = Vec::new();
        for index in usize::from(callee.is_none())..op.operand_count() {
            let ty = self.operand_type(&op, index)?;
            let shapes = super::function::shapes(&ty);
            let shapes = shapes.ok_or_else(|| unsupported(&op, "this argument"))?;
            arguments.extend(shapes.into_iter().zip(self.parts(&op, index)?));
        }
        let mut results = Vec::new();
        for result in op.results() {
            results.extend(self.shapes_of(&op, result.r#type())?);
        }
        let function = match callee {
            Some(name) => {
                let known = self.unit.functions.get(&name);
                let odd = || unsupported(&op, "a call of something that is no function");
                let known = known.ok_or_else(odd)?;
                let inputs = arguments.iter().map(|(shape, _)| shape);
                if !known.inputs.iter().eq(inputs) || known.results != results {
                    return Err(unsupported(&op, "operands that its function does not take"));
                }
                known.name.clone()
            }
            None => self.function_at(&op, &arguments, &results)?,
        };
        let arguments: Vec<(Shape, &str)> =
            arguments.iter().map(|(shape, value)| (*shape, value.as_str())).collect();
        let call = self.invoke(&function, &arguments);
        self.take_results(&op, &results, &call)
    }

    /// A function pointer from its address.
    fn function_at(
        &mut self,
        op: &Op<'_, '_>,
        arguments: &[Operand],
        results: &[Shape],
    ) -> Result<String> {
        let address = self.scalar(op, 0)?;
        let mut list = Vec::new();
        for (shape, _) in arguments {
            let ty = self.unit.ty(*shape);
            list.push(if is_wide(*shape) { format!("const {ty} *") } else { ty });
        }
        let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
        let result = self.unit.result_type(results);
        Ok(format!("(({result} (*)({list})){address})"))
    }

    fn take_results(&mut self, op: &Op<'_, '_>, results: &[Shape], call: &str) -> Result<()> {
        match results {
            [] => {
                self.line(&format!("{call};"));
                if op.result_count() == 0 { Ok(()) } else { self.define_parts(op, Parts::new()) }
            }
            [one] if !is_wide(*one) => self.define(op, call),
            several => {
                let ty = self.unit.result_type(several);
                let name = self.fresh("r");
                self.line(&format!("const {ty} {name} = {call};"));
                let mut parts = Parts::new();
                for (index, shape) in several.iter().enumerate() {
                    parts.push(self.name(*shape, &format!("{name}.f{index}")));
                }
                self.define_parts(op, parts)
            }
        }
    }

    /// The address of a global or a function.
    pub fn address_of(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let address = self.unit.address(name);
        address.ok_or_else(|| unsupported(op, "something that is no global"))
    }

    /// A function of the C library on each lane, by its name for doubles; half floats are computed in
    /// `f32`, as LLVM does.
    pub fn library_call(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let operands = self.operands(op)?;
        let shape = self.result_shape(op)?;
        if !shape.element.is_float() {
            return Err(unsupported(op, "this type"));
        }
        let values: Vec<&str> = operands.iter().map(|(_, value)| value.as_str()).collect();
        Ok(self.in_float(shape, &values, |body, shape, values| {
            let operands: Vec<Operand> =
                values.iter().map(|value| (shape, value.clone())).collect();
            body.library_function(name, shape, &operands)
        }))
    }

    /// A function of `math.h` on each lane of `f32` or `f64`.
    pub fn library_function(&mut self, name: &str, shape: Shape, operands: &[Operand]) -> String {
        // C11 does not declare this one.
        let prefix = if name == "exp10" { "__builtin_" } else { "" };
        let single = Lane::of(shape.element) == Lane::of(Element::Float);
        let suffix = if single { "f" } else { "" };
        self.unit.header("math.h");
        self.each_lane(name, shape, operands, |_, values| {
            format!("{prefix}{name}{suffix}({})", values.join(", "))
        })
    }
}
