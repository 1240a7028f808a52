//! Checks that sizes follow from boxes: bytes with padded channels in dialect A, bits and KiB in the others.

use irc_diag::{Diagnostic, Sink};

use super::super::{Dialect, Extent, Resident, ResidentKind, Weight, Workload};
use super::facts::{Facts, Place, out_path};
use super::published::Published;

/// Bits per element in dialects B and C.
const BITS: i64 = 8;

/// Bytes per block.
const BLOCK: i64 = 1024;

/// KiB that SET allocates for a result, whatever its size.
const RESULT_BLOCKS: i64 = 10;

/// Bits of channels that are stored together in L2.
const ALIGN_BITS: i64 = 64;

/// Bytes of quantisation and batch norm parameters per output channel.
const CHANNEL_PARAMETERS: i64 = 32;

/// Checks every size.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    let mut sizes = Sizes { facts, place: (0, 0), sink, published };
    for (core, index, workload) in facts.schedule.workloads() {
        sizes.place = (core, index);
        match facts.schedule.dialect {
            Dialect::A => sizes.bytes(workload),
            Dialect::B | Dialect::C => sizes.bits(workload),
        }
    }
    if facts.schedule.dialect != Dialect::A {
        sizes.results_in_bits();
        sizes.blocks_of_dram();
    }
}

/// Bytes of a tensor `[N, C, H, W]` in L2, whose channels are padded to `align`.
fn tensor_bytes(extent: &Extent, align: i64, bits: i64) -> i64 {
    let lengths = extent.lengths().enumerate();
    let padded = lengths.map(|(axis, length)| if axis == 1 { up(length, align) } else { length });
    padded.fold(bits, |product: i64, length| product.saturating_mul(length)) / 8
}

/// Rounds up to a multiple of `step`.
pub(super) fn up(value: i64, step: i64) -> i64 {
    value.saturating_add(step - 1) / step * step
}

struct Sizes<'f, 's> {
    facts: &'f Facts<'f>,
    /// The workload whose sizes are checked.
    place: Place,
    sink: &'s mut Sink,
    published: &'s mut Published,
}

impl Sizes<'_, '_> {
    fn expect(&mut self, code: &'static str, key: &str, found: i64, expected: i64, of: &str) {
        let (facts, place) = (self.facts, self.place);
        let path = || format!("{}.{key}", facts.path(place));
        self.expect_at(code, &path, (found, expected), || of.to_owned());
    }

    fn expect_at(
        &mut self,
        code: &'static str,
        path: &dyn Fn() -> String,
        (found, expected): (i64, i64),
        of: impl Fn() -> String,
    ) {
        if found == expected {
            return;
        }
        let message = || format!("expected {expected} for {}, found {found}", of());
        if self.facts.is_by_hand {
            let why = "hand-written files state sizes of elements of 8 and of 16 bits, and round \
                       some; boxes say what is moved";
            self.published.note("gem-w5-other-size", why, path, message);
        } else {
            self.sink.push(Diagnostic::error(code, message()).path(path()));
        }
    }

    /// Dialect A.
    fn bytes(&mut self, workload: &Workload) {
        for (index, ifmap) in workload.ifmaps().iter().enumerate() {
            let (Some(align), Some(bits), Some(size)) = (ifmap.align, ifmap.bitwidth, ifmap.size)
            else {
                continue;
            };
            let key = format!("ifmap[{index}]");
            self.align(&key, align, bits);
            let bytes = tensor_bytes(&ifmap.extent(), align, bits);
            self.expect("gem-f1-ifmap-size", &format!("{key}.size"), size, bytes, "this box");
        }
        if let Some(weight) = &workload.weight {
            let bytes = weight_bytes(weight);
            let size = weight.size.unwrap_or(bytes);
            self.expect("gem-g1-weight-size", "weight.size", size, bytes, "this weight");
        }
        let sum = workload.ofmaps().iter().fold(0, |sum: i64, part| sum.saturating_add(part.size));
        self.expect("gem-w3-result-size", "ofmap_size", workload.ofmap_size, sum, "the result");
        for (index, resident) in workload.buffer.iter().enumerate() {
            self.resident_bytes(index, resident);
        }
        self.result_bytes(workload);
        for (index, row) in workload.wl0().iter().enumerate() {
            self.align(&format!("{}[{index}]", workload.wl0_key()), row.align, row.bitwidth);
        }
    }

    fn align(&mut self, key: &str, align: i64, bits: i64) {
        let key = format!("{key}.align");
        self.expect("gem-f2-align", &key, align, ALIGN_BITS / bits, "an element of that width");
    }

    fn resident_bytes(&mut self, index: usize, resident: &Resident) {
        let key = format!("buffer[{index}]");
        let (Some(extent), Some(align), Some(bits), Some(size), Some(address)) =
            (resident.extent(), resident.align, resident.bitwidth, resident.size, resident.address)
        else {
            return;
        };
        self.align(&key, align, bits);
        if resident.kind != ResidentKind::Weight {
            let bytes = tensor_bytes(&extent, align, bits);
            let key = format!("{key}.size");
            self.expect("gem-b8-resident-size", &key, size, bytes, "this box");
        }
        if address % 8 != 0 {
            let message = format!("address {address} is not a multiple of 8");
            let path = format!("{}.{key}.address", self.facts.path(self.place));
            self.sink.push(Diagnostic::error("gem-b2-address", message).path(path));
        }
    }

    /// A result has the size of the tensor that holds it for its readers.
    fn result_bytes(&mut self, workload: &Workload) {
        for (index, part) in workload.ofmaps().iter().enumerate() {
            let holder = workload.buffer.iter().find(|resident| {
                let is_own = resident.layer_name.as_ref() == Some(&workload.layer_name);
                let is_result = resident.kind == ResidentKind::Ofmap && is_own;
                is_result || resident.transfers().any(|id| id == part.transfer_id)
            });
            let Some((align, bits)) = holder.and_then(|held| held.align.zip(held.bitwidth)) else {
                continue;
            };
            let bytes = tensor_bytes(&part.extent(), align, bits);
            let key = format!("ofmap[{index}].size");
            self.expect("gem-w3-result-size", &key, part.size, bytes, "this box");
        }
    }

    /// Dialects B and C.
    fn bits(&mut self, workload: &Workload) {
        let bits = workload.extent.volume().saturating_mul(BITS);
        self.expect("gem-w3-result-size", "ofmap_size", workload.ofmap_size, bits, "the result");
        for (index, resident) in workload.buffer.iter().enumerate() {
            let Some(block) = resident.block else { continue };
            let key = format!("buffer[{index}].block");
            let kib = match resident.kind {
                ResidentKind::Ofmap if self.facts.schedule.dialect == Dialect::B => RESULT_BLOCKS,
                ResidentKind::Ofmap | ResidentKind::Ifmap => match resident.extent() {
                    // SET counts one operand of an elementwise layer; others may count all.
                    Some(_) if block == operand_blocks(resident) => continue,
                    Some(extent) => up(extent.volume(), BLOCK) / BLOCK,
                    None => continue,
                },
                ResidentKind::Weight if is_activation(resident) => continue,
                ResidentKind::Weight => {
                    let sources = resident.sources().iter();
                    let bits = sources.fold(0, |sum: i64, part| sum.saturating_add(part.size));
                    up(bits, BITS * BLOCK) / (BITS * BLOCK)
                }
            };
            self.expect("gem-b1-block", &key, block, kib, "this tensor in KiB");
        }
    }

    fn results_in_bits(&mut self) {
        let facts = self.facts;
        for made in &facts.results {
            let bits = made.extent.volume().saturating_mul(BITS);
            let path = || format!("{}.size", made.path(facts.schedule));
            let of = || format!("{} in bits", made.extent);
            self.expect_at("gem-w3-result-size", &path, (made.size, bits), of);
        }
    }

    fn blocks_of_dram(&mut self) {
        let schedule = self.facts.schedule;
        for (group, blocks) in schedule.dram.iter().enumerate() {
            for (index, out) in blocks.outs.iter().enumerate().filter(|(_, out)| !out.is_weight()) {
                let bits = out.extent().volume().saturating_mul(BITS);
                let path = || format!("{}.size", out_path(schedule, (group, index)));
                let of = || format!("{} in bits", out.extent());
                self.expect_at("gem-t5-out-size", &path, (out.size, bits), of);
            }
        }
    }
}

/// Whether a weight is activations: determined by its box, which does not state the number of channels.
fn is_activation(resident: &Resident) -> bool {
    resident.sources().is_empty() || resident.lower.is_none_or(|lower| lower.values().len() > 1)
}

/// Bytes of a weight `[0, K, C, R*S]`: padded channels, and parameters for each output channel.
fn weight_bytes(weight: &Weight) -> i64 {
    let lengths: Vec<i64> = weight.extent().lengths().collect();
    let [_, k, c, window] = lengths[..] else { return 0 };
    let row = up(c, 8).saturating_mul(window).saturating_add(CHANNEL_PARAMETERS);
    k.saturating_mul(row)
}

/// KiB of all that was brought to a tensor.
fn operand_blocks(resident: &Resident) -> i64 {
    let sources = resident.sources().iter().filter_map(|source| source.extent());
    up(sources.map(|extent| extent.volume()).fold(0, i64::saturating_add), BLOCK) / BLOCK
}
