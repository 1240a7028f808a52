//! The data of the frontend file that instructions need, and the places of tensors in DRAM.
//!
//! The schedule does not describe DRAM. Weights are placed in the order of layer indices, each layer's
//! as a whole. So are activations: first the inputs of the network, then every layer with a stored result.

use std::collections::{BTreeMap, BTreeSet};

use irc_gemini_format::frontend::{Frontend, FrontendLayer};
use irc_gemini_format::operands;
use irc_gemini_format::schedule::{DramOut, Schedule, Transfers};
use irc_npu::enums::DataFmt;
use irc_npu::layout::weight_row;

use crate::diagnostic::{Result, error, layer_error, layer_word};

/// A dense tensor `[N, C, H, W]` in DRAM.
#[derive(Clone, Copy, Debug)]
pub struct DramTensor {
    /// First byte, relative to the base register.
    pub base: i64,
    /// Format of its elements.
    pub format: DataFmt,
    /// Channels, height, width.
    pub shape: [u32; 3],
}

impl DramTensor {
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
    /// First byte, relative to the base register.
    pub base: i64,
    /// Format of the elements.
    pub format: DataFmt,
    /// Output channels.
    pub k: u32,
    /// Input channels, kernel height, kernel width.
    pub size: [u32; 3],
}

impl Weights {
    /// Bytes per output channel.
    pub fn row(&self) -> i64 {
        weight_row(self.format, self.size)
    }
}

/// The layers, and the places of their tensors in DRAM.
pub struct Layers<'f> {
    frontend: &'f Frontend,
    weights: BTreeMap<&'f str, Weights>,
    stored: BTreeMap<&'f str, DramTensor>,
}

impl<'f> Layers<'f> {
    /// Lays out DRAM.
    ///
    /// # Errors
    /// When a layer has no shape, or an element type that the NPU does not support.
    pub fn new(
        frontend: &'f Frontend,
        schedule: &Schedule,
        transfers: &Transfers<'_>,
    ) -> Result<Self> {
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
        let loaded = network_inputs(schedule, frontend, transfers);
        for (name, layer) in &layers {
            let operands = loaded.get(name.as_str());
            operands.map_or(Ok(()), |operands| all.place_inputs(layer, operands, &mut end))?;
        }
        let ins = schedule.dram.iter().flat_map(|group| &group.ins);
        let kept: BTreeSet<&str> = ins.filter_map(|block| block.layer_name.as_deref()).collect();
        for (name, layer) in layers.iter().filter(|(name, _)| kept.contains(name.as_str())) {
            let format = format_of(layer.output_dtype.first(), (name, "output_dtype"))?;
            let shape = layer.output_shape.first().map_or(&[][..], Vec::as_slice);
            all.place(name, shape, format, (name, "output_shape"), &mut end)?;
        }
        Ok(all)
    }

    /// The inputs of the network that a layer reads.
    fn place_inputs(
        &mut self,
        layer: &'f FrontendLayer,
        operands: &BTreeSet<usize>,
        end: &mut i64,
    ) -> Result<()> {
        for &operand in operands {
            let Some(name) = layer.previous_layer.get(operand) else { continue };
            if self.frontend.layer(name).is_some() || self.stored.contains_key(name.as_str()) {
                continue;
            }
            let keys = [format!("input_dtype[{operand}]"), format!("input_shape[{operand}]")];
            let [format, place] = keys.each_ref().map(|key| (layer.name.as_str(), key.as_str()));
            let format = format_of(layer.input_dtype.get(operand), format)?;
            let shape = layer.input_shape.get(operand).map_or(&[][..], Vec::as_slice);
            self.place(name, shape, format, place, end)?;
        }
        Ok(())
    }

    fn place(
        &mut self,
        name: &'f str,
        shape: &[i64],
        format: DataFmt,
        place: (&str, &str),
        end: &mut i64,
    ) -> Result<()> {
        let dim = |axis: usize| layer_word(shape.get(axis).copied().unwrap_or(1), place);
        let stored = DramTensor { base: *end, format, shape: [dim(1)?, dim(2)?, dim(3)?] };
        *end = stored.address([i64::from(dim(0)?), 0, 0, 0]);
        self.stored.insert(name, stored);
        Ok(())
    }

    /// The layer with a name.
    pub fn layer(&self, name: &str, path: &str) -> Result<&'f FrontendLayer> {
        let missing = || error("emit-layer", path, format!("the frontend has no layer `{name}`"));
        self.frontend.layer(name).ok_or_else(missing)
    }

    /// The index of the layer with a name.
    pub fn index(&self, name: &str, path: &str) -> Result<u32> {
        layer_word(self.layer(name, path)?.layer_index, (name, "layer_index"))
    }

    /// The place of the weights of a layer.
    pub fn weights(&self, name: &str, path: &str) -> Result<Weights> {
        let missing = || error("emit-weights", path, format!("layer `{name}` has no weights"));
        self.weights.get(name).copied().ok_or_else(missing)
    }

    /// The place of the result of a layer, or of an input of the network.
    pub fn stored(&self, name: &str, path: &str) -> Result<DramTensor> {
        let missing = || error("emit-dram", path, format!("`{name}` is not in DRAM"));
        self.stored.get(name).copied().ok_or_else(missing)
    }

    /// The tensor in DRAM that a block is part of: a result, or what `reader` reads as `operand`.
    pub fn origin(
        &self,
        transfers: &Transfers<'_>,
        block: &DramOut,
        (reader, operand): (&str, usize),
        path: &str,
    ) -> Result<DramTensor> {
        let related = block.related_ifmap.iter().flatten();
        let mut made = related.filter_map(|id| transfers.dram_in(*id)?.layer_name.as_deref());
        let name = match made.next() {
            Some(name) => name,
            None => {
                let previous = &self.layer(reader, path)?.previous_layer;
                previous.get(operand).map_or("", String::as_str)
            }
        };
        self.stored(name, path)
    }
}

/// Operands, as the frontend lists them, that are loaded without having been stored before,
/// by layer.
fn network_inputs<'s>(
    schedule: &'s Schedule,
    frontend: &Frontend,
    transfers: &Transfers<'_>,
) -> BTreeMap<&'s str, BTreeSet<usize>> {
    let is_input = |transfer| {
        let block = transfers.dram_out(transfer);
        block.is_some_and(|block| block.related_ifmap.iter().flatten().next().is_none())
    };
    let mut all: BTreeMap<&'s str, BTreeSet<usize>> = BTreeMap::new();
    for (_, _, workload) in schedule.workloads() {
        let layer = frontend.layer(&workload.layer_name);
        let places = layer.and_then(|layer| operands(schedule, transfers, workload, layer));
        for (operand, ifmap) in places.into_iter().flatten().zip(workload.ifmaps()) {
            if ifmap.transfer_id.iter().any(is_input) {
                all.entry(&workload.layer_name).or_default().insert(operand);
            }
        }
    }
    all
}

/// The format of a frontend's element type, which is at a key of a layer.
pub fn format_of(name: Option<&String>, place: (&str, &str)) -> Result<DataFmt> {
    match name.map(String::as_str) {
        Some("int8") => Ok(DataFmt::Int8),
        Some("float16") => Ok(DataFmt::Fp16),
        other => {
            let found = other.unwrap_or("nothing");
            let message = format!("expected elements of int8 or float16, found {found}");
            Err(layer_error("emit-format", place, message))
        }
    }
}

/// The weights of a layer of the PE array.
fn weights_of(layer: &FrontendLayer, base: i64) -> Result<Option<Weights>> {
    if !matches!(layer.operation.as_str(), "conv2d" | "dense") {
        return Ok(None);
    }
    let Some([k, c, r, s]) = layer.input_shape.get(1).map(Vec::as_slice) else {
        return Ok(None);
    };
    let format = format_of(layer.input_dtype.get(1), (&layer.name, "input_dtype[1]"))?;
    let dim = |size: &i64| layer_word(*size, (&layer.name, "input_shape[1]"));
    Ok(Some(Weights { base, format, k: dim(k)?, size: [dim(c)?, dim(r)?, dim(s)?] }))
}
