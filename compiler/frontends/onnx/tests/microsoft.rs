//! Operators of `com.microsoft`: fused functions, normalisation, images and others.
use crate::case::{Case, microsoft, sequence};
use irc_tl::DType;

#[test]
fn bias_is_added_before_a_gelu() {
    let case =
        microsoft("BiasGelu").input(&[1, 2, 4], &sequence(8, 0)).input(&[4], &sequence(4, 3));
    case.close(&[&[-0.015524, 0.84134, -0.0455, 1.3998, -0.0455, 1.3998, -0.10021, 1.9545]]);
}

#[test]
fn the_fast_gelu_uses_tanh() {
    let case =
        microsoft("FastGelu").input(&[1, 2, 4], &sequence(8, 0)).input(&[4], &sequence(4, 3));
    case.close(&[&[-0.015084, 0.84119, -0.045402, 1.3996, -0.045402, 1.3996, -0.10043, 1.9546]]);
}

#[test]
fn the_quick_gelu_uses_the_logistic_function() {
    let case = microsoft("QuickGelu").input(&[1, 2, 4], &sequence(8, 0)).float("alpha", 1.5);
    case.close(&[&[-0.14302, 0.14817, -0.16621, 0.33959, -0.18243, 0.56619, -0.18381, 0.81757]]);
}

#[test]
fn half_of_the_channels_gate_the_others() {
    let case =
        microsoft("BiasSplitGelu").input(&[1, 2, 4], &sequence(8, 0)).input(&[4], &sequence(4, 3));
    case.close(&[&[0.11375, 1.3998, 0.20042, 2.9317]]);
}

#[test]
fn a_bias_and_a_residual_are_added() {
    let case = microsoft("BiasAdd")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[4], &sequence(4, 3))
        .input(&[1, 2, 4], &sequence(8, 5));
    case.close(&[&[-1.0, 1.0, -3.5, 1.75, -3.25, 2.0, -2.5, 2.75]]);
}

#[test]
fn a_mask_is_added_before_a_softmax() {
    let case = microsoft("BiasSoftmax")
        .input(&[2, 1, 3], &sequence(6, 1))
        .input(&[1, 1, 3], &sequence(3, 2))
        .int("axis", 2)
        .int("is_inner_broadcast", 1);
    case.close(&[&[0.25428, 0.3265, 0.41923, 0.25428, 0.3265, 0.41923]]);
}

#[test]
fn a_residual_is_added_before_normalisation() {
    let case = microsoft("SkipLayerNormalization")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 2))
        .input(&[4], &sequence(4, 3))
        .input(&[4], &sequence(4, 4))
        .input(&[4], &sequence(4, 5))
        .float("epsilon", 0.01)
        .outputs(4);
    case.close(&[
        &[-0.87202, -1.3985, 1.6385, -0.40599, -0.57121, -1.0447, 1.7729, -0.39778],
        &[-0.0625, 0.125],
        &[1.056, 0.43798],
        &[1.0, -0.25, -1.5, 0.5, 2.0, 0.75, -3.75, 1.5],
    ]);
}

#[test]
fn a_residual_broadcasts() {
    let case = microsoft("SkipLayerNormalization")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[2, 4], &sequence(8, 2))
        .input(&[4], &sequence(4, 3))
        .float("epsilon", 0.01);
    case.close(&[&[1.2632, -0.31581, -0.31581, 1.2632, -0.32032, 0.37752, 1.2698, 0.86944]]);
}

#[test]
fn a_simplified_normalisation_keeps_the_mean() {
    let case = microsoft("SkipSimplifiedLayerNormalization")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 2))
        .input(&[4], &sequence(4, 3))
        .float("epsilon", 0.01);
    case.close(&[&[1.5523, -0.58211, -0.0, 0.77615, -0.3657, 0.41141, 1.2342, 0.91424]]);
}

#[test]
fn a_simplified_normalisation_is_in_onnxs_domain() {
    let case = Case::new("SimplifiedLayerNormalization", 12)
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[4], &sequence(4, 3))
        .float("epsilon", 0.01)
        .int("axis", -1);
    case.close(&[&[1.47, 0.18375, 0.91874, 0.49, 1.1242, 0.63236, 0.63236, 1.1242]]);
}

#[test]
fn layer_normalisation_is_in_old_operator_sets() {
    let case = Case::new("LayerNormalization", 12)
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[4], &sequence(4, 3))
        .input(&[4], &sequence(4, 4))
        .float("epsilon", 0.01)
        .int("axis", -1);
    case.close(&[&[1.3742, -0.61764, 1.1324, 0.1242, 1.3742, -0.61764, 1.1324, 0.1242]]);
}

#[test]
fn layer_normalisation_in_old_operator_sets_has_the_type_of_the_scale() {
    let case = Case::new("LayerNormalization", 12)
        .input_of(DType::F16, &[1, 2], &[1.0, 3.0])
        .input(&[2], &[2.0f32, 4.0]);
    let found = case.run().expect("a valid node");
    assert_eq!(found[0].dtype(), DType::F32);
    case.close(&[&[-2.0, 4.0]]);
}

#[test]
fn groups_of_channels_are_normalised_after_a_residual() {
    let case = microsoft("SkipGroupNorm")
        .input(&[1, 1, 2, 4], &sequence(8, 0))
        .input(&[4], &sequence(4, 3))
        .input(&[4], &sequence(4, 4))
        .input(&[1, 4], &sequence(4, 6))
        .int("groups", 2)
        .int("activation", 1)
        .float("epsilon", 0.01)
        .outputs(2);
    case.close(&[
        &[1.1022, -0.21574, 1.0692, -0.070586, 0.82258, -0.16139, 0.85929, 0.068973],
        &[-2.0, 1.5, -1.5, 2.0, -1.5, 2.0, -1.0, 2.5],
    ]);
}

#[test]
fn embeddings_are_added_and_normalised() {
    let case = microsoft("EmbedLayerNormalization")
        .input(&[1, 3], &[1i32, 3, 0])
        .input(&[1, 3], &[0i32, 1, 1])
        .input(&[4, 4], &sequence(16, 0))
        .input(&[5, 4], &sequence(20, 1))
        .input(&[2, 4], &sequence(8, 2))
        .input(&[4], &sequence(4, 3))
        .input(&[4], &sequence(4, 4))
        .input(&[1, 3], &[1i32, 1, 0])
        .float("epsilon", 0.01)
        .outputs(3);
    case.close(&[
        &[
            0.84401, -0.11148, 0.3515, -2.122, -1.3206, -2.0444, 0.41782, -1.6209, -0.87202,
            -1.3985, 1.6385, -0.40599,
        ],
        &[2.0],
        &[-0.25, 1.75, 0.5, -0.75, 1.75, -2.75, -0.75, -2.0, 0.75, -0.5, -1.75, 0.25],
    ]);
}

#[test]
fn positions_of_embeddings_may_be_given() {
    let case = microsoft("EmbedLayerNormalization")
        .input(&[1, 2], &[1i32, 3])
        .nothing()
        .input(&[4, 4], &sequence(16, 0))
        .input(&[5, 4], &sequence(20, 1))
        .nothing()
        .input(&[4], &sequence(4, 3))
        .input(&[4], &sequence(4, 4))
        .nothing()
        .input(&[1, 2], &[4i32, 2])
        .float("epsilon", 0.01)
        .outputs(3);
    case.close(&[
        &[1.3796, -0.61462, 1.1354, 0.12957, -0.57022, -2.1112, -0.36123, -1.8202],
        &[0.0],
        &[-2.5, 1.0, -2.0, 1.5, 0.75, -2.25, 1.25, -1.75],
    ]);
}

#[test]
fn a_product_is_scaled_and_transposed() {
    let case = microsoft("FusedMatMul")
        .input(&[2, 1, 3], &sequence(6, 0))
        .input(&[2, 2, 1], &sequence(4, 1))
        .int("transA", 1)
        .int("transB", 1)
        .float("alpha", 0.5);
    case.close(&[&[
        0.1875, -1.125, -0.03125, 0.1875, 0.15625, -0.9375, 0.0, -0.375, 0.0, 0.75, 0.0, -0.5625,
    ]]);
}

#[test]
fn the_batch_may_be_before_the_columns() {
    let case = microsoft("FusedMatMul")
        .input(&[2, 1, 3], &sequence(6, 0))
        .input(&[1, 3, 2], &sequence(6, 1))
        .int("transBatchA", 1);
    case.close(&[&[0.0625, -1.0625, 0.0625, 1.3125]]);
}

#[test]
fn a_product_is_followed_by_leakyrelu() {
    let case = microsoft("FusedGemm")
        .input(&[2, 3], &sequence(6, 0))
        .input(&[2, 3], &sequence(6, 1))
        .input(&[2], &sequence(2, 2))
        .int("transB", 1)
        .float("alpha", 0.5)
        .float("beta", 2.0)
        .string("activation", "LeakyRelu")
        .float("activation_alpha", 0.5);
    case.close(&[&[2.375, 0.9375, 1.1875, -0.98438]]);
}

#[test]
fn a_product_is_followed_by_elu() {
    let case = microsoft("FusedGemm")
        .input(&[2, 3], &sequence(6, 0))
        .input(&[2, 3], &sequence(6, 1))
        .input(&[2], &sequence(2, 2))
        .int("transB", 1)
        .float("alpha", 0.5)
        .float("beta", 2.0)
        .string("activation", "Elu")
        .float("activation_alpha", 0.5);
    case.close(&[&[2.375, 0.9375, 1.1875, -0.43018]]);
}

#[test]
fn a_product_is_followed_by_hardsigmoid() {
    let case = microsoft("FusedGemm")
        .input(&[2, 3], &sequence(6, 0))
        .input(&[2, 3], &sequence(6, 1))
        .input(&[2], &sequence(2, 2))
        .int("transB", 1)
        .float("alpha", 0.5)
        .float("beta", 2.0)
        .string("activation", "HardSigmoid")
        .float("activation_alpha", 0.25)
        .float("activation_beta", 0.5);
    case.close(&[&[1.0, 0.73438, 0.79688, 0.0078125]]);
}

#[test]
fn a_product_is_followed_by_thresholdedrelu() {
    let case = microsoft("FusedGemm")
        .input(&[2, 3], &sequence(6, 0))
        .input(&[2, 3], &sequence(6, 1))
        .input(&[2], &sequence(2, 2))
        .int("transB", 1)
        .float("alpha", 0.5)
        .float("beta", 2.0)
        .string("activation", "ThresholdedRelu")
        .float("activation_alpha", 1.0);
    case.close(&[&[2.375, 0.0, 1.1875, 0.0]]);
}

#[test]
fn a_convolution_is_followed_by_a_sum_and_a_function() {
    let case = microsoft("FusedConv")
        .input(&[1, 1, 3, 3], &sequence(9, 0))
        .input(&[2, 1, 2, 2], &sequence(8, 1))
        .input(&[2], &sequence(2, 2))
        .input(&[1, 2, 2, 2], &sequence(8, 3))
        .string("activation", "Relu");
    case.close(&[&[2.25, 0.0, 0.0, 4.125, 0.0, 1.125, 0.0, 0.8125]]);
}

#[test]
fn channels_may_be_last() {
    let case = microsoft("NhwcFusedConv")
        .input(&[1, 3, 3, 1], &sequence(9, 0))
        .input(&[2, 1, 2, 2], &sequence(8, 1))
        .input(&[2], &sequence(2, 2))
        .string("activation", "Tanh");
    case.close(&[&[0.997, 0.062419, -0.96819, -0.12435, -0.97187, -0.46212, 0.99615, -0.59637]]);
}

#[test]
fn a_layout_has_a_domain_of_its_own() {
    let case = Case::new("MaxPool", 12)
        .domain("com.ms.internal.nhwc")
        .input(&[1, 2, 2, 2], &sequence(8, 0))
        .ints("kernel_shape", &[2, 2]);
    case.close(&[&[-0.75, 1.0]]);
}

#[test]
fn matrices_are_inverted() {
    let case = microsoft("Inverse").input(&[2, 2, 2], &sequence(8, 4));
    case.close(&[&[-2.6667, 3.3333, -1.3333, 0.66667, -1.3333, 2.0, -2.6667, 2.0]]);
}

#[test]
fn an_inverse_swaps_rows() {
    let case = microsoft("Inverse").input(&[2, 2], &[0.0f32, 2.0, 4.0, 1.0]);
    case.close(&[&[-0.125, 0.25, 0.5, 0.0]]);
}

#[test]
fn distances_are_of_rows() {
    let case = microsoft("CDist")
        .input(&[2, 3], &sequence(6, 0))
        .input(&[3, 3], &sequence(9, 1))
        .string("metric", "euclidean");
    case.close(&[&[2.1651, 0.0, 3.0923, 2.7157, 3.0923, 0.0]]);
}

#[test]
fn unique_values_keep_their_order() {
    let case = microsoft("Unique").input(&[6], &[2.0f32, 1.0, 1.0, 3.0, 4.0, 3.0]).outputs(3);
    case.close(&[&[2.0, 1.0, 3.0, 4.0], &[0.0, 1.0, 1.0, 2.0, 3.0, 2.0], &[1.0, 2.0, 2.0, 1.0]]);
}

#[test]
fn a_range_has_steps_of_1() {
    let case = microsoft("Range").constant(&[], &[1.0f32]).constant(&[], &[4.0f32]);
    case.close(&[&[1.0, 2.0, 3.0]]);
}

#[test]
fn a_dimension_is_inserted() {
    let case = microsoft("ExpandDims").input(&[2], &sequence(2, 0)).constant(&[], &[-1i32]);
    case.close(&[&[-1.5, 0.25]]);
}

#[test]
fn regions_are_resized() {
    let case = microsoft("CropAndResize")
        .input(&[1, 1, 3, 3], &sequence(9, 0))
        .input(&[2, 4], &[0.0f32, 0.0, 1.0, 1.0, 0.25, 0.5, 0.5, 1.5])
        .input(&[2], &[0i32, 0])
        .constant(&[2], &[2i32, 3])
        .float("extrapolation_value", 9.0);
    case.close(&[&[-1.5, 0.25, -1.25, -0.75, 1.0, -0.5, -0.375, -0.25, 9.0, -1.0, 0.75, 9.0]]);
}

#[test]
fn a_single_row_is_the_middle_of_a_region() {
    let case = microsoft("CropAndResize")
        .input(&[1, 1, 3, 3], &sequence(9, 0))
        .input(&[1, 4], &[0.0f32, 0.0, 1.0, 0.5])
        .input(&[1], &[0i32])
        .constant(&[2], &[1i32, 2])
        .string("mode", "nearest");
    case.close(&[&[0.5, -1.0]]);
}

#[test]
fn slices_are_a_new_dimension() {
    let case = microsoft("UnfoldTensor")
        .input(&[5], &sequence(5, 0))
        .int("size", 3)
        .int("step", 2)
        .int("dim", 0);
    case.close(&[&[-1.5, 0.25, -1.25, -1.25, 0.5, -1.0]]);
}

#[test]
fn repeated_sequences_are_forbidden() {
    let case = microsoft("NGramRepeatBlock")
        .input(&[1, 5], &[1i64, 2, 3, 1, 2])
        .input(&[1, 5], &sequence(5, 0))
        .int("ngram_size", 3);
    case.close(&[&[-1.5, 0.25, -1.25, f64::NEG_INFINITY, -1.0]]);
}

#[test]
fn short_texts_repeat_nothing() {
    let case = microsoft("NGramRepeatBlock")
        .input(&[1, 2], &[1i64, 2])
        .input(&[1, 3], &sequence(3, 0))
        .int("ngram_size", 9);
    case.close(&[&[-1.5, 0.25, -1.25]]);
}

#[test]
fn pads_of_a_transposed_convolution_are_an_input() {
    let case = microsoft("ConvTransposeWithDynamicPads")
        .input(&[1, 1, 2, 2], &sequence(4, 0))
        .input(&[1, 1, 3, 3], &sequence(9, 1))
        .constant(&[4], &[1i64, 0, 1, 1])
        .input(&[1], &sequence(1, 2))
        .ints("strides", &[2, 2]);
    case.close(&[&[
        3.25, 0.625, 2.5, 1.0625, 0.5625, 0.625, -0.125, 1.5, 2.875, 0.6875, 1.8125, 1.125,
    ]]);
}
