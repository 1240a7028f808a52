//! Tiles of workloads for which the schedule has none.
//!
//! Weights go from L2 to two halves of WL0 in turn, as many output channels at once as fit.
//! Inner tiles are the smallest. Layers whose arithmetic is not known have no activation, and
//! quantisation constants without effect.

use std::cmp::Reverse;

use irc_gemini_format::schedule::Place;
use irc_npu::enums::{
    Accd, ActMode, Cmpd, Cmps, DataSign, Float2Fixed, Swrs, Treed, XCutMode, YCutMode,
};
use irc_npu::layout::{WL0_UNITS as WL0, wl0_units};
use irc_npu::op::{PeCfgDq, PeCfgFm, PeCfgPm, PeCfgTp, PeConv, VpPool, VpSelf};
use irc_npu::{Number, Op};

use super::Mesh;
use super::geometry::Windows;
use super::layer::Work;
use super::parts::{WORD, padded};
use crate::diagnostic::{Result, error, signed, word, words};
use crate::instructions::{self, TRANSPOSED, VectorSetup, WeightSource};
use crate::known::{Arithmetic, Function};
use crate::layers::Weights;
use crate::step::Step;
use crate::tensors::{Tensor, TensorOffset, corner, lengths};

/// Maximum number of output channels in WL0.
const ROWS: i64 = 64;

/// Maximum number of tiles of a workload: published programs have up to 64, and batches add one per image.
const MAX_TILES: i64 = 1 << 14;

/// How the array divides a tile: along output channels and rows, which any layer has.
const CUT: (XCutMode, YCutMode) = (XCutMode::CutK, YCutMode::CutH);

/// The path through the vector processor of a sum without an activation.
const SUM: u32 = 5;

/// The same of a sum of which negative ones become 0.
const SUM_RELU: u32 = 69;

/// Output channels of a group whose weights are in WL0 together.
struct Block {
    /// First channel in the tensor that is written.
    start: i64,
    count: i64,
    /// First channel in the tensor that is read.
    input: i64,
}

/// A convolution of a workload, or of one of its groups.
struct Convolution {
    place: Place,
    path: String,
    input: Tensor,
    output: Tensor,
    weights: Weights,
    /// First row and column of the input, negative in padding.
    offset: [i64; 2],
    windows: [Windows; 2],
}

impl Mesh<'_> {
    /// Issues the tiles of a workload, which is expected to end at a cycle.
    pub(super) fn compute(
        &mut self,
        place: Place,
        inputs: &[Tensor],
        output: &Tensor,
        weights: Option<(i64, i64)>,
        end: u64,
    ) -> Result<()> {
        let path = self.path(place);
        let nothing = || error("emit-input", &path, "the workload reads nothing");
        let input = inputs.first().ok_or_else(nothing)?;
        match (Work::of(self.workload(place), &path)?, weights) {
            (Work::Convolution, Some(rows)) => self.convolve(place, [input, output], rows, end),
            (Work::Convolution, None) => {
                Err(error("emit-weights", &path, "the convolution has no weights"))
            }
            (Work::Transpose, _) => self.transpose(place, input, output),
            (Work::Elementwise, _) if inputs.len() > 2 => self.sums(place, inputs, output),
            (work, _) => self.vectors(place, work, inputs, output),
        }
    }

    fn transpose(&mut self, place: Place, input: &Tensor, output: &Tensor) -> Result<()> {
        let [n, k, h, w] = lengths(&self.workload(place).extent);
        let tile = words([n, h, k, w], &self.path(place))?;
        let spot = |tensor: &Tensor| TensorOffset { tensor: *tensor, at: [0; 4] };
        self.step(place, instructions::copy(TRANSPOSED, &spot(input), &spot(output), tile))
    }

    /// First row and column that a workload's windows read, in its operand; negative in padding.
    fn offset(&self, place: Place) -> Result<[i64; 2]> {
        let windows = self.layer(place)?.windows;
        let made = corner(&self.workload(place).extent);
        let read = self.reads_of(place)?.first;
        Ok([0, 1].map(|axis| {
            let Windows { stride, pad, .. } = windows[axis];
            made[axis + 2] * stride - pad - read[axis + 2]
        }))
    }

    /// `rows` are the address of weights in L2 and the output channel they begin with.
    ///
    /// Channels are read and written in whole words, from the first channel of one. Groups that begin elsewhere are
    /// copied to tensors of their own first, and their results from such tensors to their places.
    fn convolve(
        &mut self,
        place: Place,
        [input, output]: [&Tensor; 2],
        rows: (i64, i64),
        end: u64,
    ) -> Result<()> {
        let path = self.path(place);
        let layer = self.layer(place)?;
        let missing = || error("emit-weights", &path, "the layer has no weights");
        let shared = layer.weights.ok_or_else(missing)?;
        let weights = Weights { base: 0, format: input.format, k: shared.k, size: shared.size };
        let low = word(self.workload(place).extent.axis(1).0, &path)?;
        let weights = shared.rows(weights, low);
        let (windows, offset) = (layer.windows, self.offset(place)?);
        let groups = self.groups(place, &shared)?;
        let per_block = wl0_units(weights.format, ROWS as u32, weights.size);
        if per_block > WL0 {
            let message =
                format!("{ROWS} output channels need {per_block} units of WL0, which has {WL0}");
            return Err(error("emit-wl0", &path, message));
        }
        let most = (WL0 / 2 / per_block).max(1) * ROWS;
        let halves = if WL0 / 2 >= per_block { 2 } else { 1 };
        let first = self.workload(place).extent.axis(1).0 - rows.1;
        let size = self.operand_of(place, 0)?.size;
        let is_read_past = match shared.shared_end(self.workload(place)) {
            Some(end) => padded(size[1]) < end,
            None => groups.iter().any(|group| group.input % WORD != 0),
        };
        if is_read_past {
            self.fill_after(place, input, size)?;
        }
        let mut tile = 0;
        for group in groups {
            let (source, from) = match group.input % WORD {
                0 => (*input, group.input),
                _ => (self.group_operand(place, input, &group, shared.size[0])?, 0),
            };
            let (target, to) = match group.start % WORD {
                0 => (*output, group.start),
                _ => (self.group_result(place, &group)?, 0),
            };
            let path = path.clone();
            let conv = Convolution {
                place,
                path,
                input: source,
                output: target,
                weights,
                offset,
                windows,
            };
            for start in (0..group.count).step_by(most as usize) {
                let half = if tile % halves == 0 { 0 } else { WL0 / 2 };
                let count = (group.count - start).min(most);
                let at = rows.0 + (first + group.start + start) * weights.row();
                let (channels, at) = (word(count, &conv.path)?, WeightSource::L2(0, at));
                self.step(place, instructions::to_wl0(&weights, channels, CUT, at, half))?;
                let block = Block { start: to + start, count, input: from };
                self.convolution(&conv, &block, half, tile)?;
                tile += 1;
            }
            if group.start % WORD != 0 {
                self.place_group(place, &group, &target, output)?;
                self.cores[place.0].ending.push(Reverse((end, target.base)));
            }
            if group.input % WORD != 0 {
                self.cores[place.0].ending.push(Reverse((end, source.base)));
            }
        }
        Ok(())
    }

    fn convolution(
        &mut self,
        conv: &Convolution,
        block: &Block,
        sw_addr: i64,
        tile: i64,
    ) -> Result<()> {
        let path = &conv.path;
        let [n, _, h, w] = lengths(&self.workload(conv.place).extent);
        let [top, left] = conv.offset;
        let numbers = self.layer(conv.place)?.numbers;
        let (outside, relu) = match numbers.map(|numbers| numbers.arithmetic) {
            Some(Arithmetic::Convolution { outside, relu }) => (outside, relu),
            Some(Arithmetic::Vector { .. }) => {
                let message = "the arithmetic of the layer is not that of a convolution";
                return Err(error("emit-kind", path, message));
            }
            None => (0, false),
        };
        // Rows of narrow groups read whole words.
        let [channels, height, width] = conv.input.shape;
        let formats = PeCfgFm {
            i_f: numbers.map_or(DataSign::Signed, |numbers| numbers.input),
            o_f: numbers.map_or(DataSign::Signed, |numbers| numbers.output),
            sf: conv.input.format,
            wf: conv.weights.format,
            df: conv.output.format,
            padv: Number::Int(outside.into()),
            s_tile: [channels.max(conv.weights.size[0]), height, width],
            d_tile: conv.output.shape,
        };
        let parameters = PeCfgPm {
            act_md: if relu { ActMode::Relu } else { ActMode::Disable },
            act_pm: Number::Float(0.0),
            qc: Float2Fixed::Round,
            qb: Number::Int(numbers.map_or(0, |numbers| numbers.zero.into())),
            qk: numbers.map_or(Number::Int(1), |numbers| number(numbers.factor)),
            adden: 0,
            stride: words(conv.windows.map(|windows| windows.stride), path)?,
            xy_mode: CUT,
        };
        let scale = PeCfgDq { dqc: 0, dqb: Number::Int(0), dqk: Number::Int(0) };
        let [c, r, s] = conv.weights.size;
        let [n, count, h, w] = words([n, block.count, h, w], path)?;
        let shape =
            PeCfgTp { kernel: [r, s], tile: [n, count, c, h, w], mtk0: 1, mtc0: 1, mti: [0, 0] };
        let op = PeConv {
            ps: 0,
            sphi: signed(top, path)?,
            spwi: signed(left, path)?,
            sbsg: 0,
            dbsg: 0,
            st_addr: conv.input.address([0, block.input, top, left]),
            sw_addr,
            dt_addr: conv.output.address([0, block.start, 0, 0]),
        };
        let configs = vec![formats.into(), parameters.into(), scale.into(), shape.into()];
        self.tile(conv.place, configs, op.into(), tile)
    }

    /// Whether a workload multiplies each channel by one number that is a result, which the vector processor does.
    pub(super) fn is_scaling(&self, place: Place) -> Result<bool> {
        Ok(self.layer(place)?.weights.is_some_and(|weights| weights.are_factors))
    }

    /// Issues the product of an operand and one factor for each channel.
    pub(super) fn scale(
        &mut self,
        place: Place,
        input: &Tensor,
        factors: &Tensor,
        output: &Tensor,
    ) -> Result<()> {
        let path = self.path(place);
        let [n, ..] = lengths(&self.workload(place).extent);
        let first = self.workload(place).extent.axis(1).0 - self.reads_of(place)?.first[1];
        if n != 1 || first % WORD != 0 {
            let message = "expected the channels of one image, from the first one of a word";
            return Err(error("emit-groups", &path, message));
        }
        let configs = VectorSetup {
            axes: [7, CHANNELS],
            ..self.vector_setup(place, &[*input, *factors], output)?
        };
        let numbers = self.layer(place)?.numbers;
        let op = match numbers.map(|numbers| numbers.arithmetic) {
            None => (0, 0, PRODUCT.0),
            Some(Arithmetic::Vector { function: Function::Product { relu }, .. }) => {
                (1, 3, if relu { SUM_RELU } else { PRODUCT.0 })
            }
            Some(_) => {
                let message = "the arithmetic of the layer is not that of a product";
                return Err(error("emit-kind", &path, message));
            }
        };
        let codes = Codes { iqen: op.0, qen: op.1, path: op.2, function: PRODUCT.1, last: 1 };
        let op = self_op(&codes, [input.address([0, first, 0, 0]), factors.base], output.base);
        self.tile(place, configs.configs(), op.into(), 0)
    }

    /// A sum of more than two operands: two, and then each of the others with the result.
    fn sums(&mut self, place: Place, inputs: &[Tensor], output: &Tensor) -> Result<()> {
        if self.layer(place)?.numbers.is_some() {
            let message =
                format!("expected two operands of a vector operation, found {}", inputs.len());
            return Err(error("emit-operands", &self.path(place), message));
        }
        self.vectors(place, Work::Elementwise, &inputs[..2], output)?;
        for input in &inputs[2..] {
            self.vectors(place, Work::Elementwise, &[*output, *input], output)?;
        }
        Ok(())
    }

    fn vectors(
        &mut self,
        place: Place,
        work: Work,
        inputs: &[Tensor],
        output: &Tensor,
    ) -> Result<()> {
        let path = self.path(place);
        if inputs.len() > 2 {
            let message =
                format!("expected two operands of a vector operation, found {}", inputs.len());
            return Err(error("emit-operands", &path, message));
        }
        let input = inputs[0];
        let [n, ..] = lengths(&self.workload(place).extent);
        few(n, &path)?;
        let [top, left] = self.offset(place)?;
        let codes = self.codes(place, work, inputs.len())?;
        if work != Work::Pool {
            let configs = self.vector_setup(place, inputs, output)?.configs();
            let sources = match (inputs, codes.last) {
                ([only], _) => [only, only],
                (all, last) => [&all[1 - last], &all[last]],
            };
            for image in 0..n {
                let first = [image, 0, 0, 0];
                let from = sources.map(|source| source.address(first));
                let op = self_op(&codes, from, output.address(first));
                self.tile(place, configs.clone(), op.into(), image)?;
            }
            return Ok(());
        }
        for region in self.regions(place)? {
            let mut setup = self.vector_setup(place, inputs, output)?;
            let [rows, columns] = region.map(|range| range.end - range.start);
            setup.tile = words([i64::from(setup.tile[0]), rows, columns], &path)?;
            if let Some(numbers) = self.layer(place)?.numbers
                && self.is_mean(place)?
            {
                let count = region[0].count * region[1].count;
                setup.quantise[0] = number(numbers.factor / count as f32);
            }
            let windows = self.layer(place)?.windows;
            let [top, left] = [(top, 0), (left, 1)].map(|(first, axis): (i64, usize)| {
                first + region[axis].start * windows[axis].stride
            });
            let [iph, ipw] = [signed(top, &path)?, signed(left, &path)?];
            let op = |image| VpPool {
                iqen: codes.iqen,
                qen: codes.qen,
                shmd: 0,
                gpmd: codes.path,
                cmpd: Cmpd::Default,
                treed: Treed::Default,
                accd: Accd::Default,
                swrs: Swrs::Default,
                lut: codes.function,
                iph,
                ipw,
                sbsg: 0,
                dbsg: 0,
                st_addr: input.address([image, 0, top, left]),
                dt_addr: output.address([image, 0, region[0].start, region[1].start]),
            };
            let configs = setup.configs();
            for image in 0..n {
                self.tile(place, configs.clone(), op(image).into(), image)?;
            }
        }
        Ok(())
    }

    /// Whether a workload computes means of the elements of windows that are in the operand.
    fn is_mean(&self, place: Place) -> Result<bool> {
        let numbers = self.layer(place)?.numbers;
        let is_mean = |arithmetic: Arithmetic| {
            matches!(arithmetic, Arithmetic::Vector { function: Function::WindowMean, .. })
        };
        Ok(numbers.is_some_and(|numbers| is_mean(numbers.arithmetic)))
    }

    /// The rows and columns of a workload's result whose windows have equally many elements in the operand; all of them,
    /// unless that matters.
    fn regions(&self, place: Place) -> Result<Vec<[Range; 2]>> {
        let offset = self.offset(place)?;
        let lengths = lengths(&self.workload(place).extent);
        let windows = self.layer(place)?.windows;
        let is_mean = self.is_mean(place)?;
        let read = self.operand_of(place, 0)?.size;
        let ranges = [0, 1].map(|axis| {
            let (made, size) = (lengths[axis + 2], read[axis + 2]);
            let Windows { kernel, stride, .. } = windows[axis];
            if !is_mean {
                return vec![Range { start: 0, end: made, count: 1 }];
            }
            let mut all: Vec<Range> = vec![];
            for at in 0..made {
                let first = offset[axis] + at * stride;
                let count = ((first + kernel).min(size) - first.max(0)).max(1);
                match all.last_mut() {
                    Some(last) if last.count == count => last.end = at + 1,
                    _ => all.push(Range { start: at, end: at + 1, count }),
                }
            }
            all
        });
        let [rows, columns] = ranges;
        few((rows.len() * columns.len()) as i64, &self.path(place))?;
        Ok(rows.iter().flat_map(|row| columns.iter().map(|column| [*row, *column])).collect())
    }

    /// The codes of a vector operation with some operands.
    fn codes(&self, place: Place, work: Work, operands: usize) -> Result<Codes> {
        let numbers = self.layer(place)?.numbers;
        let function = match numbers.map(|numbers| numbers.arithmetic) {
            None if operands > 1 => Function::Sum { relu: false, last: 1 },
            None => Function::Same,
            Some(Arithmetic::Vector { function, .. }) => function,
            Some(Arithmetic::Convolution { .. }) => {
                let message = "the arithmetic of the layer is not that of a vector operation";
                return Err(error("emit-kind", &self.path(place), message));
            }
        };
        let last = match function {
            Function::Sum { last, .. } => last.min(1),
            _ => 1,
        };
        let (path, function) = match (function, work, operands) {
            (Function::Sum { relu: false, .. }, Work::Elementwise, 2) => (SUM, 18),
            (Function::Sum { relu: true, .. }, Work::Elementwise, 2) => (SUM_RELU, 18),
            (Function::Product { relu: false }, Work::Elementwise, 2) => PRODUCT,
            (Function::Product { relu: true }, Work::Elementwise, 2) => (SUM_RELU, PRODUCT.1),
            (Function::Table, Work::Elementwise, 1) => (4, 20),
            (Function::Same, Work::Elementwise, 1) => (4, 16),
            (Function::Same, Work::Pool, 1) => (4, 17),
            (Function::WindowSum | Function::WindowMean, Work::Pool, 1) => (4, 56),
            _ => {
                let message =
                    format!("no vector operation is this function of {operands} operands");
                return Err(error("emit-operands", &self.path(place), message));
            }
        };
        let is_computed = numbers.is_some_and(|numbers| numbers.table.is_none());
        let [iqen, qen] = if is_computed { [1, 3] } else { [0, 0] };
        Ok(Codes { iqen, qen, path, function, last })
    }

    fn vector_setup(
        &self,
        place: Place,
        inputs: &[Tensor],
        output: &Tensor,
    ) -> Result<VectorSetup> {
        let path = self.path(place);
        let is_pool = Work::of(self.workload(place), &path)? == Work::Pool;
        let layer = self.layer(place)?;
        let (windows, numbers) = (layer.windows, layer.numbers);
        let pair = |(k, b): (f32, f32)| [number(k), number(b)];
        let neutral = [Number::Int(1), Number::Int(0)];
        let (function, constants) = match numbers.map(|numbers| numbers.arithmetic) {
            Some(Arithmetic::Vector { function, first, second }) => {
                (function, [pair(first), pair(second)])
            }
            _ => (Function::Same, [neutral, neutral]),
        };
        // IQK0 and IQB0 are for the operand at STaddr1, whose product is added last.
        let [first, second] = match function {
            Function::Sum { last: 1, .. } | Function::Product { .. } => {
                [constants[1], constants[0]]
            }
            _ => constants,
        };
        let is_sum = matches!(function, Function::WindowSum | Function::WindowMean);
        Ok(VectorSetup {
            cmps: if is_pool && !is_sum { Cmps::Max } else { Cmps::Default },
            // That of each element of a window.
            factor: Number::Int(is_sum.into()),
            rounding: if numbers.is_some() { Float2Fixed::Round } else { Float2Fixed::Ceil },
            quantise: numbers.map_or(neutral, |numbers| {
                [number(numbers.factor), Number::Int(numbers.zero.into())]
            }),
            first,
            second,
            signs: [
                numbers.map_or(DataSign::Signed, |numbers| numbers.input),
                numbers.map_or(DataSign::Signed, |numbers| numbers.output),
            ],
            input: inputs[0],
            output: *output,
            stride: words(windows.map(|windows| windows.stride), &path)?,
            kernel: words(windows.map(|windows| windows.kernel), &path)?,
            tile: output.shape,
            axes: [7, if inputs.len() > 1 { 7 } else { 0 }],
            outside: if is_pool && !is_sum { i64::from(i16::MIN) } else { 0 },
            table: numbers.and_then(|numbers| numbers.table),
        })
    }

    fn tile(&mut self, place: Place, configs: Vec<Op>, op: Op, tile: i64) -> Result<()> {
        let origin = self.instruction_origin(place, tile)?;
        self.push(place.0, Step { configs, op, origin, workload: place.1 });
        Ok(())
    }
}

/// The path and the function of a product of two operands.
const PRODUCT: (u32, u32) = (5, 19);

/// The axes of a second operand that is one number for each channel.
const CHANNELS: u32 = 1;

/// Rows or columns of a result, and how many elements of each window are in the operand.
#[derive(Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    count: i64,
}

/// An operation of one operand or two, at these addresses.
fn self_op(codes: &Codes, [second, first]: [i64; 2], result: i64) -> VpSelf {
    VpSelf {
        iqen: codes.iqen,
        qen: codes.qen,
        shmd: 0,
        gpmd: codes.path,
        cmpd: Cmpd::Default,
        treed: Treed::Default,
        accd: Accd::Default,
        tm: 0,
        swrs: Swrs::Default,
        lut: codes.function,
        sbsg: 0,
        sbsg1: 0,
        dbsg: 0,
        st_addr: second,
        st_addr1: first,
        dt_addr: result,
    }
}

/// The codes of a vector operation: whether operands are dequantised and the result is quantised, the path through
/// the vector processor, and the function.
struct Codes {
    iqen: u32,
    qen: u32,
    path: u32,
    function: u32,
    /// The operand of a sum at `STaddr1`.
    last: usize,
}

fn number(value: f32) -> Number {
    match value as i32 {
        whole if whole as f32 == value => Number::Int(whole.into()),
        _ => Number::Float(value.into()),
    }
}

/// Rejects workloads with too many tiles.
pub(super) fn few(tiles: i64, path: &str) -> Result<()> {
    if tiles <= MAX_TILES {
        return Ok(());
    }
    let message = format!("expected at most {MAX_TILES} tiles, found {tiles}");
    Err(error("emit-range", path, message))
}
