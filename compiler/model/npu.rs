//! Models on an NPU.
use super::Model;
use crate::{
    npu::{Layers, Place},
    session::{Error, NpuModel, NpuOptions, NpuValues},
};
use irc_diag::{Diagnostic, Severity};
use irc_gemini_format::schedule::Schedule;
use irc_npu_schedule::Splits;
use std::sync::Arc;

/// A model as steps for the host and an NPU.
pub struct NpuDivision<'s> {
    /// The steps in the order in which they run. Inputs of a step are inputs of the model, or outputs of earlier steps
    /// that have the same name and are not outputs of the model.
    pub steps: Vec<NpuStep<'s>>,
    /// Why nodes run on the host, as notes at these.
    pub reasons: Vec<Diagnostic>,
}

/// A part of a model.
#[derive(Clone, Copy)]
pub struct NpuStep<'s> {
    /// Where it runs.
    pub place: Place,
    /// The part.
    pub model: Model<'s>,
}

impl<'s> NpuDivision<'s> {
    /// The parts that run on the NPU.
    pub fn parts(&self) -> Vec<Model<'s>> {
        let steps = self.steps.iter().filter(|step| step.place == Place::Npu);
        steps.map(|step| step.model).collect()
    }

    /// Whether the NPU computes all of the model.
    pub fn is_whole(&self) -> bool {
        self.steps.iter().all(|step| step.place == Place::Npu)
    }
}

impl<'s> Model<'s> {
    /// The model as steps for the host and an NPU: the NPU computes as much as it can.
    ///
    /// # Errors
    /// Errors in the file; open sizes; what the NPU does not compute, if it computes nothing.
    pub fn npu_division(&self) -> Result<NpuDivision<'s>, Error> {
        let (found, mut reasons) = self.session.npu_division(self.input)?;
        let part = |step: &crate::npu::Step| {
            let input = self.session.add_part(self.input, step.graph.clone());
            NpuStep { place: step.place, model: Model { session: self.session, input } }
        };
        let mut steps: Vec<NpuStep<'s>> = found.steps.iter().map(part).collect();
        if steps.is_empty() {
            steps.push(NpuStep { place: Place::Npu, model: *self });
        }
        reasons.iter_mut().for_each(|reason| reason.severity = Severity::Note);
        Ok(NpuDivision { steps, reasons })
    }
}

impl Model<'_> {
    /// The layers that an NPU computes.
    ///
    /// # Errors
    /// Errors in the file; every node that the NPU does not compute.
    pub fn npu_layers(&self) -> Result<Arc<Layers>, Error> {
        self.session.npu_layers(self.input, &Splits::default())
    }

    /// The layers that an NPU computes, of which some are in pieces.
    ///
    /// # Errors
    /// As [`Model::npu_layers`]; pieces that the layers cannot have (`schedule-split`).
    pub fn npu_layers_in_pieces(&self, splits: &Splits) -> Result<Arc<Layers>, Error> {
        self.session.npu_layers(self.input, splits)
    }

    /// What each layer of a quantised model computes, or each piece of those that are split.
    ///
    /// # Errors
    /// As [`Model::npu_layers_in_pieces`]; every layer that the NPU does not compute exactly (`layer-numbers`).
    pub fn npu_values(&self, splits: &Splits) -> Result<Arc<NpuValues>, Error> {
        self.session.npu_values(self.input, splits)
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
