//! Archives written by numpy are read.

use irc_tensor::{DType, Tensor, read_npz_file};
use std::path::Path;

#[test]
fn every_form_numpy_saves_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/numpy.npz");
    let arrays = read_npz_file(&path).expect("numpy's own file");
    let grid = Tensor::from_values([2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("a tensor");
    assert_eq!(arrays["c_order"], grid);
    assert_eq!(arrays["fortran_order"], grid);
    assert_eq!(arrays["half"].to_f64(), [0.0999755859375, 65504.0]);
    assert_eq!((arrays["scalar"].shape(), arrays["scalar"].get_f64(0)), (&[][..], -5.0));
    assert_eq!((arrays["flags"].dtype(), arrays["flags"].bytes()), (DType::Bool, &[1, 0][..]));
    assert_eq!((arrays["empty"].shape(), arrays["empty"].elements()), (&[0, 3][..], 0));
    assert_eq!(arrays.len(), 6);
}

#[test]
fn a_missing_file_is_named() {
    let error = read_npz_file(Path::new("no/such.npz")).expect_err("no such file").to_string();
    assert!(error.starts_with("cannot open no/such.npz: "), "{error}");
}
