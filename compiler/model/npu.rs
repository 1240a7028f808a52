//! Models on an NPU.
use super::Model;
use crate::{
    npu::Layers,
    session::{Error, NpuModel, NpuOptions, NpuValues},
};
use irc_gemini_format::schedule::Schedule;
use std::sync::Arc;

impl Model<'_> {
    /// The layers that an NPU computes.
    ///
    /// # Errors
    /// Errors in the file; every node that the NPU does not compute.
    pub fn npu_layers(&self) -> Result<Arc<Layers>, Error> {
        self.session.npu_layers(self.input)
    }

    /// What each layer of a quantised model computes.
    ///
    /// # Errors
    /// As [`Model::npu_layers`]; every layer that the NPU does not compute exactly (`layer-numbers`).
    pub fn npu_values(&self) -> Result<Arc<NpuValues>, Error> {
        self.session.npu_values(self.input)
    }

    /// The model, scheduled for an NPU.
    ///
    /// # Errors
    /// As [`Model::npu_layers`]; a target that is no machine (`npu-target`); what prevents every schedule; a tree
    /// that is not of the model.
    pub fn npu(&self, options: &NpuOptions) -> Result<Arc<NpuModel>, Error> {
        self.session.npu(self.input, options)
    }

    /// The Gemini schedule of the model, of dialect B.
    ///
    /// # Errors
    /// As [`Model::npu`].
    pub fn npu_schedule(&self, options: &NpuOptions) -> Result<Arc<Schedule>, Error> {
        self.session.npu_schedule(self.input, options)
    }

    /// The program of each core.
    ///
    /// # Errors
    /// As [`Model::npu`]; layers that have a schedule and no program (`emit-…`).
    pub fn npu_program(&self, options: &NpuOptions) -> Result<Arc<irc_npu::Program>, Error> {
        self.session.npu_program(self.input, options)
    }
}
