//! Compute instructions: convolutions and vector operations, one per tile.

use irc_gemini_format::Nullable;
use irc_gemini_format::frontend::{Activation, FrontendLayer};
use irc_gemini_format::schedule::{Extent, LayerKind, Tile, Wl0Source};
use irc_npu::enums::{Accd, ActMode, Cmpd, Cmps, DataSign, Float2Fixed, Swrs, Treed};
use irc_npu::layout::WL0_UNIT;
use irc_npu::op::{PeCfgDq, PeCfgFm, PeCfgPm, PeCfgTp, PeConv, VpPool, VpSelf};
use irc_npu::{Number, Op};

use crate::diagnostic::{
    FileDiagnostic, Result, error, layer_error, layer_word, signed, word, words,
};
use crate::instructions::VectorSetup;
use crate::movement::{cut_mode, place};
use crate::step::Step;
use crate::tensors::{TensorOffset, View, corner, lengths};

/// The instructions of a workload's tiles, in the order of their keys as strings. The position of a
/// tile selects the half of WL0 of its weights.
pub fn tiles<'s>(view: &View<'s>, index: usize) -> Result<Vec<(&'s Tile, Step)>> {
    let workload = view.workload(index);
    let path = view.at(index);
    let Some(info) = &workload.tile_info else {
        return Err(error("emit-tile", &path, "the workload has no tiles"));
    };
    let tiles = info.by_key();
    let mut origins = [None; 2];
    for (_, tile) in &tiles {
        for (origin, lower) in origins.iter_mut().zip([Some(tile.ifmap_lower), tile.ifmap_lower2]) {
            let lower = lower.map(|lower| {
                let extent = irc_gemini_format::schedule::Extent { lower, upper: lower };
                corner(&extent)
            });
            *origin = least(*origin, lower);
        }
    }
    let work = Work {
        view,
        index,
        path,
        layer: view.layers.layer(&workload.layer_name, &view.at(index))?,
        inputs: inputs(view, index)?,
        operands: view.operands(index)?,
        origins,
        output: output(view, index)?,
    };
    let mut all = vec![];
    for (position, (number, tile)) in tiles.into_iter().enumerate() {
        let step = match workload.layer_type {
            Some(LayerKind::Pe) => work.convolution(tile, number, position)?,
            Some(LayerKind::Vp) => work.vector(tile, number)?,
            _ => return Err(error("emit-kind", &work.path, "expected a pe or vp workload")),
        };
        all.push((tile, step));
    }
    Ok(all)
}

fn least(a: Option<[i64; 4]>, b: Option<[i64; 4]>) -> Option<[i64; 4]> {
    match (a, b) {
        (Some(a), Some(b)) => Some([0, 1, 2, 3].map(|axis| a[axis].min(b[axis]))),
        (a, b) => a.or(b),
    }
}

fn inputs(view: &View<'_>, index: usize) -> Result<Vec<TensorOffset>> {
    view.workload(index).ifmaps().iter().map(|ifmap| view.input(index, ifmap)).collect()
}

/// The place of the first element of the whole result.
fn output(view: &View<'_>, index: usize) -> Result<TensorOffset> {
    let missing = || error("emit-output", &view.at(index), "the result has no place in the buffer");
    let part = view.workload(index).ofmaps().first().ok_or_else(missing)?;
    let mut spot = *view.outputs(index, part)?.first().ok_or_else(missing)?;
    let skipped = corner(&part.extent());
    spot.at.iter_mut().zip(skipped).for_each(|(at, skipped)| *at -= skipped);
    Ok(spot)
}

/// A workload and the state that its tiles share.
struct Work<'v, 's> {
    view: &'v View<'s>,
    index: usize,
    path: String,
    layer: &'s FrontendLayer,
    inputs: Vec<TensorOffset>,
    /// The index of each operand among those of the frontend's layer.
    operands: Vec<usize>,
    /// First element of each operand over all tiles, absolute in the layer's operand.
    origins: [Option<[i64; 4]>; 2],
    output: TensorOffset,
}

impl Work<'_, '_> {
    fn missing_module(&self, module: &str) -> Box<FileDiagnostic> {
        let message = format!("the layer has no module `{module}`");
        layer_error("emit-frontend", (&self.layer.name, "module_list"), message)
    }

    fn input(&self, operand: usize) -> Result<&TensorOffset> {
        self.inputs
            .get(operand)
            .ok_or_else(|| error("emit-input", &self.path, "the workload has too few operands"))
    }

    /// A tile's first element relative to that of the workload.
    fn within(&self, operand: usize, lower: [i64; 4]) -> [i64; 4] {
        let origin = self.origins[operand].unwrap_or(lower);
        [0, 1, 2, 3].map(|axis| lower[axis] - origin[axis])
    }

    fn convolution(&self, tile: &Tile, number: u32, position: usize) -> Result<Step> {
        let input = self.input(0)?;
        let [top, _, left, _] = tile.tile_padding_tblr;
        let [n, c, h, w] = self.within(0, corner(&tile.ifmap()));
        let made = tile.ofmap();
        let kernel = self.pair("kernel_size", self.layer.kernel_size)?;
        let [sphi, spwi] = self.first_pixel(tile, kernel)?;
        let op = PeConv {
            ps: 0,
            sphi,
            spwi,
            sbsg: input.tensor.region,
            dbsg: self.output.tensor.region,
            st_addr: input.address([n, c, h - top, w - left]),
            sw_addr: self.weight_address(tile, position)?,
            dt_addr: self.output.address(self.made_at(tile)),
        };
        let [n, k, h, w] = words(lengths(&made), &self.path)?;
        let [_, c, ..] = words(lengths(&tile.ifmap()), &self.path)?;
        let [mtc0, mtk0] = tile.mtc0_mtk0.ok_or_else(|| self.no_tile("mini tile"))?;
        let [_, _, mini_h, mini_w] =
            tile.out_mini_tile.ok_or_else(|| self.no_tile("mini tile of the result"))?;
        let shape = PeCfgTp {
            kernel,
            tile: [n, k, c, h, w],
            mtk0: word(mtk0, &self.path)?,
            mtc0: word(mtc0, &self.path)?,
            // The registers hold the last index of the mini tile, not its length.
            mti: [word(mini_h - 1, &self.path)?, word(mini_w - 1, &self.path)?],
        };
        let scale = PeCfgDq { dqc: 0, dqb: Number::Int(0), dqk: Number::Int(0) };
        let configs =
            vec![self.formats()?.into(), self.parameters(tile)?.into(), scale.into(), shape.into()];
        self.step(configs, op.into(), number)
    }

    /// The row and column of the operand at which a tile's first window starts, negative in padding.
    fn first_pixel(&self, tile: &Tile, kernel: [u32; 2]) -> Result<[i32; 2]> {
        let [top, _, left, _] = tile.tile_padding_tblr;
        let row = self.begin(tile, 2, top, kernel[0])?;
        let column = self.begin(tile, 3, left, kernel[1])?;
        Ok([signed(row, &self.path)?, signed(column, &self.path)?])
    }

    /// The start of a tile's first window along an axis `[N, C, H, W]`, with some padding before it.
    ///
    /// It is counted from the first element that the tile reads, as in published programs, unless
    /// windows extend into padding after the last element: then only the place in the operand determines it.
    fn begin(&self, tile: &Tile, axis: usize, before: i64, kernel: u32) -> Result<i64> {
        let input = self.input(0)?;
        let first = input.at[axis] + self.within(0, corner(&tile.ifmap()))[axis];
        let read = lengths(&tile.ifmap())[axis];
        let steps = lengths(&tile.ofmap())[axis] - 1;
        let stride = i64::from(self.pair("stride", self.layer.stride)?[axis - 2]);
        if steps * stride + i64::from(kernel) - before <= read {
            return Ok(-before);
        }
        let ends = first + read == i64::from(input.tensor.shape[axis - 1]);
        if ends && (first == 0 || before == 0) {
            return Ok(first - before);
        }
        let message =
            "windows of a tile extend past what it reads, but its operand does not end there";
        Err(error("emit-tile", &self.path, message))
    }

    fn no_tile(&self, what: &str) -> Box<FileDiagnostic> {
        error("emit-tile", &self.path, format!("a tile has no {what}"))
    }

    /// The place of a tile's weights in WL0: whole, or alternating between the halves.
    fn weight_address(&self, tile: &Tile, position: usize) -> Result<i64> {
        let row = self.view.wl0_row(self.index)?;
        if row.source == Wl0Source::Core {
            return Ok(half_of(row.address, row.size, position));
        }
        let weights = self.view.layers.weights(&self.layer.name, &self.path)?;
        let first = self.view.workload(self.index).weight.as_ref();
        let first = first.and_then(|weight| weight.channels()).map_or(0, |(low, _)| low);
        let units = irc_npu::layout::wl0_row(weights.format, weights.size);
        Ok(row.address + (tile.ofmap().axis(1).0 - first) * units / WL0_UNIT)
    }

    fn formats(&self) -> Result<PeCfgFm> {
        let (input, output) = (self.input(0)?.tensor, self.output.tensor);
        let weights = self.view.layers.weights(&self.layer.name, &self.path)?;
        let quantized = self.layer.quant_info.as_ref();
        let zero = quantized.and_then(|quantized| quantized.input_zero_point1.as_ref());
        Ok(PeCfgFm {
            i_f: DataSign::Signed,
            o_f: DataSign::Signed,
            sf: input.format,
            wf: weights.format,
            df: output.format,
            // Padding has the real value 0, whose integer is minus the zero point.
            padv: zero.map_or(Number::Int(0), |zero| negated(number(zero))),
            s_tile: input.shape,
            d_tile: output.shape,
        })
    }

    fn parameters(&self, tile: &Tile) -> Result<PeCfgPm> {
        let quantized = self.layer.quant_info.as_ref();
        let zero = quantized.and_then(|quantized| quantized.output_zero_point.as_ref());
        let scale = quantized.and_then(|quantized| quantized.output_scale.as_ref());
        Ok(PeCfgPm {
            act_md: match self.layer.activation_type {
                Some(Nullable(Some(Activation::Relu))) => ActMode::Relu,
                _ => ActMode::Disable,
            },
            act_pm: Number::Float(0.0),
            qc: Float2Fixed::Round,
            qb: zero.map_or(Number::Int(0), number),
            qk: scale.map_or(Number::Int(0), number),
            adden: 0,
            stride: self.pair("stride", self.layer.stride)?,
            xy_mode: cut_mode(Some(tile), &self.path)?,
        })
    }

    /// Extents of a kernel or its strides; 1 for layers that have none.
    fn pair(&self, key: &str, values: Option<[i64; 2]>) -> Result<[u32; 2]> {
        let [rows, columns] = values.unwrap_or([1, 1]);
        let place = (self.layer.name.as_str(), key);
        Ok([layer_word(rows, place)?, layer_word(columns, place)?])
    }

    /// The start of a tile's result in that of the workload.
    fn made_at(&self, tile: &Tile) -> [i64; 4] {
        let whole = corner(&self.view.workload(self.index).extent);
        let part = corner(&tile.ofmap());
        [0, 1, 2, 3].map(|axis| part[axis] - whole[axis])
    }

    fn step(&self, configs: Vec<Op>, op: Op, number: u32) -> Result<Step> {
        let origin = place(self.view, self.index, signed(number.into(), &self.path)?)?;
        Ok(Step { configs, op, origin, workload: self.index })
    }

    /// One operation per image. It has no batch, and its addresses are those of the first image.
    fn vector(&self, tile: &Tile, number: u32) -> Result<Step> {
        let is_pool = matches!(self.layer.operation.as_str(), "max_pool2d" | "avg_pool2d");
        let [top, _, left, _] = tile.tile_padding_tblr;
        let [_, k, y, x] = self.made_at(tile);
        let dt_addr = self.output.address([0, k, y, x]);
        let dbsg = self.output.tensor.region;
        let operation = self.operation()?;
        let op: Op = if is_pool {
            let first = self.input(0)?;
            let [_, c, h, w] = self.within(0, corner(&tile.ifmap()));
            let [iph, ipw] =
                self.first_pixel(tile, self.pair("pool_size", self.layer.pool_size)?)?;
            VpPool {
                iqen: 1,
                qen: 3,
                shmd: 0,
                gpmd: operation.path,
                cmpd: Cmpd::Default,
                treed: Treed::Default,
                accd: Accd::Default,
                swrs: Swrs::Default,
                lut: operation.function,
                iph,
                ipw,
                sbsg: first.tensor.region,
                dbsg,
                st_addr: first.address([0, c, h - top, w - left]),
                dt_addr,
            }
            .into()
        } else {
            let ((sbsg, st_addr), (sbsg1, st_addr1)) = self.sources(tile)?;
            VpSelf {
                iqen: u32::from(self.view.first_tools || !self.reads_as_is()),
                qen: 3,
                shmd: 0,
                gpmd: operation.path,
                cmpd: Cmpd::Default,
                treed: Treed::Default,
                accd: Accd::Default,
                tm: 0,
                swrs: Swrs::Default,
                lut: operation.function,
                sbsg,
                sbsg1,
                dbsg,
                st_addr,
                st_addr1,
                dt_addr,
            }
            .into()
        };
        self.step(self.vector_configs(tile, &operation)?, op, number)
    }

    /// Ring regions and addresses that a tile reads element by element: that of `STaddr`, and
    /// that of `STaddr1`, the first operand of the layer. With one operand both are the same.
    fn sources(&self, tile: &Tile) -> Result<((u32, i64), (u32, i64))> {
        let place = |operand: usize, part: Extent| -> Result<(u32, i64)> {
            let input = self.input(operand)?;
            let [_, c, h, w] = self.within(operand, corner(&part));
            Ok((input.tensor.region, input.address([0, c, h, w])))
        };
        let first = place(0, tile.ifmap())?;
        let is_sum = self.layer.operation == "element_wise_add";
        match (tile.ifmap2(), &self.operands[..]) {
            (Some(_), [_, _]) if is_sum && !self.are_alike() => {
                let message =
                    "the operands of a sum are in tensors with different pixel or row strides";
                Err(error("emit-operands", &self.path, message))
            }
            (Some(other), [1, _]) if is_sum => Ok((first, place(1, other)?)),
            (Some(other), [_, _]) if is_sum => Ok((place(1, other)?, first)),
            (None, [_]) if !is_sum => Ok((first, first)),
            _ => {
                let message = "expected two operands of a sum, or one of another vector operation";
                Err(error("emit-operands", &self.path, message))
            }
        }
    }

    /// Whether one register can describe the layout of both operands.
    fn are_alike(&self) -> bool {
        let images = self.view.workload(self.index).extent.axis(0);
        let shape = |spot: &TensorOffset| {
            let [c, h, w] = spot.tensor.shape;
            (spot.tensor.format.pixel(c), if images.0 == images.1 { 0 } else { h }, w)
        };
        let mut all = self.inputs.windows(2);
        all.all(|pair| {
            pair[0].tensor.format == pair[1].tensor.format && shape(&pair[0]) == shape(&pair[1])
        })
    }

    /// Whether a ReLU follows a vector operation.
    fn has_relu(&self) -> bool {
        let named = self.layer.activation_type == Some(Nullable(Some(Activation::Relu)));
        named || self.group("relu_group").is_some()
    }

    fn operation(&self) -> Result<Operation> {
        match self.layer.operation.as_str() {
            "element_wise_add" => {
                let path = if self.has_relu() { 69 } else { 5 };
                Ok(Operation { path, function: 18, cmps: Cmps::Default, outside: 0 })
            }
            other if self.has_relu() => {
                let message = format!("unknown vector processor code for `{other}` with a ReLU");
                Err(layer_error("emit-operation", (&self.layer.name, "operation"), message))
            }
            "quantize" => Ok(Operation { path: 4, function: 16, cmps: Cmps::Default, outside: 0 }),
            // Padding must lose every comparison.
            "max_pool2d" => Ok(Operation {
                path: 4,
                function: 17,
                cmps: Cmps::Max,
                outside: i64::from(i16::MIN),
            }),
            "avg_pool2d" => {
                Ok(Operation { path: 4, function: 56, cmps: Cmps::Default, outside: 0 })
            }
            other => {
                let message = format!("unknown vector processor code for `{other}`");
                Err(layer_error("emit-operation", (&self.layer.name, "operation"), message))
            }
        }
    }

    fn group(&self, name: &str) -> Option<&irc_gemini_format::frontend::Group> {
        self.layer.module_list.as_ref()?.group(name)
    }

    /// Whether the first operand needs no dequantisation.
    fn reads_as_is(&self) -> bool {
        let Some(before) = self.group("pre_cal") else { return true };
        let is = |value: &Option<irc_json::Number>, wanted: f64| {
            value.as_ref().is_none_or(|value| value.value() == wanted)
        };
        self.layer.operation == "quantize"
            && is(&before.requan_scale_a, 1.0)
            && is(&before.requan_zp_a, 0.0)
    }

    fn vector_configs(&self, tile: &Tile, operation: &Operation) -> Result<Vec<Op>> {
        let before = self.group("pre_cal").ok_or_else(|| self.missing_module("pre_cal"))?;
        let after = self.group("post_cal").ok_or_else(|| self.missing_module("post_cal"))?;
        let factor =
            self.group("fp32_mul_group").and_then(|group| group.mul_group_k_scalar.as_ref());
        let or =
            |value: &Option<irc_json::Number>, other: Number| value.as_ref().map_or(other, number);
        let zero = || Number::Int(0);
        let [_, k, h, w] = words(lengths(&tile.ofmap()), &self.path)?;
        let is_pool = self.layer.pool_size.is_some();
        let has_second = self.inputs.len() > 1;
        let setup = VectorSetup {
            cmps: operation.cmps,
            factor: factor.map_or(zero(), number),
            rounding: match after.carry_sel.as_deref() {
                Some("round") => Float2Fixed::Round,
                _ => Float2Fixed::Ceil,
            },
            quantise: [or(&after.mul_k, Number::Int(1)), or(&after.sum_b, zero())],
            first: [or(&before.requan_scale_a, Number::Int(1)), or(&before.requan_zp_a, zero())],
            second: [
                or(&before.requan_scale_b, Number::Float(0.0)),
                or(&before.requan_zp_b, Number::Float(0.0)),
            ],
            signs: [DataSign::Signed; 2],
            input: self.input(0)?.tensor,
            output: self.output.tensor,
            stride: self.pair("stride", self.layer.stride.filter(|_| is_pool))?,
            kernel: self.pair("pool_size", self.layer.pool_size)?,
            tile: [k, h, w],
            axes: [
                axes(self.layer.tensor0_lut),
                if has_second { axes(self.layer.tensor1_lut) } else { 0 },
            ],
            outside: operation.outside,
            table: None,
        };
        Ok(setup.configs())
    }
}

/// The vector processor's fields for an operation.
struct Operation {
    path: u32,
    function: u32,
    cmps: Cmps,
    outside: i64,
}

/// A bit for each axis of an operand that is used.
fn axes(lut: Option<[i64; 3]>) -> u32 {
    lut.unwrap_or([1; 3]).iter().fold(0, |bits, used| bits << 1 | u32::from(*used != 0))
}

/// The address of the half of WL0 for the tile at a position.
pub fn half_of(address: i64, size: i64, position: usize) -> i64 {
    if position.is_multiple_of(2) { address } else { address + size / 2 }
}

/// Parses a constant, which may be written as an integer or not.
fn number(value: &irc_json::Number) -> Number {
    match value.text().parse() {
        Ok(whole) => Number::Int(whole),
        Err(_) => Number::Float(value.value()),
    }
}

fn negated(value: Number) -> Number {
    match value {
        Number::Int(value) => Number::Int(-value),
        Number::Float(value) => Number::Float(-value),
    }
}
