//! What is known about layers that schedules of several cores do not state.

use irc_npu::enums::DataSign;
use std::collections::BTreeMap;

/// Layers, by name. Properties of others are inferred from what their workloads read.
pub type KnownLayers = BTreeMap<String, KnownLayer>;

/// The windows, groups and numbers of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownLayer {
    /// Rows and columns of the window.
    pub kernel: [i64; 2],
    /// Strides of rows and columns.
    pub stride: [i64; 2],
    /// Padding before the first row and column.
    pub padding: [i64; 2],
    /// Groups of channels with filters of their own.
    pub groups: i64,
    /// Its arithmetic; without it, constants are placeholders, and values are not those of a model.
    pub numbers: Option<Numbers>,
}

/// The arithmetic of a layer whose operands and result are bytes: `round(factor f) + zero`, saturated, where `f`
/// is what [`Arithmetic`] computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers {
    /// The sign of the bytes of operands.
    pub input: DataSign,
    /// The sign of the bytes of the result.
    pub output: DataSign,
    /// What is computed before quantisation.
    pub arithmetic: Arithmetic,
    /// `factor`.
    pub factor: f32,
    /// `zero`.
    pub zero: i32,
    /// The result of [`Function::Table`] for each byte, which is then not quantised.
    pub table: Option<[u8; 256]>,
}

/// What a layer computes before its result is quantised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arithmetic {
    /// `scale (sum + offset) + bias`, with the constants of the weights of each output channel.
    Convolution {
        /// The value of elements outside of the input.
        outside: i32,
        /// Whether negative values become 0.
        relu: bool,
    },
    /// A function of `k x + b` of an operand `x`.
    Vector {
        /// The function.
        function: Function,
        /// `k` and `b` of the first operand.
        first: (f32, f32),
        /// Those of the second operand of a sum.
        second: (f32, f32),
    },
}

/// A function of the vector processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The only operand; in layers with windows the maximum of each.
    Same,
    /// The byte of a table for each byte of the only operand.
    Table,
    /// The sum of a window.
    WindowSum,
    /// The sum of a window, divided by the number of its elements that are in the operand.
    WindowMean,
    /// The product of two operands, `(k x + b) (l y + c)`, or of an operand and one number for each channel.
    Product {
        /// Whether negative products become 0.
        relu: bool,
    },
    /// The sum of two operands: `k x + (b + (l y + c))`, where `x` is operand `last`.
    Sum {
        /// Whether negative sums become 0.
        relu: bool,
        /// The operand whose product is added last, 0 or 1.
        last: usize,
    },
}
