//! Where tensors of a schedule of several cores lie in DRAM.

use std::collections::BTreeMap;

use irc_gemini_format::schedule::{Extent, Schedule};
use irc_npu::enums::DataFmt;

use super::parts::Part;
use crate::finding::{Found, fault, word};
use crate::layers::{Stored, Weights};
use crate::tensors::corner;

/// DRAM: activations by the layer that makes them, weights by layer.
#[derive(Default)]
pub struct Dram {
    activations: BTreeMap<String, Stored>,
    weights: BTreeMap<String, Weights>,
}

impl Dram {
    /// Lays out activations one after the other: what is loaded and stored, dense and whole.
    ///
    /// A layer's tensor is as large as what is made and read of it.
    pub fn new<'p>(
        schedule: &Schedule,
        parts: impl Iterator<Item = &'p Part>,
        path: &str,
    ) -> Found<Self> {
        let mut extents: BTreeMap<String, [i64; 4]> = BTreeMap::new();
        let mut grow = |layer: &str, extent: &Extent| {
            let all = extents.entry(layer.to_owned()).or_insert([1; 4]);
            for (axis, size) in all.iter_mut().enumerate() {
                *size = (*size).max(extent.axis(axis).1 + 1);
            }
        };
        for (_, _, workload) in schedule.workloads() {
            grow(&workload.layer_name, &workload.extent);
        }
        for part in parts.filter(|part| part.is_dram) {
            grow(&part.layer, &part.extent);
        }
        let mut all = Self::default();
        let mut base = 0;
        for (layer, [n, c, h, w]) in extents {
            let shape = [word(c, path)?, word(h, path)?, word(w, path)?];
            let stored = Stored { base, format: DataFmt::Int8, shape };
            base = stored.address([n, 0, 0, 0]);
            all.activations.insert(layer, stored);
        }
        Ok(all)
    }

    /// Adds the weights of a layer after those that are there.
    pub fn add_weights(&mut self, layer: &str, k: u32, size: [u32; 3]) {
        let end = |weights: &Weights| weights.base + i64::from(weights.k) * weights.row();
        let base = self.weights.values().map(end).max().unwrap_or(0);
        let weights = Weights { base, format: DataFmt::Int8, k, size };
        self.weights.entry(layer.to_owned()).or_insert(weights);
    }

    /// The tensor a layer makes.
    pub fn activations(&self, layer: &str, path: &str) -> Found<Stored> {
        let missing = || fault("emit-dram", path, format!("`{layer}` does not lie in DRAM"));
        self.activations.get(layer).copied().ok_or_else(missing)
    }

    /// The weights of a layer.
    pub fn weights(&self, layer: &str, path: &str) -> Found<Weights> {
        let missing = || fault("emit-weights", path, format!("layer `{layer}` has no weights"));
        self.weights.get(layer).copied().ok_or_else(missing)
    }

    /// The byte of the first element of a box of what a layer makes.
    pub fn address(&self, layer: &str, extent: &Extent, path: &str) -> Found<i64> {
        Ok(self.activations(layer, path)?.address(corner(extent)))
    }
}
