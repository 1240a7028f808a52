//! The addresses of the tensors of a network in DRAM.

use std::collections::{BTreeMap, BTreeSet};

use irc_gemini_format::frontend::{Frontend, FrontendLayer};
use irc_gemini_format::operands;
use irc_gemini_format::schedule::{Dialect, Schedule, Transfers};
use irc_npu::groups::NarrowGroups;
use irc_npu_sim::functional::MAX_DRAM;
use irc_tensor::{DType, TensorType};

use crate::{Activations, Error, Role, Weights, several_cores};

/// Base register of weights.
pub(crate) const WEIGHTS: u32 = 1;

/// The addresses of the tensors of a network in DRAM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The activations, by address after their base.
    pub activations: Vec<Activations>,
    /// The weights, by address after their base.
    pub weights: Vec<Weights>,
}

impl Layout {
    /// The layout that the assembler computes for a schedule.
    ///
    /// For dialect A: weights by layer index; inputs of the network, then every layer that is at least
    /// partly stored, by layer index. For dialects B and C, which have no frontend file: by name.
    ///
    /// # Errors
    /// If a layer has no shape or has elements that the NPU does not support, or DRAM is too small.
    pub fn new(schedule: &Schedule, frontend: Option<&Frontend>) -> Result<Self, Error> {
        match (schedule.dialect, frontend) {
            (Dialect::A, Some(frontend)) => Self::of_layers(schedule, frontend),
            (Dialect::A, None) => {
                Err(Error::layer("", "a schedule of one core needs the frontend file"))
            }
            (Dialect::B | Dialect::C, _) => several_cores::layout(schedule),
        }
    }

    fn of_layers(schedule: &Schedule, frontend: &Frontend) -> Result<Self, Error> {
        let mut layers: Vec<&(String, FrontendLayer)> = frontend.layers.iter().collect();
        layers.sort_by_key(|(_, layer)| layer.layer_index);
        let mut all = Self::default();
        for (name, layer) in &layers {
            all.add_weights(name, layer)?;
        }
        let loaded = network_inputs(schedule, frontend);
        for (name, layer) in &layers {
            for &operand in loaded.get(name.as_str()).into_iter().flatten() {
                all.add_input(frontend, layer, operand)?;
            }
        }
        let (stored, results) = stored(schedule);
        for (name, layer) in layers.iter().filter(|(name, _)| stored.contains(name.as_str())) {
            let ty = type_of(name, layer.output_dtype.first(), layer.output_shape.first())?;
            let is_result = results.contains(name.as_str());
            all.push(name, ty, if is_result { Role::Output } else { Role::Stored })?;
        }
        Ok(all)
    }

    fn add_weights(&mut self, name: &str, layer: &FrontendLayer) -> Result<(), Error> {
        if !matches!(layer.operation.as_str(), "conv2d" | "dense") {
            return Ok(());
        }
        let ty = type_of(name, layer.input_dtype.get(1), layer.input_shape.get(1))?;
        let quantised = layer.quant_info.as_ref();
        let scale = quantised.and_then(|quantised| quantised.output_scale.as_ref());
        // Results of int8 use about half the range; those of float16 are small numbers.
        let spread = scale.map_or(1.5, |scale| 60.0 / scale.value().max(1e-6));
        self.push_weights(name, ty, spread)
    }

    fn add_input(
        &mut self,
        frontend: &Frontend,
        layer: &FrontendLayer,
        operand: usize,
    ) -> Result<(), Error> {
        let Some(name) = layer.previous_layer.get(operand) else { return Ok(()) };
        if frontend.layer(name).is_some() || self.activation(name).is_some() {
            return Ok(());
        }
        let (dtype, shape) = (layer.input_dtype.get(operand), layer.input_shape.get(operand));
        self.push(name, type_of(name, dtype, shape)?, Role::Input)
    }

    /// The layout for the programs of several cores of a network: of all its tensors by name, with the shapes
    /// `[N, C, H, W]` of activations and `[K, C, R S]` of weights, which have a number of groups.
    ///
    /// # Errors
    /// If DRAM is too small.
    pub fn of_tensors(
        activations: &BTreeMap<String, (TensorType, Role)>,
        weights: &BTreeMap<String, ([i64; 3], u32)>,
    ) -> Result<Self, Error> {
        let mut all = Self::default();
        for (name, (ty, role)) in activations {
            all.push(name, ty.clone(), *role)?;
        }
        for (name, (shape, groups)) in weights {
            all.push_weights(name, TensorType::new(DType::I8, *shape), 60.0)?;
            all.group(*groups)?;
        }
        Ok(all)
    }

    /// Sets the types of elements of activations by name, of types of one byte.
    #[must_use]
    pub fn with_types(mut self, types: &BTreeMap<String, DType>) -> Self {
        for tensor in &mut self.activations {
            if let Some(dtype) = types.get(&tensor.name).filter(|dtype| dtype.size() == 1) {
                tensor.ty.dtype = *dtype;
            }
        }
        self
    }

    /// Sets the shapes `[K, C, R S]` of weights and the numbers of groups by layer; others stay, and all stay in order. New
    /// ones are in the order of names: layers whose weights are results have constants only, and no input channels.
    ///
    /// # Errors
    /// If DRAM is too small.
    pub fn with_weights(
        mut self,
        shapes: &BTreeMap<String, ([i64; 3], u32)>,
    ) -> Result<Self, Error> {
        let mut old = std::mem::take(&mut self.weights);
        for name in shapes.keys() {
            if old.iter().all(|weights| weights.layer != *name) {
                let place = old.iter().position(|weights| weights.layer > *name);
                let ty = TensorType::new(DType::I8, [0, 0, 1]);
                let weights =
                    Weights { layer: name.clone(), ty, address: 0, groups: None, spread: 60.0 };
                old.insert(place.unwrap_or(old.len()), weights);
            }
        }
        for weights in old {
            let (shape, groups) = match shapes.get(&weights.layer) {
                Some((shape, groups)) => (shape.to_vec(), *groups),
                None => (weights.ty.shape, 1),
            };
            let ty = TensorType::new(DType::I8, shape);
            self.push_weights(&weights.layer, ty, weights.spread)?;
            self.group(groups)?;
        }
        Ok(self)
    }

    /// The activations with that name.
    pub fn activation(&self, name: &str) -> Option<&Activations> {
        self.activations.iter().find(|tensor| tensor.name == name)
    }

    /// Whether the name is that of a result of the network.
    pub fn is_output(&self, name: &str) -> bool {
        self.activation(name).is_some_and(|tensor| tensor.role == Role::Output)
    }

    /// Appends activations to the existing ones.
    pub(crate) fn push(&mut self, name: &str, ty: TensorType, role: Role) -> Result<(), Error> {
        let address = self.activations.last().map_or(0, |last| last.address + last.bytes());
        let size = ty.byte_size()?;
        bounded(name, address, size)?;
        self.activations.push(Activations { name: name.into(), ty, address, role });
        Ok(())
    }

    /// Appends weights to the existing ones.
    pub(crate) fn push_weights(
        &mut self,
        layer: &str,
        ty: TensorType,
        spread: f64,
    ) -> Result<(), Error> {
        let address = self.weights.last().map_or(0, |last| last.address + last.bytes());
        // A row is at most forty times as long as its weights: one of a single byte takes eight, and 32 more.
        bounded(layer, address, ty.byte_size()?.saturating_mul(40))?;
        self.weights.push(Weights { layer: layer.into(), ty, address, groups: None, spread });
        Ok(())
    }

    /// Sets the number of groups of the last weights.
    pub(crate) fn group(&mut self, groups: u32) -> Result<(), Error> {
        let Some(weights) = self.weights.last_mut().filter(|_| groups > 1) else { return Ok(()) };
        let [count, channels, area] = weights.shape();
        let outputs = count as u32 / groups;
        if channels > 0 && NarrowGroups::are_narrow(outputs, channels as u32) {
            weights.groups = NarrowGroups::new(outputs, channels as u32, area as u32);
            let phases = weights.groups.map_or(1, |groups| groups.period() as usize);
            let wide = weights.ty.byte_size()?.saturating_mul(64 * phases);
            bounded(&weights.layer, weights.address, wide)?;
        }
        Ok(())
    }
}

fn bounded(name: &str, address: usize, size: usize) -> Result<(), Error> {
    match address.checked_add(size) {
        Some(end) if end <= MAX_DRAM => Ok(()),
        _ => Err(Error::layer(name, format!("DRAM has no more than {MAX_DRAM} bytes"))),
    }
}

fn type_of(
    layer: &str,
    dtype: Option<&String>,
    shape: Option<&Vec<i64>>,
) -> Result<TensorType, Error> {
    let dtype = match dtype.map(String::as_str) {
        Some("int8") => DType::I8,
        Some("float16") => DType::F16,
        other => {
            let found = other.unwrap_or("nothing");
            let message = format!("expected elements of int8 or float16, found {found}");
            return Err(Error::layer(layer, message));
        }
    };
    let shape = shape.filter(|shape| shape.len() <= 4 && shape.iter().all(|size| *size > 0));
    let shape = shape.ok_or_else(|| Error::layer(layer, "it has no shape of up to four axes"))?;
    Ok(TensorType::new(dtype, shape.as_slice()))
}

/// Operands of layers, according to the frontend, that are loaded and that no earlier workload has
/// stored, by layer.
fn network_inputs<'s>(
    schedule: &'s Schedule,
    frontend: &Frontend,
) -> BTreeMap<&'s str, BTreeSet<usize>> {
    let transfers = Transfers::new(schedule);
    let is_input = |transfer| {
        let block = transfers.dram_out(transfer);
        block.is_some_and(|block| block.related_ifmap.iter().flatten().next().is_none())
    };
    let mut all: BTreeMap<&'s str, BTreeSet<usize>> = BTreeMap::new();
    for (_, _, workload) in schedule.workloads() {
        let layer = frontend.layer(&workload.layer_name);
        let places = layer.and_then(|layer| operands(schedule, &transfers, workload, layer));
        for (operand, ifmap) in places.into_iter().flatten().zip(workload.ifmaps()) {
            if ifmap.transfer_id.iter().any(is_input) {
                all.entry(&workload.layer_name).or_default().insert(operand);
            }
        }
    }
    all
}

/// Layers that are at least partly stored, and those of them that are not loaded again.
fn stored(schedule: &Schedule) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let (mut all, mut results) = (BTreeSet::new(), BTreeSet::new());
    for block in schedule.dram.iter().flat_map(|group| &group.ins) {
        let Some(name) = block.layer_name.as_deref() else { continue };
        all.insert(name);
        if block.related_ofmap.iter().flatten().next().is_none() {
            results.insert(name);
        }
    }
    (all, results)
}
