//! Layouts of tensors and weights in the memories.

use crate::area::Area;
use crate::enums::DataFmt;

/// Bytes of scale and bias next to the weights of an output channel.
pub const WEIGHT_EXTRA: i64 = 32;

/// Bytes of a unit of WL0.
pub const WL0_UNIT: i64 = 64;

/// Units of WL0 that programs of this project use: the maximum of published ones.
pub const WL0_UNITS: i64 = 18816;

/// Bytes of the weights of an output channel in DRAM and L2: `[C, R, S]` with padded channels.
pub fn weight_row(format: DataFmt, [c, r, s]: [u32; 3]) -> i64 {
    format.pixel(c) as i64 * i64::from(r) * i64::from(s) + WEIGHT_EXTRA
}

/// The same in WL0, where the weights before scale and bias are padded to 32 bytes.
pub fn wl0_row(format: DataFmt, size: [u32; 3]) -> i64 {
    round_up(weight_row(format, size) - WEIGHT_EXTRA, 32) + WEIGHT_EXTRA
}

/// Units of WL0 that the weights of `k` output channels take: they are padded to 64 channels.
pub fn wl0_units(format: DataFmt, k: u32, size: [u32; 3]) -> i64 {
    round_up(i64::from(k), 64) * wl0_row(format, size) / WL0_UNIT
}

fn round_up(value: i64, step: i64) -> i64 {
    (value + step - 1) / step * step
}

/// A tensor of pixels `[N, H, W]`, each with its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Stride between pixels in bytes.
    pub pitch: i64,
    /// Rows of the whole tensor.
    pub height: u32,
    /// Columns of the whole tensor.
    pub width: u32,
}

impl Pixels {
    /// In L2: channels padded to eight bytes.
    pub fn padded(format: DataFmt, [c, h, w]: [u32; 3]) -> Self {
        Self { pitch: format.pixel(c) as i64, height: h, width: w }
    }

    /// In DRAM if packed: channels without padding.
    pub fn dense(format: DataFmt, [c, h, w]: [u32; 3]) -> Self {
        Self { pitch: i64::from(c) * format.bytes() as i64, height: h, width: w }
    }

    /// Stride between images of the batch in bytes.
    pub fn image(&self) -> i64 {
        self.pitch * i64::from(self.height) * i64::from(self.width)
    }

    /// Byte offset of pixel (h, w), which may be outside.
    pub fn offset(&self, h: i64, w: i64) -> i64 {
        (h * i64::from(self.width) + w) * self.pitch
    }

    /// `[N, H, W]` pixels starting at `start`, `run` bytes of each.
    pub fn area(&self, start: i64, run: i64, [n, h, w]: [u32; 3]) -> Area {
        let row = self.pitch * i64::from(self.width);
        let dims = [(self.pitch, w), (row, h), (self.image(), n)];
        Area::new(start, run, dims.map(|(stride, count)| (stride, i64::from(count))))
    }
}

/// Rows or columns of the input that windows need: `[from, to)`, clipped to the input.
///
/// `first` is the start of the first window, negative in padding.
pub fn window(first: i32, outputs: u32, stride: u32, kernel: u32, size: u32) -> (u32, u32) {
    let last = i64::from(first) + (i64::from(outputs) - 1) * i64::from(stride) + i64::from(kernel);
    let clip = |at: i64| at.clamp(0, i64::from(size)) as u32;
    let (from, to) = (clip(first.into()), clip(last));
    if outputs == 0 { (0, 0) } else { (from, to.max(from)) }
}
