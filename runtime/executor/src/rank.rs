//! A plan prepared for execution: checked, with its code and the layout of its buffers.

use std::collections::BTreeMap;

use irc_ark_format::plan::Plan;
use irc_runtime::{Interface, missing_features};
use irc_tensor::Tensor;

use crate::code::PlanCode;
use crate::comm::manifest::Manifest;
use crate::kernels::Kernels;
use crate::layout::Layout;
use crate::memory::Memory;
use crate::script::{Entry, script};
use crate::task::{Task, tasks};
use crate::{Error, task};

/// Maximum number of tasks of a task info that only communicates and whose ops do not specify the number.
const MAX_MESSAGES: i64 = 1 << 24;

/// A plan of one rank, ready to run any number of times.
pub struct Rank {
    pub(crate) plan: Plan,
    pub(crate) layout: Layout,
    pub(crate) tasks: Vec<Task>,
    pub(crate) script: Vec<Entry>,
    pub(crate) manifest: Manifest,
    pub(crate) scratch_bytes: u64,
    /// Maximum number of bytes of a shared value of a function.
    pub(crate) shared_bytes: u64,
    // The library that contains the tasks' entry points.
    _kernels: Kernels,
}

impl Rank {
    /// Combines a plan with its code.
    ///
    /// # Errors
    /// [`Error::Plan`] for plans that ARK's code generator rejects too, [`Error::Code`] if the code
    /// does not match the plan, [`Error::Processor`] if this machine cannot run it.
    pub fn new(plan: Plan, code: &PlanCode, kernels: Kernels) -> Result<Self, Error> {
        let missing = missing_features(&code.requires);
        if !missing.is_empty() {
            return Err(Error::Processor { missing: missing.join(", ") });
        }
        let layout = Layout::of(&plan)?;
        let script = script(&plan)?;
        let rank = plan.rank;
        let of_code = |reason| Error::Code { rank, reason };
        let tasks = tasks(&plan, &layout, code, &kernels).map_err(of_code)?;
        check_ranges(&script, &tasks).map_err(of_code)?;
        let manifest = Manifest::of(&plan, &layout, &script)?;
        Ok(Self {
            plan,
            layout,
            script,
            manifest,
            scratch_bytes: code.scratch_bytes,
            shared_bytes: tasks.iter().map(Task::shared_bytes).max().unwrap_or_default(),
            tasks,
            _kernels: kernels,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The interface: inputs are the buffers whose initial contents matter, outputs those that are written. They
    /// are named `buffer_<Id>` and have one dimension, in the type of the first tensor on each.
    pub fn interface(&self) -> &Interface {
        &self.layout.interface
    }

    /// The names of all its buffers.
    pub fn buffers(&self) -> impl Iterator<Item = String> {
        self.layout.buffers.iter().map(|buffer| crate::layout::buffer_name(buffer.id))
    }

    /// The buffers of the rank with the given contents; the others are zero.
    ///
    /// # Errors
    /// [`Error::UnknownInput`], [`Error::InputType`], [`Error::Allocate`].
    pub fn memory(&self, inputs: BTreeMap<String, Tensor>) -> Result<Memory, Error> {
        Memory::new(&self.layout, inputs)
    }

    /// Every buffer that the plan writes.
    pub fn outputs(&self, memory: Memory) -> BTreeMap<String, Tensor> {
        let mut all: BTreeMap<String, Tensor> = self.buffers().zip(memory.tensors).collect();
        all.retain(|name, _| self.interface().outputs.iter().any(|port| port.name == *name));
        all
    }
}

/// Checks that the code covers every task that the script runs.
fn check_ranges(script: &[Entry], tasks: &[task::Task]) -> Result<(), String> {
    for entry in script {
        let Entry::Tasks(share) = entry else { continue };
        let range = share.distribution.tasks;
        let known = tasks[share.task].tasks().unwrap_or(MAX_MESSAGES);
        if !range.is_empty() && range.end > known {
            return Err(format!(
                "tasks [{}, {}) of task info {} run, and there are {known}",
                range.begin, range.end, share.task
            ));
        }
    }
    Ok(())
}
