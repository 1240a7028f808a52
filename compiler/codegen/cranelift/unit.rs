//! The object of a module while it is built.
use super::isa;
use crate::codegen::{CodegenError, Target};
use cranelift_codegen::{ir::Signature, isa::TargetFrontendConfig};
use cranelift_module::{DataId, FuncId, Linkage, Module as _};
use cranelift_object::{ObjectBuilder, ObjectModule};
use std::collections::BTreeMap;

/// The object of a module.
pub struct Unit {
    /// Cranelift's object module.
    pub object: ObjectModule,
    /// Functions by name, including external ones.
    pub functions: BTreeMap<String, FuncId>,
    /// Globals by name.
    pub globals: BTreeMap<String, DataId>,
    /// Whether the processor has a fused multiply-add.
    pub has_fma: bool,
}

impl Unit {
    /// An empty object for a target.
    ///
    /// # Errors
    /// An unsupported processor.
    pub fn new(target: &Target) -> Result<Self, CodegenError> {
        let isa = isa::isa(target)?;
        let has_fma = isa::features(target).is_some_and(|features| features.contains(&"fma"));
        let names = cranelift_module::default_libcall_names();
        let builder = ObjectBuilder::new(isa, "irc", names).map_err(|error| fault(&error))?;
        Ok(Unit {
            object: ObjectModule::new(builder),
            functions: BTreeMap::new(),
            globals: BTreeMap::new(),
            has_fma,
        })
    }

    /// An empty signature of C's calling convention.
    pub fn signature(&self) -> Signature {
        self.object.make_signature()
    }

    /// The target's properties for calls of the C library.
    pub fn frontend(&self) -> TargetFrontendConfig {
        self.object.target_config()
    }

    /// Declares a function that another object or the process defines.
    ///
    /// # Errors
    /// If the name is declared with another signature.
    pub fn import(&mut self, name: &str, signature: &Signature) -> Result<(), CodegenError> {
        let id = self.object.declare_function(name, Linkage::Import, signature);
        self.functions.insert(name.to_owned(), id.map_err(|error| fault(&error))?);
        Ok(())
    }
}

/// An error of Cranelift whose message does not mention Cranelift.
pub fn fault(error: &dyn std::fmt::Display) -> CodegenError {
    CodegenError::new(format!("cranelift: {error}"))
}
