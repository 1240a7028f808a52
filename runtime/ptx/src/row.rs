//! Rows: a value of each thread of a warp, and functions of rows.

/// Threads of a warp.
pub const WARP: usize = 32;

/// A register of all threads of a warp. Values narrower than 64 bits are extended with zeros.
pub type Row = [u64; WARP];

/// A function of one row.
pub type Unary = fn(&Row, &mut Row);
/// A function of two rows.
pub type Binary = fn(&Row, &Row, &mut Row);
/// A function of three rows.
pub type Ternary = fn(&Row, &Row, &Row, &mut Row);
/// A comparison: a bit for each thread.
pub type Compare = fn(&Row, &Row) -> u32;

/// The threads of a mask.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> + Clone {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// Calls a function for each thread of a mask.
#[inline(always)]
pub fn each_lane(mask: u32, mut of: impl FnMut(usize)) {
    if mask == u32::MAX {
        (0..WARP).for_each(of);
    } else {
        lanes(mask).for_each(&mut of);
    }
}

/// A [`Unary`] of an expression of one value.
macro_rules! unary {
    (|$a:ident| $e:expr) => {{
        fn row(a: &$crate::row::Row, out: &mut $crate::row::Row) {
            for (out, a) in out.iter_mut().zip(a) {
                let $a = *a;
                *out = $e;
            }
        }
        row as $crate::row::Unary
    }};
}

/// A [`Binary`] of an expression of two values.
macro_rules! binary {
    (|$a:ident, $b:ident| $e:expr) => {{
        fn row(a: &$crate::row::Row, b: &$crate::row::Row, out: &mut $crate::row::Row) {
            for i in 0..$crate::row::WARP {
                let ($a, $b) = (a[i], b[i]);
                out[i] = $e;
            }
        }
        row as $crate::row::Binary
    }};
}

/// A [`Ternary`] of an expression of three values.
macro_rules! ternary {
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {{
        fn row(
            a: &$crate::row::Row,
            b: &$crate::row::Row,
            c: &$crate::row::Row,
            out: &mut $crate::row::Row,
        ) {
            for i in 0..$crate::row::WARP {
                let ($a, $b, $c) = (a[i], b[i], c[i]);
                out[i] = $e;
            }
        }
        row as $crate::row::Ternary
    }};
}

/// A [`Compare`] of a condition on two values.
macro_rules! compare {
    (|$a:ident, $b:ident| $e:expr) => {{
        fn row(a: &$crate::row::Row, b: &$crate::row::Row) -> u32 {
            let mut mask = 0;
            for i in 0..$crate::row::WARP {
                let ($a, $b) = (a[i], b[i]);
                mask |= u32::from($e) << i;
            }
            mask
        }
        row as $crate::row::Compare
    }};
}

pub(crate) use {binary, compare, ternary, unary};
