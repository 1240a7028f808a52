//! Products of matrices: ranks, old versions, small integers, sums over labels.

use crate::case::Case;
use irc_tl::DType;

#[test]
fn vectors_are_rows_or_columns() {
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let row = Case::new("MatMul", 13).input(&[2], &[1.0f32, 10.0]).input(&[2, 3], &x);
    let result = &row.run().expect("a row")[0];
    assert_eq!((result.shape(), result.to_f64()), (&[3][..], vec![41.0, 52.0, 63.0]));
    let column = Case::new("MatMul", 13).input(&[2, 3], &x).input(&[3], &[1.0f32, 10.0, 100.0]);
    assert_eq!(column.values(), [321.0, 654.0]);
    let both = Case::new("MatMul", 13).input(&[2], &[1i64, 2]).input(&[2], &[3i64, 4]);
    let result = &both.run().expect("vectors")[0];
    assert_eq!((result.shape(), result.to_f64()), (&[][..], vec![11.0]));
    let scalar = Case::new("MatMul", 13).input(&[], &[1.0f32]).input(&[2, 3], &x);
    assert_eq!(scalar.error(), "expected operands of rank 1 or more, found a scalar");
}

#[test]
fn what_is_added_is_required_at_first() {
    let of = |opset: i64| {
        let case = Case::new("Gemm", opset).input(&[2, 1], &[1.0f32, 2.0]);
        case.input(&[2, 1], &[3.0f32, 4.0]).int("transA", 1)
    };
    assert_eq!(of(11).values(), [11.0]);
    assert_eq!(of(9).error(), "input 2 is missing");
    let scaled = of(6).input(&[1], &[100.0f32]).float("alpha", 2.0).float("beta", 0.5);
    assert_eq!(scaled.int("broadcast", 1).values(), [72.0]);
    let wide = of(13).input(&[2, 1], &[1.0f32, 2.0]);
    assert!(wide.error().starts_with("expected C to broadcast to the product"), "{}", wide.error());
}

#[test]
fn zero_points_are_per_row_and_column() {
    let case = Case::new("MatMulInteger", 10).input(&[2, 1], &[10u8, 20]).input(&[1, 2], &[1i8, 2]);
    assert_eq!(case.values(), [10.0, 20.0, 20.0, 40.0]);
    let case = Case::new("MatMulInteger", 10).input(&[2, 1], &[10u8, 20]).input(&[1, 2], &[1i8, 2]);
    let case = case.input(&[2], &[1u8, 2]).input(&[2], &[-1i8, 1]);
    let result = &case.run().expect("small integers")[0];
    assert_eq!((result.dtype(), result.to_f64()), (DType::I32, vec![18.0, 9.0, 36.0, 18.0]));
}

#[test]
fn quantised_products_saturate() {
    let of = |scale: f32| {
        let case = Case::new("QLinearMatMul", 10).input(&[1, 2], &[200u8, 100]);
        let case = case.input(&[], &[0.5f32]).input(&[], &[100u8]);
        let case = case.input(&[2, 1], &[3i8, 4]).input(&[], &[1.0f32]).input(&[], &[0i8]);
        case.input(&[], &[scale]).input(&[], &[-1i8]).values()
    };
    assert_eq!(of(2.0), [74.0]);
    assert_eq!(of(0.1), [127.0]);
}

#[test]
fn labels_say_what_is_summed() {
    let x: Vec<f32> = (1..=6).map(|value| value as f32).collect();
    let of = |equation: &str| Case::new("Einsum", 12).string("equation", equation);
    assert_eq!(of("ij->ji").input(&[2, 3], &x).values(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(of("ij->j").input(&[2, 3], &x).values(), [5.0, 7.0, 9.0]);
    assert_eq!(of("ii").input(&[2, 2], &x[..4]).values(), [5.0]);
    assert_eq!(of("ii->i").input(&[2, 2], &x[..4]).values(), [1.0, 4.0]);
    let broadcast = of("...i,...i->...").input(&[2, 3], &x).input(&[1, 3], &x[..3]);
    assert_eq!(broadcast.values(), [14.0, 32.0]);
    let three = of("a,b,c->cb").input(&[1], &[2.0f32]).input(&[2], &x[..2]).input(&[2], &x[..2]);
    assert_eq!(three.values(), [2.0, 4.0, 4.0, 8.0]);
    let error = of("ij,jk").input(&[2, 3], &x).input(&[2, 3], &x).error();
    assert_eq!(error, "expected dimensions of one label to have one extent: found 2 and 3");
    assert_eq!(
        of("ij->k").input(&[2, 3], &x).error(),
        "expected Letter('k') of the result of 'ij->k' in an operand"
    );
}

#[test]
fn determinants_swap_rows() {
    let x = [0.0f32, 1.0, 2.0, 3.0, 0.0, 1.0, 1.0, 1.0, 0.0];
    assert_eq!(Case::new("Det", 22).input(&[3, 3], &x).values(), [7.0]);
    let singular = [1.0f32, 2.0, 2.0, 4.0, 2.0, 0.0, 0.0, 3.0];
    assert_eq!(Case::new("Det", 11).input(&[2, 2, 2], &singular).values(), [0.0, 6.0]);
    let unknown = [f32::NAN, -2.75, -0.0, 0.25];
    assert!(Case::new("Det", 22).input(&[2, 2], &unknown).values()[0].is_nan());
}

#[test]
fn sums_of_quantised_numbers_scale() {
    let case = Case::new("QLinearAdd", 1).domain("com.microsoft").input(&[2], &[10u8, 20]);
    let case = case.input(&[], &[0.5f32]).input(&[], &[10u8]).input(&[1], &[4u8]);
    let case = case.input(&[], &[1.0f32]).input(&[], &[0u8]).input(&[], &[0.25f32]);
    assert_eq!(case.input(&[], &[3u8]).values(), [19.0, 39.0]);
}

#[test]
fn bytes_of_any_depth_are_multiplied() {
    for depth in [1, 3, 4, 6, 9] {
        let x: Vec<u8> = (0..2 * depth).map(|index| (index * 37 % 251) as u8).collect();
        let w: Vec<i8> = (0..3 * depth).map(|index| (index * 29 % 255 - 127) as i8).collect();
        let case = Case::new("MatMulInteger", 10).input(&[2, depth], &x);
        let case = case.constant(&[depth, 3], &w).input(&[], &[7u8]);
        let sum = |row: i64, column: i64| -> i32 {
            let term = |k: i64| {
                (i32::from(x[(row * depth + k) as usize]) - 7)
                    * i32::from(w[(k * 3 + column) as usize])
            };
            (0..depth).map(term).sum()
        };
        let expected: Vec<f64> = (0..6).map(|index| f64::from(sum(index / 3, index % 3))).collect();
        case.close(&[&expected]);
    }
}
