//! The computation of layers, as far as it can be inferred from their workloads.

use irc_diag::counted;
use irc_gemini_format::schedule::{LayerKind, Place, Workload};
use irc_npu::groups::NarrowGroups;

use super::activations::is_activations;
use super::geometry::{self, Span, Windows};
use super::parts::Origins;
use crate::diagnostic::{Result, error, word, words};
use crate::known::{Arithmetic, KnownLayer, Numbers};
use crate::layers::Weights;

/// The kind of computation of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A convolution or a matrix product.
    Convolution,
    /// A maximum over windows.
    Pool,
    /// A sum, or the identity for a single operand.
    Elementwise,
    /// A transposition of channels and rows.
    Transpose,
}

impl Work {
    /// The kind of a workload.
    ///
    /// SET omits the kind of grouped convolutions, which have weights, and of transpositions, which
    /// compute as many channels as they read rows, and vice versa.
    pub fn of(workload: &Workload, path: &str) -> Result<Self> {
        let reject = |why: String| Err(error("emit-kind", path, why));
        match (workload.layer_type, workload.weight.is_some()) {
            (Some(LayerKind::Conv2d | LayerKind::Fc) | None, true) => Ok(Self::Convolution),
            (Some(LayerKind::Pool), false) => Ok(Self::Pool),
            (Some(LayerKind::ElementWise | LayerKind::PointToPoint), false) => {
                Ok(Self::Elementwise)
            }
            (Some(LayerKind::Dt) | None, false) if is_transposed(workload) => Ok(Self::Transpose),
            (None, false) => reject(
                "the workload has no kind, and it is no transposition: it has no weight, and does not \
                 exchange channels and rows"
                    .into(),
            ),
            (Some(kind), _) => {
                reject(format!("unsupported workload of {kind} with these weights"))
            }
        }
    }
}

fn is_transposed(workload: &Workload) -> bool {
    let Some(read) = workload.ifmaps().first().map(|ifmap| ifmap.extent()) else { return false };
    let made = &workload.extent;
    [(0, 0), (1, 2), (2, 1), (3, 3)].into_iter().all(|(a, b)| made.axis(a) == read.axis(b))
}

/// Properties that the workloads of a layer share.
pub struct Layer {
    /// Its number, in the order of names.
    pub number: u32,
    /// Windows in rows and columns.
    pub windows: [Windows; 2],
    /// Weights, if it has any.
    pub weights: Option<LayerWeights>,
    /// Its arithmetic, if it is known.
    pub numbers: Option<Numbers>,
}

/// Weights of a layer.
#[derive(Clone, Copy, Debug)]
pub struct LayerWeights {
    /// Output channels.
    pub k: u32,
    /// Output channels that read the same input channels.
    pub group: i64,
    /// Input channels of a group, kernel height and width.
    pub size: [u32; 3],
    /// Whether they are activations.
    pub is_activations: bool,
    /// Whether they are results, one number for each channel, so that the vector processor multiplies. With one channel, the
    /// product of two matrices has the same shape: its numbers, if they are known, distinguish them.
    pub are_factors: bool,
    /// The groups, if there are several that are not whole words of channels and share rows of weights.
    pub narrow: Option<NarrowGroups>,
}

impl LayerWeights {
    /// The end of the input channels that the rows for a workload are for, if groups share them: channels after those that it
    /// reads have weights of zero.
    pub fn shared_end(&self, workload: &Workload) -> Option<i64> {
        let (low, high) = workload.extent.axis(1);
        let [low, count] = [low, high - low + 1].map(|value| u32::try_from(value).ok());
        let groups = self.narrow?;
        Some(groups.end(groups.phase(low?), count?).into())
    }

    /// The rows for a workload whose first output channel is `low`, from their first byte.
    pub fn rows(&self, mut weights: Weights, low: u32) -> Weights {
        weights.size = self.size;
        if let Some(groups) = &self.narrow {
            let phase = groups.phase(low);
            let [_, r, s] = self.size;
            weights.base += groups.start(self.k, [r, s], phase);
            weights.size[0] = groups.width(phase);
        }
        weights
    }
}

impl Layer {
    /// Infers the properties from the workloads at some places, unless they are known.
    pub fn of(
        number: u32,
        origins: &Origins<'_>,
        places: &[Place],
        known: Option<&KnownLayer>,
    ) -> Result<Self> {
        let path = places.first().map_or("$".into(), |at| origins.schedule.workload_path(*at));
        let numbers = known.and_then(|known| known.numbers);
        let shape = Shape::new(origins, places, path);
        let work = places.iter().map(|at| Work::of(origins.workload(*at), &shape.path));
        if !work.into_iter().any(|work| matches!(work, Ok(Work::Convolution | Work::Pool))) {
            return Ok(Self { number, windows: [Windows::NONE; 2], weights: None, numbers });
        }
        let Some(elements) = shape.elements(origins, places)? else {
            let windows = known.map_or_else(|| shape.windows(None), |known| shape.known(known))?;
            return Ok(Self { number, windows, weights: None, numbers });
        };
        let (windows, group, c) = match known {
            Some(known) => shape.known_groups(known, elements)?,
            None => shape.grouped(elements)?,
        };
        let size = words([c, windows[0].kernel, windows[1].kernel], &shape.path)?;
        let k = word(shape.k, &shape.path)?;
        let is_activations =
            places.iter().any(|at| is_activations(origins.workload(*at).weight.as_ref()));
        let outputs = word(group, &shape.path)?;
        let is_narrow =
            k != outputs && !is_activations && NarrowGroups::are_narrow(outputs, size[0]);
        let [channels, r, s] = size;
        let narrow = match r.checked_mul(s).filter(|_| is_narrow) {
            Some(area) => NarrowGroups::new(outputs, channels, area),
            None => None,
        };
        let is_vector = |numbers: Numbers| matches!(numbers.arithmetic, Arithmetic::Vector { .. });
        let are_factors =
            is_activations && group == 1 && size == [1; 3] && numbers.map_or(k > 1, is_vector);
        let weights = Some(LayerWeights { k, group, size, is_activations, are_factors, narrow });
        Ok(Self { number, windows, weights, numbers })
    }
}

/// The extents that the workloads of a layer read and compute together.
struct Shape {
    /// Of the first workload.
    path: String,
    /// In rows and columns.
    spans: [Vec<Span>; 2],
    /// Channels read.
    channels: i64,
    /// Channels made.
    k: i64,
}

impl Shape {
    fn new(origins: &Origins<'_>, places: &[Place], path: String) -> Self {
        let mut all = Self { path, spans: [vec![], vec![]], channels: 1, k: 1 };
        for place in places {
            let made = origins.workload(*place).extent;
            let Some(read) = origins.whole(*place) else { continue };
            all.spans[0].push((made.axis(2), read.axis(2)));
            all.spans[1].push((made.axis(3), read.axis(3)));
            all.channels = all.channels.max(read.axis(1).1 + 1);
            all.k = all.k.max(made.axis(1).1 + 1);
        }
        all
    }

    fn windows(&self, elements: Option<i64>) -> Result<[Windows; 2]> {
        let unclear = || {
            let message = "no windows are consistent with what the workloads of the layer read";
            error("emit-windows", &self.path, message)
        };
        geometry::kernel(&self.spans, elements).ok_or_else(unclear)
    }

    /// The windows of a known layer, which must be consistent with what the workloads read.
    fn known(&self, layer: &KnownLayer) -> Result<[Windows; 2]> {
        let windows = [0, 1].map(|axis| Windows {
            kernel: layer.kernel[axis],
            stride: layer.stride[axis],
            pad: layer.padding[axis],
        });
        if [0, 1].into_iter().all(|axis| geometry::explains(&windows[axis], &self.spans[axis])) {
            return Ok(windows);
        }
        let message = format!(
            "windows of {:?} with strides {:?} and padding {:?} do not read what the workloads of the layer read",
            layer.kernel, layer.stride, layer.padding
        );
        Err(error("emit-windows", &self.path, message))
    }

    /// The same as [`Self::grouped`] for a known layer.
    fn known_groups(&self, layer: &KnownLayer, elements: i64) -> Result<([Windows; 2], i64, i64)> {
        let windows = self.known(layer)?;
        let area = windows[0].kernel * windows[1].kernel;
        let c = self.channels / layer.groups.max(1);
        // Of weights that are activations, `elements` are those of a group's input channels.
        if c * layer.groups == self.channels && c * area == elements && self.k % layer.groups == 0 {
            return Ok((windows, self.k / layer.groups, c));
        }
        let message = format!(
            "weights of {} per output channel do not match windows of {} over {} in {}",
            counted(elements, "element"),
            counted(area, "element"),
            counted(self.channels, "channel"),
            counted(layer.groups, "group")
        );
        Err(error("emit-windows", &format!("{}.weight", self.path), message))
    }

    /// Windows, output channels per group and input channels per group, for weights of so many elements
    /// for each output channel.
    fn grouped(&self, elements: i64) -> Result<([Windows; 2], i64, i64)> {
        if elements % self.channels == 0
            && let Ok(windows) = self.windows(Some(elements / self.channels))
        {
            return Ok((windows, self.k, self.channels));
        }
        let windows = self.windows(None)?;
        let area = windows[0].kernel * windows[1].kernel;
        let c = elements / area;
        let divides = |part: i64, whole: i64| part > 0 && whole % part == 0;
        let is_valid = divides(area, elements) && divides(c, self.channels);
        if is_valid && divides(self.channels / c, self.k) {
            return Ok((windows, self.k / (self.channels / c), c));
        }
        let message = format!(
            "weights of {} per output channel do not match windows over the {} that the layer reads, nor \
             over a group of them",
            counted(elements, "element"),
            counted(self.channels, "channel")
        );
        Err(error("emit-windows", &format!("{}.weight", self.path), message))
    }

    /// Elements of the weights per output channel; `None` for layers without weights.
    fn elements(&self, origins: &Origins<'_>, places: &[Place]) -> Result<Option<i64>> {
        for weight in places.iter().filter_map(|at| origins.workload(*at).weight.as_ref()) {
            if is_activations(Some(weight)) {
                return Ok(weight.extent().lengths().nth(2));
            }
            let block = weight.transfers().find_map(|id| origins.transfers.dram_out(id));
            let Some((block, (low, high))) = block.zip(weight.channels()) else { continue };
            // Sizes are in bits, for elements of eight bits.
            let (count, outputs) = (block.size / 8, high - low + 1);
            if count > 0 && count % outputs == 0 {
                return Ok(Some(count / outputs));
            }
            let message = format!(
                "weights of {} cannot be divided among {}",
                counted(count, "byte"),
                counted(outputs, "output channel")
            );
            return Err(error("emit-windows", &format!("{}.weight", self.path), message));
        }
        Ok(None)
    }
}
