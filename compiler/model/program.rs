//! Loaded programs.
use crate::{Compiled, session::with_file};
use bytes::Bytes;
use irc_runtime::{Inline, Interface, Library, Pool, Port, RunError, Runner};
use irc_tensor::Tensor;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// A compiled model, loaded and ready to run. Any number of threads may run it at the same time: each run
/// has its own memory, which later runs reuse.
pub struct Program {
    library: Arc<Library>,
    constants: Vec<Bytes>,
    pool: Arc<dyn Pool>,
    /// Runners for reuse.
    idle: Mutex<Vec<Runner>>,
}

impl Program {
    /// Loads a library that contains its constants, as [`super::Model::library`] returns it.
    ///
    /// # Errors
    /// If the bytes are not such a library, or the system cannot load it.
    pub fn from_library(library: &[u8]) -> Result<Self, RunError> {
        Self::with_constants(library, vec![])
    }

    /// Loads a compiled model and binds its constants.
    ///
    /// # Errors
    /// If the system cannot load it.
    pub fn load(compiled: &Compiled) -> Result<Self, RunError> {
        let constants = compiled.constants.iter().map(|constant| constant.bytes.clone()).collect();
        Self::with_constants(&compiled.library, constants)
    }

    fn with_constants(library: &[u8], constants: Vec<Bytes>) -> Result<Self, RunError> {
        let library = Arc::new(with_file(library, Library::load)?);
        let first = Runner::new(library.clone(), &constants)?;
        Ok(Program { library, constants, pool: Arc::new(Inline), idle: Mutex::new(vec![first]) })
    }

    /// The same, to run on the threads of a pool; the results do not depend on them.
    ///
    /// # Errors
    /// If there is no memory for each of them.
    pub fn with_pool(mut self, pool: Arc<dyn Pool>) -> Result<Self, RunError> {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        idle.iter_mut().try_for_each(|runner| runner.set_pool(&pool))?;
        Ok(Program { pool, ..self })
    }

    /// The model's outputs, in order.
    pub fn outputs(&self) -> &[Port] {
        &self.library.interface().outputs
    }

    /// The model's inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Port> {
        self.library.interface().inputs.iter().filter(|port| port.weight.is_none())
    }

    /// The library's whole interface, including constants and checks.
    pub fn interface(&self) -> &Interface {
        self.library.interface()
    }

    /// Runs the model on inputs by name. Returns outputs by name. Omitted inputs of static size are zero.
    ///
    /// # Errors
    /// An unknown name, a wrong type or shape, a failed check, or an error of the model.
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

    /// A runner with its own memory, for runs without allocations.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub fn runner(&self) -> Result<Runner, RunError> {
        let mut runner = Runner::new(self.library.clone(), &self.constants)?;
        runner.set_pool(&self.pool)?;
        Ok(runner)
    }
}
