//! Filters transformed for Winograd's minimal filtering F(4x4, 3x3): one tile of 4 by 4 elements of the result
//! takes 36 products instead of 144; and F(2x2, 3x3), 16 instead of 36 (Lavin and Gray, "Fast Algorithms for
//! Convolutional Neural Networks").

use half::{bf16, f16};
use irc_tensor::DType;

/// Rows and columns of the result that a tile may have: first the larger.
pub const TILES: [i64; 2] = [4, 2];

/// The number of rows or columns of the operand that whole tiles read, for this many of the result.
pub fn whole_tiles(size: i64, tile: i64) -> i64 {
    (size + tile - 1) / tile * tile + 2
}

/// The transform of a filter of 3 elements, along one axis, for tiles of 2.
const FILTER_2: [[f64; 3]; 4] =
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];

/// The transform of a filter of 3 elements, along one axis, for tiles of 4.
const FILTER_4: [[f64; 3]; 6] = [
    [1.0 / 4.0, 0.0, 0.0],
    [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
    [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
    [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
    [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
    [0.0, 0.0, 1.0],
];

/// Filters `[filters, channels, 3, 3]` of a float type, transformed to `f32`, in panels of filters.
///
/// The panels hold the elements, each as rows of the panel's filters, one row per channel. The last panel is
/// padded with zeros. The same filters may follow, transformed for smaller tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Winograd {
    /// The number of the argument.
    pub argument: usize,
    /// The number of filters.
    pub filters: i64,
    /// The number of channels.
    pub channels: i64,
    /// The number of filters of a panel.
    pub panel: i64,
    /// Rows and columns of the result of a tile: 4 or 2.
    pub tile: i64,
    /// The number of filters of a panel of those for tiles of 2, if they follow.
    pub small_panel: Option<i64>,
}

impl Winograd {
    /// The number of panels.
    pub fn panels(&self) -> i64 {
        (self.filters + self.panel - 1) / self.panel
    }

    /// The number of elements of a transformed filter.
    pub fn points(&self) -> i64 {
        (self.tile + 2) * (self.tile + 2)
    }

    /// The number of elements of the transformed filters.
    pub fn transformed(&self) -> i64 {
        self.panels() * self.points() * self.channels * self.panel
    }

    /// The number of all elements.
    pub fn elements(&self) -> i64 {
        self.transformed() + self.small().map_or(0, |small| small.elements())
    }

    /// The packing of the filters that follow, if they do.
    pub fn small(&self) -> Option<Self> {
        let panel = self.small_panel?;
        Some(Self { panel, tile: TILES[1], small_panel: None, ..*self })
    }

    /// The transformed filters, rounded once from `f64`, and those that follow. `None` if the constant is too small, or its
    /// elements are not of `f32`, `f16` or `bf16`.
    pub fn pack(&self, bytes: &[u8], dtype: DType) -> Option<Vec<u8>> {
        let mut packed = match dtype {
            DType::F32 => self.pack_of(bytes, f32::from_le_bytes),
            DType::F16 => self.pack_of(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
            DType::BF16 => self.pack_of(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            _ => None,
        }?;
        if let Some(small) = self.small() {
            packed.extend(small.pack(bytes, dtype)?);
        }
        Some(packed)
    }

    fn pack_of<const N: usize>(&self, bytes: &[u8], of: fn([u8; N]) -> f32) -> Option<Vec<u8>> {
        match self.tile {
            2 => self.pack_with(&FILTER_2, bytes, of),
            4 => self.pack_with(&FILTER_4, bytes, of),
            _ => None,
        }
    }

    fn pack_with<const P: usize, const N: usize>(
        &self,
        along: &[[f64; 3]; P],
        bytes: &[u8],
        of: fn([u8; N]) -> f32,
    ) -> Option<Vec<u8>> {
        let filters = usize::try_from(self.filters).ok()?;
        let (channels, panel) = (self.channels as usize, self.panel as usize);
        let mut packed = vec![0; usize::try_from(self.transformed()).ok()?.checked_mul(4)?];
        let tap = |element| f64::from(of(element));
        let (rows, _) = bytes.as_chunks::<N>().0.as_chunks::<3>();
        for number in 0..filters * channels {
            let (filter, channel) = (number / channels, number % channels);
            let taps = &rows.get(3 * number..3 * number + 3)?;
            let points = transform(along, [0, 1, 2].map(|row| taps[row].map(tap)));
            for (point, value) in points.as_flattened().iter().enumerate() {
                let first = (filter / panel * P * P + point) * channels + channel;
                let to = 4 * (first * panel + filter % panel);
                packed.get_mut(to..to + 4)?.copy_from_slice(&value.to_le_bytes());
            }
        }
        Some(packed)
    }
}

/// The transform of one filter of 3 by 3 along both axes.
fn transform<const P: usize>(along: &[[f64; 3]; P], filter: [[f64; 3]; 3]) -> [[f32; P]; P] {
    let dot = |taps: &[f64; 3], [a, b, c]: [f64; 3]| taps[0] * a + taps[1] * b + taps[2] * c;
    let columns = along.map(|taps| filter.map(|row| dot(&taps, row)));
    along.map(|down| columns.map(|column| dot(&down, column) as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The transforms of tiles and of sums of products, along one axis, for tiles of 2 and of 4.
    const TILE_2: [[f64; 4]; 4] =
        [[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]];
    const RESULT_2: [[f64; 4]; 2] = [[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, -1.0, -1.0]];
    const TILE_4: [[f64; 6]; 6] = [
        [4.0, 0.0, -5.0, 0.0, 1.0, 0.0],
        [0.0, -4.0, -4.0, 1.0, 1.0, 0.0],
        [0.0, 4.0, -4.0, -1.0, 1.0, 0.0],
        [0.0, -2.0, -1.0, 2.0, 1.0, 0.0],
        [0.0, 2.0, -1.0, -2.0, 1.0, 0.0],
        [0.0, 4.0, 0.0, -5.0, 0.0, 1.0],
    ];
    const RESULT_4: [[f64; 6]; 4] = [
        [1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
        [0.0, 1.0, -1.0, 2.0, -2.0, 0.0],
        [0.0, 1.0, 1.0, 4.0, 4.0, 0.0],
        [0.0, 1.0, -1.0, 8.0, -8.0, 1.0],
    ];

    fn check<const P: usize>(filter: &[[f64; 3]; P], tile: &[[f64; P]; P], result: &[[f64; P]]) {
        for (tap, place) in (0..3).flat_map(|tap| (0..P).map(move |place| (tap, place))) {
            let points: Vec<f64> =
                (0..P).map(|point| filter[point][tap] * tile[point][place]).collect();
            for (at, row) in result.iter().enumerate() {
                let found: f64 = row.iter().zip(&points).map(|(a, b)| a * b).sum();
                let expected = f64::from(u8::from(place == at + tap));
                assert!((found - expected).abs() < 1e-12, "{tap} {place} {at}: {found}");
            }
        }
    }

    #[test]
    fn products_of_transforms_are_a_convolution() {
        check(&FILTER_2, &TILE_2, &RESULT_2);
        check(&FILTER_4, &TILE_4, &RESULT_4);
    }

    #[test]
    fn filters_are_in_panels() {
        // Three filters of two channels, of one element each, in the middle: 1 to 6.
        let filters: Vec<f32> =
            (0..54).map(|at| if at % 9 == 4 { (at / 9 + 1) as f32 } else { 0.0 }).collect();
        let bytes: Vec<u8> = filters.iter().flat_map(|value| value.to_le_bytes()).collect();
        let winograd =
            Winograd { argument: 0, filters: 3, channels: 2, panel: 2, tile: 4, small_panel: None };
        assert_eq!(winograd.elements(), 2 * 36 * 2 * 2);
        let packed = winograd.pack(&bytes, DType::F32).expect("floats");
        let packed: Vec<f32> = packed
            .chunks_exact(4)
            .map(|chunk| f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]))
            .collect();
        // Point (3, 3) of a filter with one element in the middle is that element, divided by 144.
        let at = |panel: usize| &packed[(panel * 36 + 21) * 4..][..4];
        let scaled = |values: [f32; 4]| values.map(|value| (f64::from(value) / 144.0) as f32);
        assert_eq!(at(0), scaled([1.0, 3.0, 2.0, 4.0]));
        assert_eq!(at(1), scaled([5.0, 0.0, 6.0, 0.0]));
        let small = Winograd { tile: 2, ..winograd };
        assert_eq!(small.elements(), 2 * 16 * 2 * 2);
        // Point (1, 2) is that element, divided by -4.
        let packed = small.pack(&bytes, DType::F32).expect("floats");
        assert_eq!(packed[4 * 6 * 4..][..4], (-0.25f32).to_le_bytes());
        let both = Winograd { small_panel: Some(2), ..winograd };
        assert_eq!(both.elements(), winograd.elements() + small.elements());
        let large = winograd.pack(&bytes, DType::F32).expect("floats");
        assert_eq!(both.pack(&bytes, DType::F32), Some([large, packed].concat()));
        let halves: Vec<u8> =
            filters.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect();
        assert_eq!(winograd.pack(&halves, DType::F16), winograd.pack(&bytes, DType::F32));
        assert_eq!(winograd.pack(&bytes, DType::F64), None);
        assert_eq!(winograd.pack(&bytes[1..], DType::F32), None);
    }
}
