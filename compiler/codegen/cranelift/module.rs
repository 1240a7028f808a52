//! Translates a module to an object: its functions and globals are declared, then each is defined.
use super::{
    function::{Body, Op, Result, no_translation, unsupported},
    types,
    unit::{Unit, fault},
};
use crate::codegen::CodegenError;
use cranelift_codegen::{
    Context,
    ir::{AbiParam, Signature},
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, Linkage, Module as _, ModuleError};
use irc_mlir::{
    BlockLike, Module, OperationLike, RegionLike,
    llvm::{self, Data, Type},
    ops::llvm as names,
    read,
};

impl Unit {
    /// Translates a module.
    ///
    /// # Errors
    /// At the first op without a translation; a diagnostic at it has been emitted.
    pub fn translate(&mut self, module: &Module<'_>) -> Result<()> {
        let ops = read::body_ops(module.as_operation());
        for op in &ops {
            match read::op_name(op).as_str() {
                names::FUNC => self.declare_function(*op)?,
                names::MLIR_GLOBAL => self.define_global(*op)?,
                _ => return Err(no_translation(op)),
            }
        }
        let (mut context, mut builder) =
            (self.object.make_context(), FunctionBuilderContext::new());
        for op in ops {
            let defined = read::op_name(&op) == names::FUNC && has_body(&op);
            if defined {
                self.define_function(op, &mut context, &mut builder)?;
            }
        }
        Ok(())
    }

    fn declare_function(&mut self, op: Op<'_, '_>) -> Result<()> {
        let name = name_of(&op)?;
        let linkage = linkage(&op, has_body(&op));
        let signature = self.signature_of(op)?;
        let id = self.object.declare_function(&name, linkage, &signature);
        self.functions.insert(name, id.map_err(|error| fault(&error))?);
        Ok(())
    }

    fn signature_of(&self, op: Op<'_, '_>) -> Result<Signature> {
        let odd = || unsupported(&op, "this signature");
        let (inputs, result) = llvm::function_type(&op, "function_type").ok_or_else(odd)?;
        let mut signature = self.signature();
        for input in &inputs {
            let parts = types::parts(input).ok_or_else(odd)?;
            signature.params.extend(parts.into_iter().map(AbiParam::new));
        }
        let parts = types::parts(&result).ok_or_else(odd)?;
        signature.returns.extend(parts.into_iter().map(AbiParam::new));
        Ok(signature)
    }

    fn define_function(
        &mut self,
        op: Op<'_, '_>,
        context: &mut Context,
        builder_context: &mut FunctionBuilderContext,
    ) -> Result<()> {
        let name = name_of(&op)?;
        let id = self.functions[&name];
        context.func.signature = self.signature_of(op)?;
        context.func.name = cranelift_codegen::ir::UserFuncName::user(0, id.as_u32());
        let mut builder = FunctionBuilder::new(&mut context.func, builder_context);
        Body::new(&mut builder, self).translate(op)?;
        builder.finalize(self.frontend());
        let defined = self.object.define_function(id, context);
        defined
            .map_err(|error| CodegenError::new(format!("cranelift: @{name}: {}", said(&error))))?;
        self.object.clear_context(context);
        Ok(())
    }

    fn define_global(&mut self, op: Op<'_, '_>) -> Result<()> {
        let name = name_of(&op)?;
        let odd = || unsupported(&op, "a global of this type");
        let ty = llvm::type_attribute(&op, "global_type").ok_or_else(odd)?;
        let initial = initial(&op)?;
        let writable = read::attribute(&op, "constant").is_none();
        let linkage = linkage(&op, initial.is_some());
        let id = self.object.declare_data(&name, linkage, writable, false);
        let id = id.map_err(|error| fault(&error))?;
        self.globals.insert(name, id);
        let Some(initial) = initial else { return Ok(()) };
        let size = usize::try_from(types::size(&ty).ok_or_else(odd)?).map_err(|_| odd())?;
        let mut data = DataDescription::new();
        match initial {
            Initial::Zero => data.define_zeroinit(size),
            Initial::Data(bytes) => {
                data.define(laid_out(&ty, bytes, size).ok_or_else(odd)?.into());
            }
        }
        let wanted = read::integer(&op, "alignment").and_then(|bytes| u64::try_from(bytes).ok());
        data.set_align(wanted.unwrap_or(0).max(types::align(&ty).ok_or_else(odd)?));
        self.object.define_data(id, &data).map_err(|error| fault(&error))
    }

    /// The bytes of the finished object.
    ///
    /// # Errors
    /// If the object cannot be written.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.object.finish().emit().map_err(|error| fault(&error))
    }
}

/// The initial value of a global.
enum Initial {
    Zero,
    Data(Data),
}

/// The initial value of a global; `None` for one that is only declared.
fn initial(op: &Op<'_, '_>) -> Result<Option<Initial>> {
    if let Some(value) = read::attribute(op, "value") {
        let data = llvm::data(value).ok_or_else(|| unsupported(op, "this initial value"))?;
        return Ok(Some(Initial::Data(data)));
    }
    let block = op.region(0).ok().and_then(|region| region.first_block());
    let Some(block) = block else { return Ok(None) };
    let returned = block.terminator().and_then(|end| end.operand(0).ok());
    let source = returned.and_then(read::defining_op);
    match source.map(|source| (read::op_name(&source), source)) {
        Some((name, _))
            if matches!(
                name.as_str(),
                names::MLIR_ZERO | names::MLIR_UNDEF | names::MLIR_POISON
            ) =>
        {
            Ok(Some(Initial::Zero))
        }
        Some((name, source)) if name == names::MLIR_CONSTANT => {
            let data = read::attribute(&source, "value").and_then(llvm::data);
            let data = data.ok_or_else(|| unsupported(op, "this initial value"))?;
            Ok(Some(Initial::Data(data)))
        }
        _ => Err(unsupported(op, "this initial value")),
    }
}

/// The bytes of a global, whose elements are contiguous, as in an array.
fn laid_out(ty: &Type, data: Data, size: usize) -> Option<Vec<u8>> {
    let bytes = match data {
        Data::Elements(bytes) => bytes,
        Data::Splat(one) if !one.is_empty() && size.is_multiple_of(one.len()) => {
            one.repeat(size / one.len())
        }
        Data::Splat(_) => return None,
    };
    let plain = matches!(innermost(ty), Type::Struct { .. } | Type::Void);
    let packed = matches!(innermost(ty), Type::Vector(element, _) if **element == Type::Integer(1));
    (bytes.len() == size && !plain && !packed).then_some(bytes)
}

fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::Array(element, _) => innermost(element),
        other => other,
    }
}

/// Whether a function has a body.
fn has_body(op: &Op<'_, '_>) -> bool {
    op.region(0).ok().and_then(|region| region.first_block()).is_some()
}

fn linkage(op: &Op<'_, '_>, defined: bool) -> Linkage {
    match llvm::linkage(op).as_str() {
        _ if !defined => Linkage::Import,
        "internal" | "private" => Linkage::Local,
        _ => Linkage::Export,
    }
}

fn name_of(op: &Op<'_, '_>) -> Result<String> {
    read::string(op, "sym_name").ok_or_else(|| unsupported(op, "a symbol without a name"))
}

/// The message of a Cranelift error, with the verifier's diagnostics if it has any.
fn said(error: &ModuleError) -> String {
    match error {
        ModuleError::Compilation(error) => format!("{error:?}"),
        other => other.to_string(),
    }
}
