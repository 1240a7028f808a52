//! Windows, sampling and resizing: old versions, odd sizes and invalid attributes.

use crate::case::Case;

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|value| value as f32).collect()
}

#[test]
fn pads_may_follow_from_the_size() {
    let conv = |mode: &str, stride: i64| {
        let case = Case::new("Conv", 11).input(&[1, 1, 4], &[1.0f32, 2.0, 3.0, 4.0]);
        let case = case.constant(&[1, 1, 2], &[1.0f32, 10.0]);
        case.string("auto_pad", mode).ints("strides", &[stride]).values()
    };
    assert_eq!(conv("SAME_UPPER", 1), [21.0, 32.0, 43.0, 4.0]);
    assert_eq!(conv("SAME_LOWER", 1), [10.0, 21.0, 32.0, 43.0]);
    assert_eq!(conv("VALID", 3), [21.0]);
    assert_eq!(conv("SAME_UPPER", 3), [21.0, 4.0]);
    let wrong = Case::new("Conv", 11).input(&[1, 1, 4], &ramp(4)).constant(&[1, 1, 2], &ramp(2));
    assert_eq!(
        wrong.string("auto_pad", "SAME").error(),
        "expected `auto_pad` NOTSET, VALID, SAME_UPPER or SAME_LOWER, found SAME"
    );
}

#[test]
fn filters_say_how_many_channels_there_are() {
    let case = Case::new("Conv", 22).input(&[1, 2, 2], &ramp(4)).constant(&[1, 1, 1], &[1.0f32]);
    assert_eq!(case.error(), "expected as many channels as the filters have: found 2 and 1");
    let case = Case::new("Conv", 22).input(&[1, 2, 2], &ramp(4)).constant(&[1, 2, 1], &ramp(2));
    assert_eq!(
        case.int("group", 2).error(),
        "expected as many channels as the filters have: found 2 and 4"
    );
}

#[test]
fn transposed_convolution_spreads() {
    let of = || {
        let case = Case::new("ConvTranspose", 11).input(&[1, 1, 3], &[1.0f32, 2.0, 3.0]);
        case.constant(&[1, 1, 3], &[1.0f32, 1.0, 10.0]).ints("strides", &[2])
    };
    assert_eq!(of().values(), [1.0, 1.0, 12.0, 2.0, 23.0, 3.0, 30.0]);
    assert_eq!(of().ints("pads", &[1, 1]).values(), [1.0, 12.0, 2.0, 23.0, 3.0]);
    assert_eq!(of().ints("output_shape", &[6]).values(), [1.0, 12.0, 2.0, 23.0, 3.0, 30.0]);
    let even = of().ints("output_shape", &[6]).string("auto_pad", "SAME_UPPER");
    assert_eq!(even.values(), [1.0, 1.0, 12.0, 2.0, 23.0, 3.0]);
    let longer = of().ints("output_padding", &[1]);
    assert_eq!(longer.values(), [1.0, 1.0, 12.0, 2.0, 23.0, 3.0, 30.0, 0.0]);
}

#[test]
fn places_of_maxima_count_through_all_channels() {
    let x = [1.0f32, 5.0, 5.0, 2.0, 7.0, 0.0, 7.0, 3.0];
    let of = |order: i64| {
        let case = Case::new("MaxPool", 12).input(&[1, 2, 2, 2], &x).outputs(2);
        let case = case.ints("kernel_shape", &[2, 2]).int("storage_order", order);
        case.run().expect("a window")[1].to_f64()
    };
    // The first of equal ones, row by row.
    assert_eq!(of(0), [1.0, 4.0]);
    assert_eq!(of(1), [2.0, 4.0]);
}

#[test]
fn parts_of_windows_do_not_begin_in_the_pads() {
    let of = |ceil: i64| {
        let case = Case::new("MaxPool", 12).input(&[1, 1, 4], &[1.0f32, 2.0, 3.0, 4.0]);
        let case = case.ints("kernel_shape", &[1]).ints("strides", &[2]).ints("pads", &[0, 1]);
        case.int("ceil_mode", ceil).values()
    };
    assert_eq!(of(1), [1.0, 3.0]);
    assert_eq!(of(0), [1.0, 3.0, f64::NEG_INFINITY]);
}

#[test]
fn pads_count_when_they_are_said_to() {
    let of = |opset: i64, count: i64| {
        let case = Case::new("AveragePool", opset).input(&[1, 1, 3], &[3.0f32, 6.0, 9.0]);
        let case = case.ints("kernel_shape", &[2]).ints("pads", &[1, 1]);
        case.int("count_include_pad", count).values()
    };
    assert_eq!(of(7, 1), [1.5, 4.5, 7.5, 4.5]);
    assert_eq!(of(7, 0), [3.0, 4.5, 7.5, 9.0]);
    // The first version has no such attribute.
    assert_eq!(of(1, 1), of(7, 0));
}

#[test]
fn the_first_power_of_pools_is_a_float() {
    let case = Case::new("LpPool", 1).input(&[1, 1, 2], &[3.0f32, -4.0]).ints("kernel_shape", &[2]);
    assert_eq!(case.float("p", 2.0).values(), [5.0]);
    let case = Case::new("GlobalLpPool", 2).input(&[1, 1, 2], &[3.0f32, -4.0]).int("p", 1);
    assert_eq!(case.values(), [7.0]);
}

#[test]
fn scales_came_in_many_ways() {
    let x = [1.0f32, 2.0];
    let twice = [1.0, 1.0, 2.0, 2.0];
    let first = Case::new("Upsample", 1).input(&[1, 1, 1, 2], &x);
    assert_eq!(first.float("height_scale", 1.0).float("width_scale", 2.0).values(), twice);
    let second = Case::new("Upsample", 9).input(&[1, 2], &x).input(&[2], &[1.0f32, 2.0]);
    assert_eq!(second.values(), twice);
    let third = Case::new("Resize", 10).input(&[1, 2], &x).input(&[2], &[1.0f32, 2.0]);
    assert_eq!(third.values(), twice);
    let sized = Case::new("Resize", 13).input(&[1, 2], &x).nothing().nothing();
    assert_eq!(sized.input(&[2], &[1i64, 4]).values(), twice);
    let both = Case::new("Resize", 13).input(&[1, 2], &x).nothing();
    let both = both.input(&[2], &[1.0f32, 2.0]).input(&[2], &[1i64, 4]);
    assert_eq!(both.error(), "expected either scales or sizes");
}

#[test]
fn the_first_resize_rounds_up_where_it_makes_smaller() {
    let case = Case::new("Resize", 10).input(&[5], &ramp(5)).input(&[1], &[0.6f32]);
    assert_eq!(case.values(), [0.0, 2.0, 4.0]);
}

#[test]
fn interpolation_is_known_only_when_it_runs() {
    let of = |mode: &str| {
        let case = Case::new("Resize", 19).input(&[4], &[0.0f32, 4.0, 8.0, 12.0]).nothing();
        case.input(&[1], &[0.5f32]).string("mode", mode)
    };
    assert_eq!(of("linear").values(), [2.0, 10.0]);
    assert_eq!(of("linear").int("antialias", 1).values(), [2.5, 9.5]);
    let inside = of("linear").int("antialias", 1).int("exclude_outside", 1).run();
    assert_eq!(inside.expect("a factor")[0].to_f32(), [20.0 / 7.0, 64.0 / 7.0]);
    assert_eq!(of("cubic").values(), [1.625, 10.375]);
    assert_eq!(of("other").error(), "expected `mode` nearest, linear or cubic, found other");
}

#[test]
fn blocks_move_between_space_and_channels() {
    let x = ramp(8);
    let back = |mode: &str| {
        let there = Case::new("SpaceToDepth", 28).input(&[1, 2, 2, 2], &x);
        let there = there.int("blocksize", 2).string("mode", mode).values();
        let there: Vec<f32> = there.into_iter().map(|value| value as f32).collect();
        let back = Case::new("DepthToSpace", 13).input(&[1, 8, 1, 1], &there);
        back.int("blocksize", 2).string("mode", mode).run().expect("blocks")[0].to_f32()
    };
    assert_eq!(back("DCR"), x);
    assert_eq!(back("CRD"), x);
    let odd = Case::new("SpaceToDepth", 13).input(&[1, 1, 3, 2], &ramp(6)).int("blocksize", 2);
    assert_eq!(odd.error(), "expected rows and columns in blocks: found 2 and 3");
}

#[test]
fn points_outside_follow_the_padding() {
    let of = |padding: &str| {
        let case = Case::new("GridSample", 20).input(&[1, 1, 1, 2], &[1.0f32, 2.0]);
        let case = case.input(&[1, 1, 1, 2], &[3.0f32, 0.0]).string("mode", "nearest");
        case.string("padding_mode", padding).values()
    };
    assert_eq!((of("zeros"), of("border"), of("reflection")), (vec![0.0], vec![2.0], vec![1.0]));
}

#[test]
fn regions_may_need_any_number_of_points() {
    let case = Case::new("RoiAlign", 16).input(&[1, 1, 4, 4], &ramp(16));
    let case = case.input(&[2, 4], &[0.0f32, 0.0, 4.0, 4.0, 1.0, 1.0, 2.0, 2.0]);
    assert_eq!(case.input(&[2], &[0i64, 0]).values(), [7.5, 5.0]);
}

#[test]
fn regions_without_elements_are_zero() {
    let case = Case::new("MaxRoiPool", 1).input(&[1, 1, 2, 2], &ramp(4));
    let case = case.input(&[2, 5], &[0.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 5.0, 5.0, 6.0, 6.0]);
    assert_eq!(case.ints("pooled_shape", &[1, 1]).values(), [3.0, 0.0]);
}

#[test]
fn groups_are_at_least_one() {
    let case = Case::new("Conv", 22).input(&[1, 2, 2], &ramp(4)).constant(&[2, 1, 1], &ramp(2));
    assert_eq!(case.int("group", 0).error(), "expected group of at least 1, found 0");
    let case = Case::new("Conv", 22).input(&[1, 2, 2], &ramp(4)).input(&[2, 1, 1], &[1.0f32, 10.0]);
    assert_eq!(case.int("group", 2).values(), [0.0, 1.0, 20.0, 30.0]);
}
