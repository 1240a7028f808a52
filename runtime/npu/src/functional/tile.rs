//! Parts of tensors in L2.

use irc_npu::layout::Pixels;
use irc_npu::registers::Region;

/// A part of a tensor in L2: `[N, H, W]` pixels of `channel_bytes` each.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    pub region: Region,
    pub start: i64,
    pub pixels: Pixels,
    pub channel_bytes: usize,
    pub shape: [u32; 3],
}

impl Tile {
    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.shape.iter().map(|size| *size as usize).product::<usize>() * self.channel_bytes
    }

    /// Whether the pixels of a row are contiguous.
    fn dense(&self) -> bool {
        self.channel_bytes as i64 == self.pixels.pitch
    }

    /// Number of bytes of a contiguous run.
    pub fn run(&self) -> usize {
        if self.dense() { self.channel_bytes * self.shape[2] as usize } else { self.channel_bytes }
    }

    /// Addresses of the runs.
    pub fn runs(&self) -> impl Iterator<Item = i64> + use<> {
        let Self { start, pixels, shape: [n, h, w], .. } = *self;
        let columns = if self.dense() { w.min(1) } else { w };
        let rows = (0..i64::from(n)).flat_map(move |n| (0..i64::from(h)).map(move |h| (n, h)));
        rows.flat_map(move |(n, h)| {
            let row = start + n * pixels.image() + pixels.offset(h, 0);
            (0..i64::from(columns)).map(move |w| row + w * pixels.pitch)
        })
    }
}
