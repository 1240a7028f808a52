//! The places of tensors in DRAM for a schedule of several cores.

use std::collections::BTreeMap;

use irc_gemini_format::schedule::{Extent, Schedule};
use irc_npu::enums::DataFmt;
use irc_npu::groups::NarrowGroups;
use irc_npu::layout::WEIGHT_EXTRA;

use super::parts::{DramKey, Part};
use crate::diagnostic::{Result, error, word, words};
use crate::layers::{DramTensor, Weights};

/// DRAM: activations, and weights by layer.
#[derive(Default)]
pub struct Dram<'s> {
    activations: BTreeMap<DramKey<'s>, DramTensor>,
    weights: BTreeMap<String, Weights>,
    /// Scale and bias of output channels whose weights are activations.
    constants: BTreeMap<String, DramTensor>,
    weights_end: i64,
}

impl<'s> Dram<'s> {
    /// Places activations one after another: all that are loaded or stored, dense and whole.
    ///
    /// The size of a tensor is the bound of all its accesses.
    pub fn new<'p>(
        schedule: &'s Schedule,
        parts: impl Iterator<Item = &'p Part<'s>>,
        path: &str,
    ) -> Result<Self>
    where
        's: 'p,
    {
        let mut extents: BTreeMap<DramKey<'s>, [i64; 4]> = BTreeMap::new();
        let mut grow = |tensor: DramKey<'s>, extent: &Extent| {
            let all = extents.entry(tensor).or_insert([1; 4]);
            for (axis, size) in all.iter_mut().enumerate() {
                *size = (*size).max(extent.axis(axis).1 + 1);
            }
        };
        for (_, _, workload) in schedule.workloads() {
            grow(DramKey::Result(&workload.layer_name), &workload.extent);
        }
        for part in parts {
            if let Some(tensor) = part.origin.stored() {
                grow(tensor, &part.extent());
            }
        }
        let mut all = Self::default();
        let mut base = 0;
        for (tensor, [n, c, h, w]) in extents {
            let stored = DramTensor { base, format: DataFmt::Int8, shape: words([c, h, w], path)? };
            base = stored.address([n, 0, 0, 0]);
            all.activations.insert(tensor, stored);
        }
        Ok(all)
    }

    /// Adds the weights of a layer at the end.
    pub fn add_weights(&mut self, layer: &str, k: u32, size: [u32; 3]) {
        let weights = Weights { base: self.weights_end, format: DataFmt::Int8, k, size };
        self.weights_end += i64::from(k) * weights.row();
        self.weights.insert(layer.to_owned(), weights);
    }

    /// Adds the weights of a layer whose groups are not whole words at the end: rows of each phase.
    pub fn add_narrow(&mut self, layer: &str, k: u32, groups: &NarrowGroups, [r, s]: [u32; 2]) {
        let weights = Weights { base: self.weights_end, format: DataFmt::Int8, k, size: [0, r, s] };
        self.weights_end += groups.start(k, [r, s], groups.period());
        self.weights.insert(layer.to_owned(), weights);
    }

    /// Adds the constants of a layer whose weights are activations.
    pub fn add_constants(&mut self, layer: &str, k: u32, path: &str) -> Result<()> {
        let shape = [word(WEIGHT_EXTRA, path)?, k, 1];
        let constants = DramTensor { base: self.weights_end, format: DataFmt::Int8, shape };
        self.weights_end = constants.address([1, 0, 0, 0]);
        self.constants.insert(layer.to_owned(), constants);
        Ok(())
    }

    /// The place of a tensor of activations.
    pub fn activations(&self, tensor: &DramKey<'_>, path: &str) -> Result<DramTensor> {
        let (DramKey::Result(name) | DramKey::Outside(name)) = tensor;
        let missing = || error("emit-dram", path, format!("`{name}` is not in DRAM"));
        self.activations.get(tensor).copied().ok_or_else(missing)
    }

    /// The weights of a layer.
    pub fn weights(&self, layer: &str, path: &str) -> Result<Weights> {
        let missing = || error("emit-weights", path, format!("layer `{layer}` has no weights"));
        self.weights.get(layer).copied().ok_or_else(missing)
    }

    /// The constants of a layer, one row per output channel.
    pub fn constants(&self, layer: &str, path: &str) -> Result<DramTensor> {
        let missing = || error("emit-weights", path, format!("layer `{layer}` has no constants"));
        self.constants.get(layer).copied().ok_or_else(missing)
    }
}
