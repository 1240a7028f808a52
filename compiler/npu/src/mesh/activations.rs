//! Activations that serve as weights, in products of activations.
//!
//! A weight of output channel `k` and input channel `c` is the element of channel `k` in row `c` of a
//! result, or of several results concatenated along channels, in the order in which the workloads
//! of the layer list them. SET's main branch lists all of them at the first workload and none at the others;
//! a workload that does not list its weights receives them by the transfers that another lists.
//!
//! In L2 a row of weights is followed by its constants. So the constants are loaded, and the
//! activations are copied next to them with channels and rows exchanged.

use std::collections::BTreeMap;

use irc_diag::counted;
use irc_gemini_format::schedule::{Extent, Place, Resident, ResidentKind, Source, Weight};
use irc_npu::layout::WEIGHT_EXTRA;

use super::Mesh;
use super::parts::{Origin, Origins, Part, Piece, padded};
use crate::diagnostic::{Result, error, words};
use crate::instructions::{self, TRANSPOSED};
use crate::tensors::{Tensor, TensorOffset};

impl<'s> Piece<'s> {
    fn add(&mut self, source: &'s Source) {
        if self.sources.iter().all(|other| other.transfer_id != source.transfer_id) {
            self.sources.push(source);
        }
    }
}

impl<'s> Origins<'s> {
    /// Layers that read activations as weights, and their pieces.
    pub(super) fn find_pieces(&self) -> Result<BTreeMap<&'s str, Vec<Piece<'s>>>> {
        let mut all = BTreeMap::new();
        for (layer, places) in &self.by_layer {
            let reads = |place: &&Place| is_activations(self.workload(**place).weight.as_ref());
            if let Some(first) = places.iter().find(reads) {
                all.insert(*layer, self.pieces_of(places, *first)?);
            }
        }
        Ok(all)
    }

    fn pieces_of(&self, places: &[Place], first: Place) -> Result<Vec<Piece<'s>>> {
        let mut all: Vec<Piece<'s>> = vec![];
        let mut next = 0;
        for place in places {
            for source in self.weight_residents(*place).flat_map(Resident::sources) {
                let name = source.layer_name.as_deref().unwrap_or_default();
                let Some((layer, producers)) = self.by_layer.get_key_value(name) else { continue };
                if let Some(piece) = all.iter_mut().find(|piece| piece.layer == *layer) {
                    piece.add(source);
                    continue;
                }
                let count = self.channels(producers);
                let channels = (next, next + count - 1);
                all.push(Piece { layer, channels, sources: vec![source] });
                next += count;
            }
        }
        let wanted = self.channels(places);
        if next != wanted {
            let message = format!(
                "the activations that serve as weights have {}, for {}",
                counted(next, "channel"),
                counted(wanted, "output")
            );
            let path = format!("{}.weight", self.schedule.workload_path(first));
            return Err(error("emit-from-ofmap", &path, message));
        }
        Ok(all)
    }

    /// Channels that some workloads compute together.
    fn channels(&self, places: &[Place]) -> i64 {
        let end = |place: &Place| self.workload(*place).extent.axis(1).1 + 1;
        places.iter().map(end).max().unwrap_or(0)
    }

    fn weight_residents(&self, place: Place) -> impl Iterator<Item = &'s Resident> {
        let workload = self.workload(place);
        workload.buffer.iter().filter(|resident| {
            resident.kind == ResidentKind::Weight
                && resident.workload_id == Some(workload.workload_id)
        })
    }

    /// Lengths of the activations that a workload reads as weights, and their parts: output channels
    /// as channels, input channels as rows.
    pub(super) fn weights(
        &self,
        place: Place,
        operand: usize,
    ) -> Result<Option<([i64; 4], Vec<Part<'s>>)>> {
        let workload = self.workload(place);
        let Some(weight) = workload.weight.as_ref().filter(|weight| is_activations(Some(weight)))
        else {
            return Ok(None);
        };
        let path = format!("{}.weight", self.schedule.workload_path(place));
        let (first, last) = workload.extent.axis(0);
        if first != last {
            let message = "activations of several images serve as weights of one convolution";
            return Err(error("emit-from-ofmap", &path, message));
        }
        let extent = weight.extent();
        let ((low, high), rows) = (extent.axis(1), extent.axis(2));
        let mut parts = vec![];
        for piece in self.pieces.get(workload.layer_name.as_str()).into_iter().flatten() {
            let (from, to) = (low.max(piece.channels.0), high.min(piece.channels.1));
            if from > to {
                continue;
            }
            let offset = piece.channels.0;
            let wanted =
                Extent::new([first, from - offset, rows.0, 0], [first, to - offset, rows.1, 0]);
            for (extent, origin) in self.piece(place, piece, &wanted, &path)? {
                let at = [0, extent.axis(1).0 + offset - low, extent.axis(2).0 - rows.0, 0];
                parts.push(Part::new(operand, at, &extent, origin));
            }
        }
        let size = [1, high - low + 1, rows.1 - rows.0 + 1, 1];
        Ok(Some((size, parts)))
    }

    /// The origin of a part of a result for the workload that reads it as weights.
    fn piece(
        &self,
        place: Place,
        piece: &Piece<'s>,
        wanted: &Extent,
        path: &str,
    ) -> Result<Vec<(Extent, Origin<'s>)>> {
        let own = self.weight_residents(place).flat_map(Resident::sources);
        let own = parts_of(own, piece.layer, wanted);
        let is_all = |parts: &[(Extent, &Source)]| {
            let volumes = parts.iter().map(|(part, _)| part.volume());
            volumes.fold(0, i64::saturating_add) == wanted.volume()
        };
        let found = match is_all(&own) {
            true => own,
            false => parts_of(piece.sources.iter().copied(), piece.layer, wanted),
        };
        if !is_all(&found) {
            let message = format!("no transfer brings {wanted} of `{}` to this core", piece.layer);
            return Err(error("emit-from-ofmap", path, message));
        }
        found.into_iter().map(|(part, source)| Ok((part, self.origin(place, source)?))).collect()
    }
}

/// The intersection of some sources with a box of a layer's result.
fn parts_of<'s>(
    sources: impl Iterator<Item = &'s Source>,
    layer: &str,
    wanted: &Extent,
) -> Vec<(Extent, &'s Source)> {
    let own = sources.filter(|source| source.layer_name.as_deref() == Some(layer));
    own.filter_map(|source| Some((source.extent()?.intersection(wanted)?, source))).collect()
}

/// Whether a weight is activations.
pub fn is_activations(weight: Option<&Weight>) -> bool {
    weight.is_some_and(|weight| weight.from_ofmap == Some(true))
}

impl Mesh<'_> {
    /// Makes weights in L2 from activations `[1, K, C, 1]`: the tensor of rows.
    pub(super) fn weights_of_activations(
        &mut self,
        place: Place,
        activations: &Tensor,
    ) -> Result<Tensor> {
        let path = self.path(place);
        let extent = self.workload(place).weight.as_ref().map(Weight::extent);
        let (first, last) = extent.map_or((0, 0), |extent| extent.axis(1));
        // The tensor may have room for words behind the last channel.
        let (k, c) = (last - first + 1, i64::from(activations.shape[1]));
        let rows = self.room(place, [1, padded(c) + WEIGHT_EXTRA, k, 1])?;
        let constants = self.dram.constants(&self.workload(place).layer_name, &path)?;
        let behind = TensorOffset { tensor: rows, at: [0, padded(c), 0, 0] };
        let tile = words([1, WEIGHT_EXTRA, k, 1], &path)?;
        let from = constants.address([0, 0, first, 0]);
        self.step(
            place,
            instructions::load(instructions::WEIGHTS, &constants, from, &behind, tile),
        )?;
        let from = TensorOffset { tensor: *activations, at: [0; 4] };
        let to = TensorOffset { tensor: rows, at: [0; 4] };
        let tile = words([1, k, c, 1], &path)?;
        self.step(place, instructions::copy(TRANSPOSED, &from, &to, tile))?;
        Ok(rows)
    }
}
