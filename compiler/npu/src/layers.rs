//! What instructions need of the frontend file, and where tensors lie in DRAM.
//!
//! DRAM is not in the schedule. Weights follow one another by layer index, each layer's whole. So
//! do activations: first the inputs of the network, then every layer of which some is stored.

use std::collections::{BTreeMap, BTreeSet};

use irc_gemini_format::frontend::{Frontend, FrontendLayer};
use irc_gemini_format::schedule::{DramOut, Schedule};
use irc_npu::enums::DataFmt;
use irc_npu::layout::weight_row;

use crate::finding::{Found, fault, word};

/// A tensor `[N, C, H, W]` in DRAM, packed.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// First byte, from the base register.
    pub base: i64,
    /// Format of its elements.
    pub format: DataFmt,
    /// Channels, height, width.
    pub shape: [u32; 3],
}

impl Stored {
    /// The byte of an element `[N, C, H, W]`.
    pub fn address(&self, at: [i64; 4]) -> i64 {
        let [c, h, w] = self.shape.map(i64::from);
        let [n, k, y, x] = at;
        let element = ((n * h + y) * w + x) * c + k;
        self.base + element * self.format.bytes() as i64
    }
}

/// Weights `[K, C, R, S]` in DRAM.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// First byte, from the base register.
    pub base: i64,
    /// Format of the elements.
    pub format: DataFmt,
    /// Output channels.
    pub k: u32,
    /// Input channels, kernel height, kernel width.
    pub size: [u32; 3],
}

impl Weights {
    /// Bytes of an output channel.
    pub fn row(&self) -> i64 {
        weight_row(self.format, self.size)
    }
}

/// The layers, and where their tensors lie in DRAM.
pub struct Layers<'f> {
    frontend: &'f Frontend,
    weights: BTreeMap<&'f str, Weights>,
    stored: BTreeMap<&'f str, Stored>,
}

impl<'f> Layers<'f> {
    /// Lays out DRAM.
    ///
    /// # Errors
    /// When a layer lacks a shape or has elements that the NPU does not know.
    pub fn new(frontend: &'f Frontend, schedule: &Schedule) -> Found<Self> {
        let mut layers: Vec<&(String, FrontendLayer)> = frontend.layers.iter().collect();
        layers.sort_by_key(|(_, layer)| layer.layer_index);
        let mut all = Self { frontend, weights: BTreeMap::new(), stored: BTreeMap::new() };
        let mut weight_end = 0;
        for (name, layer) in &layers {
            if let Some(weights) = weights_of(layer, weight_end)? {
                weight_end += i64::from(weights.k) * weights.row();
                all.weights.insert(name, weights);
            }
        }
        let mut end = 0;
        let loaded = network_inputs(schedule);
        for (name, layer) in &layers {
            let operands = loaded.get(name.as_str());
            operands.map_or(Ok(()), |operands| all.place_inputs(layer, operands, &mut end))?;
        }
        let ins = schedule.dram.iter().flat_map(|group| &group.ins);
        let kept: BTreeSet<&str> = ins.filter_map(|block| block.layer_name.as_deref()).collect();
        for (name, layer) in layers.iter().filter(|(name, _)| kept.contains(name.as_str())) {
            let format = format_of(layer.output_dtype.first(), name)?;
            let shape = layer.output_shape.first().map_or(&[][..], Vec::as_slice);
            all.place(name, shape, format, &mut end)?;
        }
        Ok(all)
    }

    /// Inputs of the network that a layer reads.
    fn place_inputs(
        &mut self,
        layer: &'f FrontendLayer,
        operands: &BTreeSet<usize>,
        end: &mut i64,
    ) -> Found<()> {
        for &operand in operands {
            let Some(name) = layer.previous_layer.get(operand) else { continue };
            if self.frontend.layer(name).is_some() || self.stored.contains_key(name.as_str()) {
                continue;
            }
            let format = format_of(layer.input_dtype.get(operand), &layer.name)?;
            let shape = layer.input_shape.get(operand).map_or(&[][..], Vec::as_slice);
            self.place(name, shape, format, end)?;
        }
        Ok(())
    }

    fn place(&mut self, name: &'f str, shape: &[i64], format: DataFmt, end: &mut i64) -> Found<()> {
        let path = layer_path(name);
        let dim = |axis: usize| word(shape.get(axis).copied().unwrap_or(1), &path);
        let stored = Stored { base: *end, format, shape: [dim(1)?, dim(2)?, dim(3)?] };
        *end = stored.address([i64::from(dim(0)?), 0, 0, 0]);
        self.stored.insert(name, stored);
        Ok(())
    }

    /// The layer of that name.
    pub fn layer(&self, name: &str, path: &str) -> Found<&'f FrontendLayer> {
        let missing = || fault("emit-layer", path, format!("the frontend has no layer `{name}`"));
        self.frontend.layer(name).ok_or_else(missing)
    }

    /// The index of the layer of that name.
    pub fn index(&self, name: &str, path: &str) -> Found<u32> {
        word(self.layer(name, path)?.layer_index, path)
    }

    /// Where the weights of a layer lie.
    pub fn weights(&self, name: &str, path: &str) -> Found<Weights> {
        let missing = || fault("emit-weights", path, format!("layer `{name}` has no weights"));
        self.weights.get(name).copied().ok_or_else(missing)
    }

    /// Where the result of a layer, or an input of the network, lies.
    pub fn stored(&self, name: &str, path: &str) -> Found<Stored> {
        let missing = || fault("emit-dram", path, format!("`{name}` does not lie in DRAM"));
        self.stored.get(name).copied().ok_or_else(missing)
    }

    /// The tensor that DRAM gives out some of: a result, or what `reader` reads as `operand`.
    pub fn origin(
        &self,
        schedule: &Schedule,
        block: &DramOut,
        (reader, operand): (&str, usize),
        path: &str,
    ) -> Found<Stored> {
        let related = block.related_ifmap.as_deref().unwrap_or_default();
        let ins = schedule.dram.iter().flat_map(|group| &group.ins);
        let made = ins.filter(|block| related.contains(&block.transfer_id));
        let name = match made.filter_map(|block| block.layer_name.as_deref()).next() {
            Some(name) => name,
            None => {
                let previous = &self.layer(reader, path)?.previous_layer;
                previous.get(operand).map_or("", String::as_str)
            }
        };
        self.stored(name, path)
    }
}

/// Operands of layers that are loaded and that nothing has stored before, by layer.
fn network_inputs(schedule: &Schedule) -> BTreeMap<&str, BTreeSet<usize>> {
    let is_input = |transfer| {
        let block = schedule.dram_out(transfer);
        block.is_some_and(|block| block.related_ifmap.iter().flatten().next().is_none())
    };
    let mut all: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (_, _, workload) in schedule.workloads() {
        for (operand, ifmap) in workload.ifmaps().iter().enumerate() {
            if ifmap.transfer_id.iter().any(is_input) {
                all.entry(&workload.layer_name).or_default().insert(operand);
            }
        }
    }
    all
}

/// The format of a frontend's element type.
pub fn format_of(name: Option<&String>, layer: &str) -> Found<DataFmt> {
    match name.map(String::as_str) {
        Some("int8") => Ok(DataFmt::Int8),
        Some("float16") => Ok(DataFmt::Fp16),
        other => {
            let found = other.unwrap_or("nothing");
            let message = format!("expected elements of int8 or float16, found {found}");
            Err(fault("emit-format", &layer_path(layer), message))
        }
    }
}

fn layer_path(name: &str) -> String {
    format!("$[\"{name}\"]")
}

/// The weights of a layer of the PE array.
fn weights_of(layer: &FrontendLayer, base: i64) -> Found<Option<Weights>> {
    if !matches!(layer.operation.as_str(), "conv2d" | "dense") {
        return Ok(None);
    }
    let Some([k, c, r, s]) = layer.input_shape.get(1).map(Vec::as_slice) else {
        return Ok(None);
    };
    let path = layer_path(&layer.name);
    let format = format_of(layer.input_dtype.get(1), &layer.name)?;
    let size = [word(*c, &path)?, word(*r, &path)?, word(*s, &path)?];
    Ok(Some(Weights { base, format, k: word(*k, &path)?, size }))
}
