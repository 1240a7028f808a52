//! Infers windows of layers from the elements that their workloads read and write.

/// The windows along the rows or the columns of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Elements of a window.
    pub kernel: i64,
    /// Stride from one window to the next.
    pub stride: i64,
    /// Elements of padding before the input.
    pub pad: i64,
}

impl Windows {
    /// Windows of one element each.
    pub const NONE: Self = Self { kernel: 1, stride: 1, pad: 0 };
}

/// First and last element along an axis that a workload computes, and that it reads.
pub type Span = ((i64, i64), (i64, i64));

/// Maximum stride and window that are tried; larger windows must be as wide as the input, without padding.
const MAX_STRIDE: i64 = 8;
const MAX_KERNEL: i64 = 16;

/// Maximum side of a window that is inferred from the volume of weights.
const MAX_SIDE: i64 = 1024;

/// The smallest windows along an axis that are consistent with what each workload reads.
///
/// A workload that computes `o0..=o1` reads from `stride o0 - pad` to `stride o1 - pad + kernel - 1`,
/// without padding.
pub fn windows(spans: &[Span]) -> Option<Windows> {
    let last = spans.iter().map(|(_, read)| read.1).max()?;
    let kernels = (1..=MAX_KERNEL.min(last + 1)).chain([last + 1]);
    kernels
        .flat_map(|kernel| {
            (1..=MAX_STRIDE).flat_map(move |stride| {
                (0..if kernel > MAX_KERNEL { 1 } else { kernel }).map(move |pad| Windows {
                    kernel,
                    stride,
                    pad,
                })
            })
        })
        .find(|windows| explains(windows, spans))
}

/// Whether windows along an axis are consistent with what each workload reads.
pub fn explains(windows: &Windows, spans: &[Span]) -> bool {
    let Windows { kernel, stride, pad } = *windows;
    let last = spans.iter().map(|(_, read)| read.1).max().unwrap_or(0);
    spans.iter().all(|(made, read)| {
        // Windows in padding only read the last element.
        let first = (made.0 * stride - pad).max(0).min(last);
        let end = (made.1 * stride - pad + kernel - 1).min(last);
        (first, end) == *read
    })
}

/// Windows along both axes whose product is the given number of elements, if one is given.
pub fn kernel(spans: &[Vec<Span>; 2], elements: Option<i64>) -> Option<[Windows; 2]> {
    let (h, w) = (windows(&spans[0])?, windows(&spans[1])?);
    let Some(elements) = elements else { return Some([h, w]) };
    if h.kernel * w.kernel == elements {
        return Some([h, w]);
    }
    // Accesses at the edge of rows or columns do not determine how far windows extend.
    let side = (1..=MAX_SIDE).find(|side| side * side == elements);
    let length = |axis: usize| spans[axis].iter().map(|(_, read)| read.1 + 1).max();
    let (rows, columns) = (length(0)?, length(1)?);
    let is_within = |(a, b): &(i64, i64)| *a <= rows && *b <= columns;
    let candidates = [
        side.map(|side| (side, side)),
        Some((elements / w.kernel, w.kernel)).filter(is_within),
        Some((h.kernel, elements / h.kernel)).filter(is_within),
    ];
    let (kernel_h, kernel_w) = candidates
        .into_iter()
        .flatten()
        .find(|(a, b)| a * b == elements && *a >= h.kernel && *b >= w.kernel)?;
    let found = [stretched(h, kernel_h), stretched(w, kernel_w)];
    let is_valid = [0, 1].iter().all(|axis| explains(&found[*axis], &spans[*axis]));
    is_valid.then_some(found)
}

/// A longer window that extends as far as possible into the padding on either side.
fn stretched(windows: Windows, kernel: i64) -> Windows {
    Windows { kernel, pad: windows.pad + (kernel - windows.kernel) / 2, ..windows }
}
