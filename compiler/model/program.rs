//! Compiled models that are loaded.
use crate::{Compiled, session::with_file};
use bytes::Bytes;
use irc_runtime::{Interface, Library, Port, RunError, Runner};
use irc_tensor::Tensor;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// A compiled model, loaded and ready to run. Any number of threads may run it at once: each run has
/// memory of its own, which the next one uses again.
pub struct Program {
    library: Arc<Library>,
    constants: Vec<Bytes>,
    /// What ran, and may run again.
    idle: Mutex<Vec<Runner>>,
}

impl Program {
    /// Loads a library that holds its constants, as [`super::Model::library`] makes them.
    ///
    /// # Errors
    /// Bytes that are no such library, or that the system does not load.
    pub fn from_library(library: &[u8]) -> Result<Self, RunError> {
        Self::with_constants(library, vec![])
    }

    /// Loads a compiled model, and binds its constants.
    ///
    /// # Errors
    /// What the system does not load.
    pub fn load(compiled: &Compiled) -> Result<Self, RunError> {
        let constants = compiled.constants.iter().map(|constant| constant.bytes.clone()).collect();
        Self::with_constants(&compiled.library, constants)
    }

    fn with_constants(library: &[u8], constants: Vec<Bytes>) -> Result<Self, RunError> {
        let library = Arc::new(with_file(library, Library::load)?);
        let first = Runner::new(library.clone(), &constants)?;
        Ok(Program { library, constants, idle: Mutex::new(vec![first]) })
    }

    /// What the model gives, in order.
    pub fn outputs(&self) -> &[Port] {
        &self.library.interface().outputs
    }

    /// What the model takes, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Port> {
        self.library.interface().inputs.iter().filter(|port| port.weight.is_none())
    }

    /// All of the library's interface, constants and checks too.
    pub fn interface(&self) -> &Interface {
        self.library.interface()
    }

    /// Runs the model on inputs by name; gives outputs by name. Inputs of known size that are not given
    /// are zero.
    ///
    /// # Errors
    /// An unknown name, a wrong type or shape, a check that fails, or the model's own failure.
    pub fn run<N: Into<String>>(
        &self,
        inputs: impl IntoIterator<Item = (N, Tensor)>,
    ) -> Result<BTreeMap<String, Tensor>, RunError> {
        let inputs = inputs.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut runner = idle.map_or_else(|| self.runner(), Ok)?;
        let outputs = runner.run(inputs);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(runner);
        outputs
    }

    /// A runner with memory of its own, for runs that make nothing anew.
    ///
    /// # Errors
    /// No memory.
    pub fn runner(&self) -> Result<Runner, RunError> {
        Runner::new(self.library.clone(), &self.constants)
    }
}
