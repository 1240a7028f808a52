//! Vector operations.

use half::f16;
use irc_npu::enums::DataFmt;

use super::memory::CoreMemory;
use super::sign::quantised;
use super::task::{Function, Vector, Window};
use super::tile::Tile;

/// Runs a vector operation.
pub fn run(vector: &Vector, core: &mut CoreMemory) -> Result<(), String> {
    if vector.function == Function::Table {
        return look_up(vector, core);
    }
    let mut first = operand(vector, core, &vector.first)?;
    let (scale, zero) = vector.dequantise;
    let results = match vector.function {
        Function::Product | Function::ProductRelu => {
            let second = vector.second.as_ref().ok_or("there is no second operand")?;
            let second = operand(vector, core, second)?;
            let (scale1, zero1) = vector.dequantise1;
            let relu = vector.function == Function::ProductRelu;
            let least = if relu { 0.0 } else { f32::NEG_INFINITY };
            let product = |a, b| multiply_add(a, scale, zero) * multiply_add(b, scale1, zero1);
            // The first has one number for each element, or for each channel.
            let pairs = first.iter().cycle().zip(&second);
            pairs.map(|(a, b)| product(*a, *b).max(least)).collect()
        }
        Function::Sum | Function::SumRelu => {
            let second = vector.second.as_ref().ok_or("there is no second operand")?;
            let second = operand(vector, core, second)?;
            let (scale1, zero1) = vector.dequantise1;
            let least = if vector.function == Function::Sum { f32::NEG_INFINITY } else { 0.0 };
            let sum = |a, b| multiply_add(a, scale, multiply_add(b, scale1, zero1) + zero);
            first.iter().zip(second).map(|(a, b)| sum(*a, b).max(least)).collect()
        }
        function => {
            first.iter_mut().for_each(|value| *value = multiply_add(*value, scale, zero));
            if function == Function::Same { first } else { pooled(vector, &first) }
        }
    };
    let mut output = vec![0; vector.output.bytes()];
    let pixels = output.chunks_exact_mut(vector.output.channel_bytes.max(1));
    for (values, pixel) in results.chunks_exact(vector.channels.max(1)).zip(pixels) {
        store(vector, values, pixel);
    }
    core.write_tile(&vector.output, &output)
}

/// Replaces each byte by that of the table.
fn look_up(vector: &Vector, core: &mut CoreMemory) -> Result<(), String> {
    if (vector.input, vector.format) != (DataFmt::Int8, DataFmt::Int8) {
        return Err("only tables of INT8 are modelled".into());
    }
    let bytes = core.read_tile(&vector.first)?;
    let mut output = vec![0; vector.output.bytes()];
    let pixels = output.chunks_exact_mut(vector.output.channel_bytes.max(1));
    for (from, to) in bytes.chunks_exact(vector.first.channel_bytes.max(1)).zip(pixels) {
        let channels = from.iter().zip(to).take(vector.channels);
        channels.for_each(|(from, to)| *to = vector.table[usize::from(*from)]);
    }
    core.write_tile(&vector.output, &output)
}

/// The values of a tile, `[H, W, C]` without padding channels.
fn operand(vector: &Vector, core: &CoreMemory, tile: &Tile) -> Result<Vec<f32>, String> {
    let bytes = core.read_tile(tile)?;
    let mut values = Vec::with_capacity(bytes.len());
    for pixel in bytes.chunks_exact(tile.channel_bytes.max(1)) {
        match vector.input {
            DataFmt::Int8 => {
                let bytes = pixel[..vector.channels].iter();
                values.extend(bytes.map(|byte| f32::from(vector.sign.value(*byte))));
            }
            DataFmt::Fp16 => values.extend(
                pixel[..2 * vector.channels]
                    .chunks_exact(2)
                    .map(|pair| f16::from_le_bytes([pair[0], pair[1]]).to_f32()),
            ),
        }
    }
    Ok(values)
}

/// `x y + z`: the product is exact in double precision.
fn multiply_add(x: f32, y: f32, z: f32) -> f32 {
    (f64::from(x) * f64::from(y) + f64::from(z)) as f32
}

/// Elements outside of the input are ignored.
fn pooled(vector: &Vector, input: &[f32]) -> Vec<f32> {
    let [_, height, width] = vector.output.shape.map(i64::from);
    let Window { first, stride, kernel, size } = vector.window;
    let mut results = vec![];
    let mut pixel = vec![0.0; vector.channels];
    let inside = |from: i64, len: i64, size: i64| from.max(0)..(from + len).min(size);
    for (h, w) in (0..height).flat_map(|h| (0..width).map(move |w| (h, w))) {
        pixel.fill(if vector.function == Function::Max { f32::NEG_INFINITY } else { 0.0 });
        let rows = inside(first[0] + h * stride[0], kernel[0], size[0]);
        for row in rows {
            for column in inside(first[1] + w * stride[1], kernel[1], size[1]) {
                let at = (row * size[1] + column) as usize * vector.channels;
                let values = &input[at..at + vector.channels];
                for (result, value) in pixel.iter_mut().zip(values) {
                    *result = match vector.function {
                        Function::Max => result.max(*value),
                        _ => *result + value * vector.factor,
                    };
                }
            }
        }
        results.extend_from_slice(&pixel);
    }
    results
}

fn store(vector: &Vector, values: &[f32], pixel: &mut [u8]) {
    let (scale, zero) = vector.quantise;
    for (k, value) in values.iter().enumerate() {
        let value = value * scale;
        match vector.format {
            DataFmt::Int8 => pixel[k] = quantised(value, zero, vector.output_sign),
            DataFmt::Fp16 => {
                let value = value + zero;
                pixel[2 * k..2 * k + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
            }
        }
    }
}
