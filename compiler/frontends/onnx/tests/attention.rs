//! Attention: masks and heads.

use crate::case::Case;

/// One query of zeros over four keys with the values 1, 10, 100 and 1: the mean of the visible ones.
fn mean(opset: i64) -> Case {
    let case = Case::new("Attention", opset).input(&[1, 1, 1, 2], &[0.0f32; 2]);
    case.input(&[1, 1, 4, 2], &[1.0f32; 8]).input(&[1, 1, 4, 1], &[1.0f32, 10.0, 100.0, 1.0])
}

#[test]
fn masks_hide_or_add() {
    assert_eq!(mean(23).values(), [28.0]);
    let hidden = mean(23).input_of(irc_tl::DType::Bool, &[1, 4], &[1.0, 1.0, 0.0, 0.0]);
    assert_eq!(hidden.values(), [5.5]);
    let low = f32::NEG_INFINITY;
    let added = mean(23).input(&[1, 4], &[0.0f32, low, low, low]);
    assert_eq!(added.values(), [1.0]);
}

#[test]
fn a_query_that_sees_nothing_gives_zero() {
    let none = mean(24).input_of(irc_tl::DType::Bool, &[1, 4], &[0.0; 4]);
    assert_eq!(none.values(), [0.0]);
}

#[test]
fn a_short_mask_hides_the_rest_from_version_24_on() {
    let short = |opset| mean(opset).input(&[1, 2], &[0.0f32, 0.0]);
    assert_eq!(short(24).values(), [5.5]);
    assert!(short(23).error().starts_with("expected a mask that broadcasts"));
}

#[test]
fn windows_move_with_the_query() {
    let of = |before: i64, after: i64| {
        let case = Case::new("Attention", 25).input(&[1, 1, 3, 1], &[0.0f32; 3]);
        let case =
            case.input(&[1, 1, 3, 1], &[1.0f32; 3]).input(&[1, 1, 3, 1], &[1.0f32, 3.0, 5.0]);
        case.int("left_window_size", before).int("right_window_size", after).values()
    };
    assert_eq!(of(-1, -1), [3.0, 3.0, 3.0]);
    assert_eq!(of(1, 0), [1.0, 2.0, 4.0]);
    assert_eq!(of(0, 1), [2.0, 4.0, 5.0]);
}

#[test]
fn heads_share_keys() {
    let case = Case::new("Attention", 23).input(&[1, 1, 2], &[0.0f32; 2]);
    let case = case.input(&[1, 2, 1], &[1.0f32; 2]).input(&[1, 2, 1], &[2.0f32, 4.0]);
    let case = case.int("q_num_heads", 2).int("kv_num_heads", 1);
    assert_eq!(case.values(), [3.0, 3.0]);
    let case = Case::new("Attention", 23).input(&[1, 1, 2], &[0.0f32; 2]);
    let case = case.input(&[1, 2, 1], &[1.0f32; 2]).input(&[1, 2, 1], &[2.0f32, 4.0]);
    assert_eq!(case.error(), "the attribute `q_num_heads` is missing");
}

#[test]
fn rotation_leaves_the_rest() {
    let x = [1.0f32, 2.0, 3.0, 4.0];
    let of = |interleaved: i64, turned: i64| {
        let half = if turned == 0 { 2 } else { turned / 2 };
        let case = Case::new("RotaryEmbedding", 23).input(&[1, 1, 4], &x);
        // A quarter turn.
        let case = case.input(&[1, 1, half], &vec![0.0f32; half as usize]);
        let case = case.input(&[1, 1, half], &vec![1.0f32; half as usize]).int("num_heads", 1);
        case.int("interleaved", interleaved).int("rotary_embedding_dim", turned).values()
    };
    assert_eq!(of(0, 0), [-3.0, -4.0, 1.0, 2.0]);
    assert_eq!(of(1, 0), [-2.0, 1.0, -4.0, 3.0]);
    assert_eq!(of(1, 2), [-2.0, 1.0, 3.0, 4.0]);
}
