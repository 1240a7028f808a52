//! Fourier transforms: halves, inverses and lengths.

use crate::case::Case;

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

#[test]
fn a_signal_is_cut_off_or_filled_up() {
    let of = |length: i64| {
        let case = Case::new("DFT", 20).input(&[1, 3, 1], &[1.0f32, 2.0, 4.0]);
        case.input(&[], &[length]).values()
    };
    close(&of(2), &[3.0, 0.0, -1.0, 0.0]);
    close(&of(4), &[7.0, 0.0, -3.0, -2.0, 3.0, 0.0, -3.0, 2.0]);
}

#[test]
fn half_a_spectrum_gives_back_the_signal() {
    let x = [1.0f32, 2.0, 4.0, 8.0, 16.0];
    let there = Case::new("DFT", 17).input(&[1, 5, 1], &x).int("onesided", 1);
    let half = &there.run().expect("a signal")[0];
    assert_eq!(half.shape(), [1, 3, 2]);
    let back = Case::new("DFT", 20).input(&[1, 3, 2], &half.to_f32()).input(&[], &[5i64]);
    close(&back.int("onesided", 1).int("inverse", 1).values(), &[1.0, 2.0, 4.0, 8.0, 16.0]);
}

#[test]
fn frames_step_through_a_signal() {
    let case = Case::new("STFT", 17).input(&[1, 4, 1], &[1.0f32, 2.0, 3.0, 5.0]);
    let case = case.input(&[], &[2i64]).input(&[2], &[1.0f32, 2.0]);
    close(&case.values(), &[5.0, 0.0, -3.0, 0.0, 13.0, 0.0, -7.0, 0.0]);
    let case = Case::new("STFT", 17).input(&[1, 4, 1], &[1.0f32; 4]).input(&[], &[2i64]);
    assert_eq!(case.error(), "expected a window or frame_length");
}

#[test]
fn windows_take_their_size_when_they_run() {
    let of = |periodic: i64| {
        Case::new("HannWindow", 17).input(&[], &[4i64]).int("periodic", periodic).values()
    };
    close(&of(1), &[0.0, 0.5, 1.0, 0.5]);
    close(&of(0), &[0.0, 0.75, 0.75, 0.0]);
}
