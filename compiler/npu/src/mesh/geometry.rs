//! Windows of layers, found from what their workloads read and make.

use irc_gemini_format::schedule::Workload;

use crate::tensors::{corner, lengths};

/// How windows move over the rows or the columns of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Elements of a window.
    pub kernel: i64,
    /// From one window to the next.
    pub stride: i64,
    /// Elements of padding before the input.
    pub pad: i64,
}

/// Steps and windows tried; larger ones only as wide as the whole input, without padding.
const MAX_STRIDE: i64 = 8;
const MAX_KERNEL: i64 = 16;

/// Longest side of a window that only the volume of weights shows.
const MAX_SIDE: i64 = 1024;

/// The smallest windows along an axis that explain what each of some workloads reads.
///
/// A workload that makes `o0..=o1` reads from `stride o0 - pad` to `stride o1 - pad + kernel - 1`,
/// without padding.
pub fn windows(workloads: &[&Workload], axis: usize) -> Option<Windows> {
    let spans = |workload: &&Workload| {
        let input = workload.ifmaps().first()?.extent().axis(axis);
        Some((workload.extent.axis(axis), input))
    };
    let spans: Vec<((i64, i64), (i64, i64))> = workloads.iter().filter_map(spans).collect();
    let last = spans.iter().map(|(_, input)| input.1).max()?;
    let explains = |windows: &Windows| {
        let Windows { kernel, stride, pad } = *windows;
        spans.iter().all(|(made, read)| {
            let first = (made.0 * stride - pad).max(0);
            let end = (made.1 * stride - pad + kernel - 1).min(last);
            (first, end) == *read
        })
    };
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
        .find(explains)
}

/// Windows along both axes whose product is the given number of elements, when it is given.
pub fn kernel(workloads: &[&Workload], elements: Option<i64>) -> Option<[Windows; 2]> {
    let (mut h, mut w) = (windows(workloads, 2)?, windows(workloads, 3)?);
    let Some(elements) = elements else { return Some([h, w]) };
    if h.kernel * w.kernel == elements {
        return Some([h, w]);
    }
    // Rows or columns that are read at the edge alone do not show how far windows reach.
    let side = (1..=MAX_SIDE).find(|side| side * side == elements);
    let candidates = [
        side.map(|side| (side, side)),
        Some((elements / w.kernel, w.kernel)),
        Some((h.kernel, elements / h.kernel)),
    ];
    let (kernel_h, kernel_w) = candidates
        .into_iter()
        .flatten()
        .find(|(a, b)| a * b == elements && *a >= h.kernel && *b >= w.kernel)?;
    h = stretched(h, kernel_h);
    w = stretched(w, kernel_w);
    Some([h, w])
}

/// A longer window that reaches as far into padding on either side as it can.
fn stretched(windows: Windows, kernel: i64) -> Windows {
    Windows { kernel, pad: windows.pad + (kernel - windows.kernel) / 2, ..windows }
}

/// Lengths of what a workload makes, and its first element.
pub fn made(workload: &Workload) -> ([i64; 4], [i64; 4]) {
    (lengths(&workload.extent), corner(&workload.extent))
}
