//! Operators of `com.microsoft`: attributes and operands that do not fit.

use crate::case::{Case, integers, microsoft, sequence};

/// Attributes with absurd values, each of which the node is rejected for.
fn rejects(case: impl Fn() -> Case, name: &str, values: &[i64], message: &str) {
    for value in values {
        let error = case().int(name, *value).error();
        assert!(error.contains(message), "{name} {value}: {error}");
    }
}

#[test]
fn packed_weights_have_sizes_and_bits() {
    let of = |n: i64, k: i64| {
        let case = microsoft("MatMulNBits").input(&[1, 16], &sequence(16, 0));
        let case = case.constant(&[2, 1, 8], &integers::<u8>(16, 0, 250));
        case.constant(&[2], &sequence(2, 1)).int("N", n).int("K", k)
    };
    let plain = || of(2, 16).int("block_size", 16);
    rejects(plain, "bits", &[0, 1, 9, 1_000_000_000, i64::MIN], "expected bits from 2 to 8");
    let blocks = [0, -16, 15, 48, i64::MAX, i64::MIN];
    rejects(|| of(2, 16), "block_size", &blocks, "expected block_size to be a power of two");
    rejects(|| of(2, 16), "block_size", &[1 << 30], "expected");
    for (n, k) in [(1_000_000_000, 16), (2, 1_000_000_000)] {
        let error = of(n, k).int("block_size", 16).error();
        assert!(error.contains("elements of input"), "{error}");
    }
    for (n, k) in [(0, 16), (2, -1), (i64::MAX, i64::MAX), (i64::MIN, 16)] {
        let error = of(n, k).int("block_size", 16).error();
        assert!(error.contains("from 1 on"), "{error}");
    }
}

#[test]
fn heads_divide_sizes() {
    let of = || microsoft("MultiHeadAttention").input(&[1, 2, 4], &sequence(8, 0));
    let of = || of().input(&[1, 2, 4], &sequence(8, 1)).input(&[1, 2, 4], &sequence(8, 2));
    rejects(of, "num_heads", &[3, 8, 1_000_000_000, i64::MAX], "is a multiple of");
    rejects(of, "num_heads", &[0, -1, i64::MIN], "num_heads of at least 1");
    assert_eq!(of().error(), "the attribute `num_heads` is missing");
}

#[test]
fn grouped_heads_share_keys() {
    let of = |heads: i64, shared: i64| {
        let case = microsoft("GroupQueryAttention").input(&[1, 1, 4], &sequence(4, 0));
        let case = case.input(&[1, 1, 2], &sequence(2, 1)).input(&[1, 1, 2], &sequence(2, 2));
        let case = case.nothing().nothing().input(&[1], &[0i32]).constant(&[1], &[1i32]);
        case.int("num_heads", heads).int("kv_num_heads", shared)
    };
    assert_eq!(of(2, 3).error(), "expected num_heads in groups of 3, found 2");
    assert!(of(1_000_000_000, 1).error().contains("is a multiple of 1000000000 heads"));
    assert!(of(i64::MAX, 1).error().contains("is a multiple of"));
    let quantised = of(2, 1).string("k_quant_type", "PER_TENSOR");
    assert_eq!(quantised.error(), "k_quant_type PER_TENSOR is not supported");
    assert_eq!(
        of(2, 1).int("sliding_window_cache", 1).error(),
        "sliding_window_cache 1 is not supported"
    );
}

#[test]
fn a_total_length_is_at_most_the_past_and_the_new_tokens() {
    let case = microsoft("GroupQueryAttention").input(&[1, 1, 2], &sequence(2, 0));
    let case = case.input(&[1, 1, 2], &sequence(2, 1)).input(&[1, 1, 2], &sequence(2, 2));
    let case = case.nothing().nothing().input(&[1], &[0i32]).constant(&[1], &[1_000_000_000i32]);
    let error = case.int("num_heads", 1).int("kv_num_heads", 1).error();
    assert!(error.contains("expected a total length of the past and the new tokens"), "{error}");
}

#[test]
fn the_last_token_of_a_sequence_is_in_the_cache() {
    let of = || {
        let case = microsoft("GroupQueryAttention").input(&[1, 1, 2], &sequence(2, 0));
        let case = case.input(&[1, 1, 2], &sequence(2, 1)).input(&[1, 1, 2], &sequence(2, 2));
        let case = case.input(&[1, 1, 3, 2], &sequence(6, 3)).input(&[1, 1, 3, 2], &sequence(6, 4));
        case.int("num_heads", 1).int("kv_num_heads", 1).outputs(3)
    };
    for (length, is_valid) in [(-1, false), (i32::MIN, false), (0, true), (2, true), (3, false)] {
        // Lengths that are read at run time, and constant ones.
        let read = of().input(&[1], &[length]).input(&[1], &[3i32]);
        let constant = of().constant(&[1], &[length]).constant(&[1], &[3i32]);
        for case in [read, constant] {
            if is_valid {
                assert_eq!(case.run().map(|outputs| outputs.len()), Ok(3), "{length}");
                continue;
            }
            let error = case.error();
            let message = "expected seqlens_k from 0 to less than the capacity of the cache";
            assert!(error.contains(message), "{length}: {error}");
        }
    }
}

#[test]
fn groups_tables_and_slices_have_sizes() {
    let norm = || {
        let case = microsoft("GroupNorm").input(&[1, 1, 1, 4], &sequence(4, 0));
        case.input(&[4], &sequence(4, 1)).input(&[4], &sequence(4, 2)).int("activation", 0)
    };
    rejects(norm, "groups", &[0, -2, i64::MIN], "expected `groups` of at least 1");
    rejects(norm, "groups", &[3, 1_000_000_000], "groups of one size");
    let table = || {
        let case = microsoft("GatherBlockQuantized").constant(&[2, 8], &integers::<u8>(16, 0, 250));
        case.input(&[1], &[0i64]).constant(&[2, 1], &sequence(2, 0)).int("quantize_axis", 1)
    };
    rejects(table, "block_size", &[0, 3, i64::MAX], "expected block_size to be a power of two");
    rejects(table, "gather_axis", &[2, -3, i64::MAX], "expected an axis");
    let unfold = || microsoft("UnfoldTensor").input(&[4], &sequence(4, 0));
    rejects(unfold, "size", &[0, i64::MIN], "expected a size and a step from 1 on");
    rejects(unfold, "size", &[5, 1_000_000_000], "at most the dimension's size");
}

#[test]
fn other_forms_are_named() {
    let attention = microsoft("Attention").input(&[1, 1, 2], &sequence(2, 0));
    let attention = attention.input(&[2, 6], &sequence(12, 1)).int("num_heads", 1);
    assert_eq!(attention.int("do_rotary", 1).error(), "do_rotary 1 is not supported");
    let product = microsoft("FusedGemm").input(&[1, 2], &sequence(2, 0));
    let product = product.input(&[2, 1], &sequence(2, 1)).string("activation", "Cube");
    assert_eq!(product.error(), "the activation Cube is not supported");
    let distance = microsoft("CDist").input(&[1, 2], &sequence(2, 0));
    let distance = distance.input(&[1, 2], &sequence(2, 1)).string("metric", "cosine");
    assert_eq!(distance.error(), "the metric cosine is not supported");
}
