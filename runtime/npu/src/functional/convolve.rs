//! Convolutions.

use half::f16;
use irc_npu::enums::DataFmt;
use irc_npu::layout::WEIGHT_EXTRA;

use super::memory::CoreMemory;
use super::sign::quantised;
use super::task::{Convolution, Window};
use super::tile::Tile;

/// Number of pixels of an output row computed together, so that a row of weights is read once for all.
const BLOCK: usize = 4;

/// Runs a convolution.
pub fn run(conv: &Convolution, core: &mut CoreMemory) -> Result<(), String> {
    let [n, height, width] = conv.output.shape.map(|size| size as usize);
    let patch = conv.window.kernel.iter().product::<i64>() as usize * conv.channels;
    if patch == 0 || conv.output.bytes() == 0 {
        return Err("a convolution without inputs or outputs".into());
    }
    let rows = rows_of(conv, core)?;
    let mut output = vec![0; conv.output.bytes()];
    let mut patches = vec![0; patch * BLOCK];
    let pixels = output.chunks_exact_mut((conv.output.channel_bytes * width).max(1));
    for (row, out) in pixels.enumerate().take(n * height) {
        let (image, h) = (row / height, row % height);
        let input = Input::read(conv, core, image, h)?;
        let blocks = out.chunks_mut(conv.output.channel_bytes * BLOCK);
        for (block, out) in blocks.enumerate() {
            let columns = out.len() / conv.output.channel_bytes;
            for (column, patch) in patches.chunks_exact_mut(patch).enumerate().take(columns) {
                input.gather(conv, block * BLOCK + column, patch);
            }
            for (k, row) in rows.iter().enumerate() {
                let sums = dots(&row.weights, &patches, patch);
                for (column, sum) in sums.iter().enumerate().take(columns) {
                    let pixel = &mut out[column * conv.output.channel_bytes..];
                    let sum = sum.wrapping_add(row.offset);
                    put(conv, k, sum as f32 * row.scale + row.bias, pixel);
                }
            }
        }
    }
    core.write_tile(&conv.output, &output)
}

/// The weights of an output channel.
struct Row {
    weights: Vec<i8>,
    offset: i32,
    scale: f32,
    bias: f32,
}

fn rows_of(conv: &Convolution, core: &mut CoreMemory) -> Result<Vec<Row>, String> {
    let patch = conv.window.kernel.iter().product::<i64>() as usize * conv.channels;
    let bytes = core.wl0_mut(conv.weights, conv.k * conv.wl0_row)?;
    let row = |bytes: &[u8]| {
        let constants = &bytes[bytes.len() - WEIGHT_EXTRA as usize..];
        let word = |at: usize| [0, 1, 2, 3].map(|byte| constants[at + byte]);
        let own = || (f32::from_le_bytes(word(0)), f32::from_le_bytes(word(4)));
        let (scale, bias) = conv.dequantise.unwrap_or_else(own);
        let weights = bytes[..patch].iter().map(|byte| byte.cast_signed()).collect();
        Row { weights, offset: i32::from_le_bytes(word(8)), scale, bias }
    };
    Ok(bytes.chunks_exact(conv.wl0_row).map(row).collect())
}

/// The input rows that one output row needs, with the columns of the input side by side.
struct Input {
    /// `[R, W, C]`, with padding rows filled in.
    values: Vec<i16>,
    row: usize,
}

impl Input {
    fn read(conv: &Convolution, core: &CoreMemory, image: usize, h: usize) -> Result<Self, String> {
        let Window { first, stride, kernel, size } = conv.window;
        let row = size[1] as usize * conv.channels;
        let mut values = vec![conv.padding; row * kernel[0] as usize];
        let top = first[0] + h as i64 * stride[0];
        for (r, target) in (0..kernel[0]).zip(values.chunks_exact_mut(row.max(1))) {
            if !(0..size[0]).contains(&(top + r)) {
                continue;
            }
            let image = conv.input + image as i64 * conv.input_pixels.image();
            let tile = Tile {
                region: conv.region,
                start: image + conv.input_pixels.offset(top + r, 0),
                pixels: conv.input_pixels,
                channel_bytes: conv.channels,
                shape: [1, 1, size[1] as u32],
            };
            let read = core.read_tile(&tile)?;
            target.iter_mut().zip(read).for_each(|(to, from)| *to = conv.sign.value(from));
        }
        Ok(Self { values, row })
    }

    /// The patch `[R, S, C]` of an output column.
    fn gather(&self, conv: &Convolution, column: usize, patch: &mut [i16]) {
        let Window { first, stride, kernel, size } = conv.window;
        let left = first[1] + column as i64 * stride[1];
        let pixels = patch.chunks_exact_mut(conv.channels);
        let places = (0..kernel[0]).flat_map(|r| (0..kernel[1]).map(move |s| (r, left + s)));
        for ((r, w), pixel) in places.zip(pixels) {
            if (0..size[1]).contains(&w) {
                let at = r as usize * self.row + w as usize * conv.channels;
                pixel.copy_from_slice(&self.values[at..at + conv.channels]);
            } else {
                pixel.fill(conv.padding);
            }
        }
    }
}

/// Dot products of a row of weights with each patch.
fn dots(weights: &[i8], patches: &[i16], patch: usize) -> [i32; BLOCK] {
    let mut sums = [0; BLOCK];
    for (sum, patch) in sums.iter_mut().zip(patches.chunks_exact(patch)) {
        *sum = weights
            .iter()
            .zip(patch)
            .map(|(w, x)| i32::from(i16::from(*w) * *x))
            .fold(0, i32::wrapping_add);
    }
    sums
}

/// Stores a result as channel `k` of a pixel.
fn put(conv: &Convolution, k: usize, value: f32, pixel: &mut [u8]) {
    let value = if conv.relu { value.max(0.0) } else { value };
    let (scale, zero) = conv.quantise;
    match conv.format {
        DataFmt::Int8 => pixel[k] = quantised(value * scale, zero, conv.output_sign),
        DataFmt::Fp16 => {
            pixel[2 * k..2 * k + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
        }
    }
}
