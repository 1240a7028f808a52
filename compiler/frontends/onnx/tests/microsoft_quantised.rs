//! Operators of `com.microsoft`: quantised integers, packed weights.
use crate::case::{integers, microsoft, sequence};

#[test]
fn weights_of_4_bits_have_a_zero_point_of_8() {
    let case = microsoft("MatMulNBits")
        .input(&[2, 20], &sequence(40, 0))
        .constant(&[2, 2, 8], &integers::<u8>(32, 1, 251))
        .constant(&[4], &sequence(4, 2))
        .int("K", 20)
        .int("N", 2)
        .int("block_size", 16)
        .int("bits", 4);
    case.close(&[&[-10.25, 49.25, -5.375, 4.3125]]);
}

/// With weights of one, what is multiplied is seen in the result: multiples of a 127th of the largest magnitude of a block.
#[test]
fn an_accuracy_of_8_bits_quantises_the_left_operand() {
    let mut x = [0.0f32; 20];
    // 0.5 and 1.5 of the scale of the first block are rounded to even.
    (x[0], x[1], x[2]) = (127.0, 0.5, 1.5);
    (x[16], x[17]) = (1.0, -0.3);
    let of_level = |level: i64| {
        microsoft("MatMulNBits")
            .input(&[1, 20], &x)
            .constant(&[1, 2, 8], &[0x99u8; 16])
            .constant(&[2], &[1.0f32, 127.0])
            .int("K", 20)
            .int("N", 1)
            .int("block_size", 16)
            .int("bits", 4)
            .int("accuracy_level", level)
    };
    of_level(0).close(&[&[129.0 + 127.0 * 0.7]]);
    of_level(1).close(&[&[129.0 + 127.0 * 0.7]]);
    of_level(4).close(&[&[129.0 + 127.0 - 38.0]]);
}

#[test]
fn blocks_of_zeros_have_scales_of_zero() {
    let case = microsoft("MatMulNBits")
        .input(&[2, 16], &[0.0f32; 32])
        .constant(&[1, 1, 8], &[0x99u8; 8])
        .constant(&[1], &[1.0f32])
        .int("K", 16)
        .int("N", 1)
        .int("block_size", 16)
        .int("bits", 4)
        .int("accuracy_level", 4);
    case.close(&[&[0.0, 0.0]]);
}

#[test]
fn zero_points_are_packed_like_weights() {
    let case = microsoft("MatMulNBits")
        .input(&[2, 40], &sequence(80, 0))
        .constant(&[2, 3, 8], &integers::<u8>(48, 1, 251))
        .constant(&[6], &sequence(6, 2))
        .constant(&[4], &integers::<u8>(4, 3, 251))
        .nothing()
        .constant(&[2], &sequence(2, 5))
        .int("K", 40)
        .int("N", 2)
        .int("block_size", 16)
        .int("bits", 4);
    case.close(&[&[19.75, 14.312, 27.312, -26.25]]);
}

#[test]
fn zero_points_may_be_floats() {
    let case = microsoft("MatMulNBits")
        .input(&[2, 16], &sequence(32, 0))
        .constant(&[2, 1, 8], &integers::<u8>(16, 1, 251))
        .constant(&[2], &sequence(2, 2))
        .constant(&[2], &sequence(2, 3))
        .int("K", 16)
        .int("N", 2)
        .int("block_size", 16)
        .int("bits", 4);
    case.close(&[&[-29.25, 15.062, -1.25, -5.5312]]);
}

#[test]
fn weights_of_2_bits() {
    let case = microsoft("MatMulNBits")
        .input(&[2, 16], &sequence(32, 0))
        .constant(&[2, 1, 4], &integers::<u8>(8, 1, 251))
        .constant(&[2], &sequence(2, 2))
        .int("K", 16)
        .int("N", 2)
        .int("block_size", 16)
        .int("bits", 2);
    case.close(&[&[2.75, 0.0, -0.75, -3.25]]);
}

#[test]
fn weights_of_3_bits_cross_bytes() {
    let case = microsoft("MatMulNBits")
        .input(&[2, 16], &sequence(32, 0))
        .constant(&[2, 1, 6], &integers::<u8>(12, 1, 251))
        .constant(&[2], &sequence(2, 2))
        .int("K", 16)
        .int("N", 2)
        .int("block_size", 16)
        .int("bits", 3);
    case.close(&[&[3.0, 4.75, 0.0, 2.0]]);
}

#[test]
fn weights_of_8_bits() {
    let case = microsoft("MatMulNBits")
        .input(&[2, 20], &sequence(40, 0))
        .constant(&[2, 2, 16], &integers::<u8>(64, 1, 251))
        .constant(&[4], &sequence(4, 2))
        .constant(&[4], &integers::<u8>(4, 3, 251))
        .int("K", 20)
        .int("N", 2)
        .int("block_size", 16)
        .int("bits", 8);
    case.close(&[&[-58.625, -64.188, 111.88, 39.688]]);
}

#[test]
fn rows_of_packed_tables_are_selected() {
    let case = microsoft("GatherBlockQuantized")
        .constant(&[3, 8], &integers::<u8>(24, 0, 251))
        .input(&[2], &[2i64, -3])
        .constant(&[3, 1], &sequence(3, 1))
        .constant(&[3, 1], &integers::<u8>(3, 2, 16))
        .int("block_size", 16)
        .int("quantize_axis", 1)
        .int("bits", 4);
    case.close(&[&[
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.5, 2.5,
        -0.25, 2.5, 1.0, 2.25, 2.25, 2.0, -0.5, 2.0, 0.75, 1.75, 2.0, 1.5, -0.75, 1.5,
    ]]);
}

#[test]
fn codes_of_4_bits_are_floats() {
    let case = microsoft("MatMulBnb4")
        .input(&[1, 16], &sequence(16, 0))
        .constant(&[16], &integers::<u8>(16, 1, 251))
        .constant(&[2], &[0.5f32, 2.0])
        .int("K", 16)
        .int("N", 2)
        .int("block_size", 16)
        .int("quant_type", 0);
    case.close(&[&[-1.6484, 1.1979]]);
}

#[test]
fn codes_of_4_bits_are_quantiles() {
    let case = microsoft("MatMulBnb4")
        .input(&[1, 16], &sequence(16, 0))
        .constant(&[16], &integers::<u8>(16, 1, 251))
        .constant(&[2], &[0.5f32, 2.0])
        .int("K", 16)
        .int("N", 2)
        .int("block_size", 16)
        .int("quant_type", 1);
    case.close(&[&[1.8868, -2.1069]]);
}

#[test]
fn a_product_quantises_its_left_side() {
    let case = microsoft("DynamicQuantizeMatMul")
        .input(&[2, 3], &sequence(6, 0))
        .input(&[3, 2], &integers::<i8>(6, 1, 120))
        .input(&[], &[0.012_5_f32])
        .input(&[], &[3i8])
        .input(&[2], &sequence(2, 2));
    case.close(&[&[0.31618, -1.5284, 1.1447, -0.32011]]);
}

#[test]
fn scales_of_a_product_are_per_column() {
    let case = microsoft("MatMulIntegerToFloat")
        .input(&[2, 3], &integers::<u8>(6, 0, 250))
        .input(&[3, 2], &integers::<i8>(6, 1, 120))
        .input(&[], &[0.012_5_f32])
        .input(&[2], &[0.25f32, 0.5])
        .input(&[], &[100u8])
        .input(&[2], &[1i8, 2])
        .input(&[2], &sequence(2, 2));
    case.close(&[&[-19.181, -57.55, -11.137, -35.275]]);
}

#[test]
fn integers_of_16_bits_are_multiplied() {
    let case = microsoft("MatMulInteger16")
        .input(&[2, 3], &integers::<i16>(6, 0, 30000))
        .input(&[3, 1], &integers::<i16>(3, 1, 3));
    case.close(&[&[11.0, 110.0]]);
}

#[test]
fn integers_are_multiplied_less_their_zero_points() {
    let case = microsoft("MulInteger")
        .input(&[2, 2], &integers::<u8>(4, 0, 250))
        .input(&[], &[7u8])
        .input(&[2], &integers::<u8>(2, 1, 250))
        .input(&[], &[9u8]);
    case.close(&[&[28.0, 28.0, -60.0, 182.0]]);
}

#[test]
fn integers_are_summed_in_32_bits() {
    let case = microsoft("ReduceSumInteger")
        .input(&[2, 2], &integers::<u8>(4, 0, 250))
        .ints("axes", &[1])
        .int("keepdims", 0);
    case.close(&[&[11.0, 55.0]]);
}

#[test]
fn quantised_values_are_averaged() {
    let case = microsoft("QLinearReduceMean")
        .input(&[2, 2], &integers::<u8>(4, 0, 250))
        .input(&[], &[0.5f32])
        .input(&[], &[10u8])
        .input(&[], &[0.25f32])
        .input(&[], &[5u8])
        .ints("axes", &[1])
        .int("keepdims", 1);
    case.close(&[&[0.0, 40.0]]);
}

#[test]
fn quantised_channels_may_be_last() {
    let case = microsoft("QLinearConv")
        .input(&[1, 2, 2, 2], &integers::<u8>(8, 0, 250))
        .constant(&[], &[0.5f32])
        .constant(&[], &[100u8])
        .constant(&[2, 2, 1, 1], &integers::<i8>(4, 1, 120))
        .constant(&[2], &[0.25f32, 0.5])
        .constant(&[2], &[0i8, 0])
        .constant(&[], &[64.0f32])
        .constant(&[], &[90u8])
        .int("channels_last", 1);
    case.close(&[&[86.0, 66.0, 87.0, 72.0, 88.0, 77.0, 89.0, 83.0]]);
}

#[test]
fn numbers_are_quantised_to_16_bits() {
    let case = microsoft("QuantizeLinear")
        .input(&[3], &sequence(3, 0))
        .input(&[], &[5e-5_f32])
        .input(&[], &[500i16]);
    case.close(&[&[-29500.0, 5500.0, -24500.0]]);
}

#[test]
fn numbers_of_16_bits_are_dequantised() {
    let case = microsoft("DequantizeLinear")
        .input(&[2], &[-30000i16, 7])
        .input(&[], &[0.5f32])
        .input(&[], &[7i16]);
    case.close(&[&[-15004.0, 0.0]]);
}

#[test]
fn a_recurrent_network_quantises_its_state() {
    let case = microsoft("DynamicQuantizeLSTM")
        .input(&[2, 1, 2], &sequence(4, 0))
        .constant(&[2, 2, 8], &integers::<i8>(32, 1, 120))
        .constant(&[2, 2, 8], &integers::<i8>(32, 2, 120))
        .constant(&[2, 16], &sequence(32, 3))
        .nothing()
        .nothing()
        .nothing()
        .nothing()
        .constant(&[2], &[0.012_5_f32, 0.012_5])
        .constant(&[2], &[0i8, 0])
        .constant(&[2, 8], &sequence(16, 4))
        .constant(&[2, 8], &[0i8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .int("hidden_size", 2)
        .string("direction", "bidirectional")
        .outputs(3);
    case.close(&[
        &[-0.064127, -0.050463, -0.0072778, 0.12243, -0.030236, 0.62465, -0.077116, 0.098742],
        &[-0.030236, 0.62465, -0.0072778, 0.12243],
        &[-0.134, 0.82076, -0.1633, 0.52014],
    ]);
}

#[test]
fn embeddings_may_be_quantised() {
    let case = microsoft("QEmbedLayerNormalization")
        .input(&[1, 2], &[1i32, 0])
        .input(&[1, 2], &[0i32, 1])
        .constant(&[2, 4], &integers::<u8>(8, 0, 250))
        .constant(&[2, 4], &integers::<u8>(8, 1, 250))
        .constant(&[2, 4], &integers::<u8>(8, 2, 250))
        .constant(&[4], &integers::<u8>(4, 3, 250))
        .constant(&[4], &integers::<u8>(4, 4, 250))
        .input(&[1, 2], &[1i32, 1])
        .constant(&[], &[0.012_5_f32])
        .constant(&[], &[0.012_5_f32])
        .constant(&[], &[0.012_5_f32])
        .constant(&[], &[0.012_5_f32])
        .constant(&[], &[0.012_5_f32])
        .constant(&[], &[120u8])
        .constant(&[], &[120u8])
        .constant(&[], &[120u8])
        .constant(&[], &[120u8])
        .constant(&[], &[120u8])
        .float("epsilon", 0.01)
        .outputs(2);
    case.close(&[
        &[0.47091, -0.59896, -1.4284, -2.0176, 0.47091, -0.59896, -1.4284, -2.0176],
        &[2.0],
    ]);
}
