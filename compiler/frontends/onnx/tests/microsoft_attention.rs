//! Operators of `com.microsoft`: attention.
use crate::case::{integers, microsoft, sequence};

#[test]
fn heads_attend_to_keys() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 1))
        .input(&[1, 2, 4], &sequence(8, 2))
        .int("num_heads", 2);
    case.close(&[&[1.1329, -0.36714, 0.05624, -0.032953, 1.0702, -0.4298, -0.18573, 0.011041]]);
}

#[test]
fn the_bias_of_the_projection_is_added() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 1))
        .input(&[1, 2, 4], &sequence(8, 2))
        .input(&[12], &sequence(12, 3))
        .int("num_heads", 2)
        .int("unidirectional", 1)
        .float("scale", 0.5);
    case.close(&[&[1.0, -2.0, 1.5, -1.5, 1.0358, -1.9642, 0.039174, -1.2344]]);
}

#[test]
fn a_mask_of_keys_is_added() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 1))
        .input(&[1, 2, 4], &sequence(8, 2))
        .nothing()
        .input(&[1, 2], &[1i32, 0])
        .int("num_heads", 2)
        .float("mask_filter_value", -2.0);
    case.close(&[&[1.0233, -0.47666, 0.99136, -0.20298, 1.0108, -0.48919, 0.8958, -0.1856]]);
}

#[test]
fn a_mask_of_lengths_hides_the_rest() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 1))
        .input(&[1, 2, 4], &sequence(8, 2))
        .nothing()
        .input(&[1], &[1i32])
        .int("num_heads", 2);
    case.close(&[&[1.0, -0.5, 1.25, -0.25, 1.0, -0.5, 1.25, -0.25]]);
}

#[test]
fn a_mask_of_queries_and_keys() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 1))
        .input(&[1, 2, 4], &sequence(8, 2))
        .nothing()
        .input(&[1, 2, 2], &[1i32, 0, 1, 1])
        .int("num_heads", 2);
    case.close(&[&[1.0, -0.5, 1.25, -0.25, 1.0702, -0.4298, -0.18573, 0.011041]]);
}

#[test]
fn scores_are_an_output() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 1))
        .input(&[1, 2, 4], &sequence(8, 2))
        .nothing()
        .input(&[1, 2], &[1i32, 0])
        .input(&[1, 1, 2, 2], &sequence(4, 4))
        .int("num_heads", 2)
        .float("mask_filter_value", -2.0)
        .outputs(4);
    case.close(&[
        &[1.0054, -0.4946, 1.1877, -0.23868, 1.0025, -0.49755, 1.1622, -0.23403],
        &[-0.25, 1.5, 0.25, -1.25, 0.0, -1.5, 0.5, -1.0],
        &[1.0, -0.5, 1.5, 0.0, 1.25, -0.25, -1.5, 0.25],
        &[0.78033, -3.7361, 1.4723, -3.8397, -0.28033, -4.0455, -0.56066, -3.9723],
    ]);
}

#[test]
fn the_past_comes_before_the_keys() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 4], &sequence(8, 1))
        .input(&[1, 2, 4], &sequence(8, 2))
        .nothing()
        .nothing()
        .nothing()
        .input(&[1, 2, 1, 2], &sequence(4, 5))
        .input(&[1, 2, 1, 2], &sequence(4, 6))
        .int("num_heads", 2)
        .int("unidirectional", 1)
        .outputs(3);
    case.close(&[
        &[0.83944, -0.31268, -0.062276, 1.281, 0.91133, -0.25984, -0.23618, 1.1798],
        &[1.5, 0.0, -0.25, 1.5, 0.25, -1.25, -1.5, 0.25, 0.0, -1.5, 0.5, -1.0],
        &[-0.5, 1.25, 1.0, -0.5, 1.5, 0.0, -0.25, 1.5, 1.25, -0.25, -1.5, 0.25],
    ]);
}

#[test]
fn keys_of_another_sequence_may_be_by_head() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 3, 2], &sequence(12, 5))
        .input(&[1, 2, 3, 2], &sequence(12, 6))
        .int("num_heads", 2);
    case.close(&[&[-0.14654, 0.18845, 0.47797, -1.022, -0.14672, 0.095105, 0.50736, -0.99264]]);
}

#[test]
fn operands_may_be_packed() {
    let case = microsoft("MultiHeadAttention")
        .input(&[1, 2, 2, 3, 2], &sequence(24, 0))
        .int("num_heads", 2);
    case.close(&[&[-0.8049, 0.52238, -0.076317, 1.2974, 0.29727, -0.76348, 1.0229, 0.01497]]);
}

#[test]
fn operands_are_projected_first() {
    let case = microsoft("Attention")
        .input(&[1, 3, 2], &sequence(6, 0))
        .input(&[2, 12], &sequence(24, 1))
        .input(&[12], &sequence(12, 2))
        .int("num_heads", 2)
        .int("unidirectional", 1);
    case.close(&[&[
        -2.625, 1.8125, -2.6875, 1.75, -2.6565, 1.8125, -2.6625, 1.7999, -2.6835, 1.8125, -2.6422,
        1.8406,
    ]]);
}

#[test]
fn a_mask_has_ends_and_starts() {
    let case = microsoft("Attention")
        .input(&[1, 3, 2], &sequence(6, 0))
        .input(&[2, 12], &sequence(24, 1))
        .input(&[12], &sequence(12, 2))
        .input(&[2], &[3i32, 1])
        .int("num_heads", 2);
    case.close(&[&[
        -2.7207, 1.8125, -2.5998, 1.9254, -2.719, 1.8125, -2.6, 1.9249, -2.7172, 1.8125, -2.6003,
        1.9244,
    ]]);
}

#[test]
fn the_past_of_a_projection_is_one_tensor() {
    let case = microsoft("Attention")
        .input(&[1, 3, 2], &sequence(6, 0))
        .input(&[2, 12], &sequence(24, 1))
        .input(&[12], &sequence(12, 2))
        .nothing()
        .input(&[2, 1, 2, 1, 2], &sequence(8, 4))
        .int("num_heads", 2)
        .int("unidirectional", 1)
        .outputs(2);
    case.close(&[
        &[
            0.73921, -0.74181, -1.3357, 0.92519, 0.70208, -0.71395, -0.36729, 0.35859, 0.60918,
            -0.6449, 0.5133, -0.18723,
        ],
        &[
            0.25, -1.25, 0.75, 1.9375, 0.4375, 1.6875, 0.125, 1.4375, 0.5, -1.0, -2.5625, 1.875,
            -2.75, 1.75, -2.9375, 1.625, 0.75, -0.75, -2.625, 1.8125, -2.6875, 1.8125, -2.75,
            1.8125, 1.0, -0.5, -2.6875, 1.75, -2.625, 1.875, -2.5625, 2.0,
        ],
    ]);
}

#[test]
fn values_may_have_another_size() {
    let case = microsoft("Attention")
        .input(&[1, 3, 2], &sequence(6, 0))
        .input(&[2, 10], &sequence(20, 1))
        .input(&[10], &sequence(10, 2))
        .int("num_heads", 2)
        .ints("qkv_hidden_sizes", &[4, 4, 2]);
    case.close(&[&[-2.8913, 1.7087, -2.8914, 1.7086, -2.8916, 1.7085]]);
}

#[test]
fn quantised_operands_are_projected() {
    let case = microsoft("QAttention")
        .input(&[1, 3, 2], &integers::<u8>(6, 0, 250))
        .constant(&[2, 12], &integers::<i8>(24, 1, 120))
        .input(&[12], &sequence(12, 2))
        .constant(&[], &[0.012_5_f32])
        .constant(&[], &[0.012_5_f32])
        .input(&[1, 3], &[1i32, 1, 0])
        .constant(&[], &[120u8])
        .constant(&[], &[3i8])
        .int("num_heads", 2);
    case.close(&[&[
        -4.3735, -2.9826, -3.0303, 0.45967, -4.3647, -2.9727, -3.0126, 0.46241, -4.3558, -2.9628,
        -2.9942, 0.46527,
    ]]);
}

#[test]
fn a_token_is_added_to_a_buffer() {
    let case = microsoft("DecoderMaskedMultiHeadAttention")
        .input(&[1, 1, 4], &sequence(4, 0))
        .input(&[1, 1, 4], &sequence(4, 1))
        .input(&[1, 1, 4], &sequence(4, 2))
        .nothing()
        .nothing()
        .input(&[1, 2, 3, 2], &sequence(12, 3))
        .input(&[1, 2, 3, 2], &sequence(12, 4))
        .input(&[1], &[1i32])
        .int("num_heads", 2)
        .int("past_present_share_buffer", 1)
        .outputs(3);
    case.close(&[
        &[0.50506, -0.99494, 1.0543, -0.44568],
        &[-1.0, 0.75, -0.25, 1.5, -0.5, 1.25, -0.25, 1.5, 0.0, -1.5, 0.25, -1.25],
        &[0.25, -1.25, 1.0, -0.5, 0.75, -0.75, 1.0, -0.5, 1.25, -0.25, 1.5, 0.0],
    ]);
}

#[test]
fn tables_are_read_at_positions() {
    let case = microsoft("RotaryEmbedding")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2], &[2i64, 0])
        .input(&[3, 1], &sequence(3, 1))
        .input(&[3, 1], &sequence(3, 2));
    case.close(&[&[-0.3125, -1.875, -0.625, -1.5625, -0.5, -1.1875, -0.8125, -1.0]]);
}

#[test]
fn positions_follow_the_first() {
    let case = microsoft("RotaryEmbedding")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1], &[1i64])
        .input(&[3, 2], &sequence(6, 1))
        .input(&[3, 2], &sequence(6, 2))
        .int("interleaved", 1);
    case.close(&[&[-0.3125, -1.875, 2.0, -0.4375, -1.375, -1.3125, 0.9375, -1.25]]);
}

#[test]
fn heads_share_keys_of_a_prompt() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 2], &sequence(4, 1))
        .input(&[1, 2, 2], &sequence(4, 2))
        .nothing()
        .nothing()
        .input(&[1], &[1i32])
        .constant(&[1], &[2i32])
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .outputs(3);
    case.close(&[
        &[1.0, -0.5, 1.0, -0.5, 1.0365, -0.46354, 1.0238, -0.47625],
        &[-0.25, 1.5, 0.0, -1.5],
        &[1.0, -0.5, 1.25, -0.25],
    ]);
}

#[test]
fn new_keys_follow_those_of_each_sequence() {
    let case = microsoft("GroupQueryAttention")
        .input(&[2, 1, 4], &sequence(8, 0))
        .input(&[2, 1, 2], &sequence(4, 1))
        .input(&[2, 1, 2], &sequence(4, 2))
        .input(&[2, 1, 2, 2], &sequence(8, 3))
        .input(&[2, 1, 2, 2], &sequence(8, 4))
        .input(&[2], &[2i32, 1])
        .constant(&[1], &[3i32])
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .outputs(3);
    case.close(&[
        &[0.50331, -0.99669, 0.53372, -0.96628, 0.8202, -0.6798, 0.79944, -0.70056],
        &[-1.0, 0.75, -0.75, 1.0, -0.25, 1.5, -0.5, 1.25, 0.0, -1.5, 0.0, 0.0],
        &[0.25, -1.25, 0.5, -1.0, 1.0, -0.5, 0.75, -0.75, 1.25, -0.25, 0.0, 0.0],
    ]);
}

#[test]
fn a_cache_may_have_room() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 1, 4], &sequence(4, 0))
        .input(&[1, 1, 2], &sequence(2, 1))
        .input(&[1, 1, 2], &sequence(2, 2))
        .input(&[1, 1, 4, 2], &sequence(8, 3))
        .input(&[1, 1, 4, 2], &sequence(8, 4))
        .input(&[1], &[2i32])
        .constant(&[1], &[3i32])
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .outputs(3);
    case.close(&[
        &[0.50331, -0.99669, 0.53372, -0.96628],
        &[-1.0, 0.75, -0.75, 1.0, -0.25, 1.5, 0.0, 0.0],
        &[0.25, -1.25, 0.5, -1.0, 1.0, -0.5, 0.0, 0.0],
    ]);
}

#[test]
fn a_length_may_be_read_at_run_time() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 1, 4], &sequence(4, 0))
        .input(&[1, 1, 2], &sequence(2, 1))
        .input(&[1, 1, 2], &sequence(2, 2))
        .input(&[1, 1, 2, 2], &sequence(4, 3))
        .input(&[1, 1, 2, 2], &sequence(4, 4))
        .input(&[1], &[2i32])
        .input(&[1], &[3i32])
        .input(&[4, 1], &sequence(4, 5))
        .input(&[4, 1], &sequence(4, 6))
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .int("do_rotary", 1)
        .outputs(3);
    case.close(&[
        &[0.92485, -0.57515, 0.95568, -0.54432],
        &[-1.0, 0.75, -0.75, 1.0, 0.75, -2.1875],
        &[0.25, -1.25, 0.5, -1.0, 1.0, -0.5],
    ]);
}

#[test]
fn packed_operands_are_rotated() {
    let case = microsoft("GroupQueryAttention")
        .input(
            &[1, 2, 8],
            &[
                -1.5f32, 0.25, -1.25, 0.5, -0.25, 1.5, 1.0, -0.5, -1.0, 0.75, -0.75, 1.0, 0.0,
                -1.5, 1.25, -0.25,
            ],
        )
        .nothing()
        .nothing()
        .nothing()
        .nothing()
        .input(&[1], &[1i32])
        .constant(&[1], &[2i32])
        .input(&[4, 1], &sequence(4, 5))
        .input(&[4, 1], &sequence(4, 6))
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .int("do_rotary", 1)
        .int("rotary_interleaved", 1)
        .outputs(3);
    case.close(&[
        &[1.0, -0.5, 1.0, -0.5, 1.1878, -0.31221, 1.1405, -0.35954],
        &[0.375, 2.375, 1.875, 0.0],
        &[1.0, -0.5, 1.25, -0.25],
    ]);
}

#[test]
fn a_window_hides_older_keys() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 3, 4], &sequence(12, 0))
        .input(&[1, 3, 2], &sequence(6, 1))
        .input(&[1, 3, 2], &sequence(6, 2))
        .nothing()
        .nothing()
        .input(&[1], &[2i32])
        .constant(&[1], &[3i32])
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .int("local_window_size", 2)
        .outputs(3);
    case.close(&[
        &[
            1.0, -0.5, 1.0, -0.5, 1.0365, -0.46354, 1.0238, -0.47625, 1.3833, -0.11673, 1.3888,
            -0.11125,
        ],
        &[-0.25, 1.5, 0.0, -1.5, 0.25, -1.25],
        &[1.0, -0.5, 1.25, -0.25, 1.5, 0.0],
    ]);
}

#[test]
fn scores_are_capped_before_a_bias() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 2], &sequence(4, 1))
        .input(&[1, 2, 2], &sequence(4, 2))
        .nothing()
        .nothing()
        .input(&[1], &[1i32])
        .constant(&[1], &[2i32])
        .nothing()
        .nothing()
        .nothing()
        .input(&[1, 1, 2, 2], &sequence(4, 7))
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .float("softcap", 0.5)
        .outputs(3);
    case.close(&[
        &[1.0, -0.5, 1.0, -0.5, 1.02, -0.47996, 1.0194, -0.48064],
        &[-0.25, 1.5, 0.0, -1.5],
        &[1.0, -0.5, 1.25, -0.25],
    ]);
}

#[test]
fn a_sink_takes_part_of_the_weight() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 2], &sequence(4, 1))
        .input(&[1, 2, 2], &sequence(4, 2))
        .nothing()
        .nothing()
        .input(&[1], &[1i32])
        .constant(&[1], &[2i32])
        .nothing()
        .nothing()
        .nothing()
        .nothing()
        .input(&[2], &sequence(2, 7))
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .outputs(3);
    case.close(&[
        &[0.4453, -0.22265, 0.81777, -0.40888, 0.61549, -0.27527, 0.90627, -0.4216],
        &[-0.25, 1.5, 0.0, -1.5],
        &[1.0, -0.5, 1.25, -0.25],
    ]);
}

#[test]
fn a_smooth_softmax_has_one_more_score() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 2], &sequence(4, 1))
        .input(&[1, 2, 2], &sequence(4, 2))
        .nothing()
        .nothing()
        .input(&[1], &[1i32])
        .constant(&[1], &[2i32])
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .int("smooth_softmax", 1)
        .outputs(3);
    case.close(&[
        &[0.62956, -0.31478, 0.67946, -0.33973, 0.78337, -0.35036, 0.80331, -0.3737],
        &[-0.25, 1.5, 0.0, -1.5],
        &[1.0, -0.5, 1.25, -0.25],
    ]);
}

#[test]
fn later_keys_may_be_seen() {
    let case = microsoft("GroupQueryAttention")
        .input(&[1, 2, 4], &sequence(8, 0))
        .input(&[1, 2, 2], &sequence(4, 1))
        .input(&[1, 2, 2], &sequence(4, 2))
        .nothing()
        .nothing()
        .input(&[1], &[1i32])
        .constant(&[1], &[2i32])
        .int("num_heads", 2)
        .int("kv_num_heads", 1)
        .int("causal", 0)
        .outputs(3);
    case.close(&[
        &[1.0777, -0.42225, 1.0543, -0.44568, 1.0365, -0.46354, 1.0238, -0.47625],
        &[-0.25, 1.5, 0.0, -1.5],
        &[1.0, -0.5, 1.25, -0.25],
    ]);
}
