//! Layers: their operations, and the parts of operands that a part of the result needs.

use crate::shape::{Region, Shape, Span};

/// A window that moves over rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows and columns of the window.
    pub kernel: [u64; 2],
    /// Strides of rows and columns.
    pub stride: [u64; 2],
}

impl Window {
    /// A window of one element with stride 1.
    pub const POINT: Self = Self::square(1, 1);

    /// A square window with the same stride in both directions.
    pub const fn square(kernel: u64, stride: u64) -> Self {
        Self { kernel: [kernel; 2], stride: [stride; 2] }
    }

    /// Input indices that `count` windows cover along an axis, padding included.
    fn reach(self, axis: usize, count: u64) -> u64 {
        (count - 1) * self.stride[axis] + self.kernel[axis]
    }

    /// Input indices that the windows `span` read of `extent`, with `padding` before the first; the last one, if they are in
    /// padding only.
    fn input(self, axis: usize, span: Span, padding: u64, extent: u64) -> Span {
        let from = (span.from * self.stride[axis]).saturating_sub(padding).min(extent - 1);
        let to = (span.to - 1) * self.stride[axis] + self.kernel[axis] - padding;
        Span { from, to: to.min(extent) }
    }
}

/// An axis of a feature map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Channels.
    Channels,
    /// Rows.
    Rows,
    /// Columns.
    Columns,
}

/// The operation of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A convolution; a fully connected layer has a window as large as the input, a matrix product
    /// has one column and a window of one element.
    Conv {
        /// Input channels.
        channels: u64,
        /// The window.
        window: Window,
    },
    /// A grouped convolution; its weights may be activations.
    GroupedConv {
        /// Input channels of all groups.
        channels: u64,
        /// The window.
        window: Window,
        /// Groups; a divisor of input and output channels.
        groups: u64,
    },
    /// Pooling of each channel.
    Pool(Window),
    /// An element-wise function of several operands, which are inputs concatenated along channels.
    Eltwise {
        /// Number of operands.
        operands: u64,
    },
    /// A function of each element.
    Pointwise,
    /// A transposition: axis `d` of the result is axis `order[d]` of the input.
    Transpose {
        /// Axes of the input, in the order of the result's.
        order: [Axis; 3],
    },
}

/// A layer: a name, an operation and the shape of the result of one image.
///
/// A layer is validated when it is added to a network; its methods are meaningful only for valid
/// layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name, unique in its network.
    pub name: String,
    /// The operation.
    pub op: Op,
    /// Shape of the result.
    pub output: Shape,
}

impl Layer {
    /// A layer.
    pub fn new(name: impl Into<String>, op: Op, output: Shape) -> Self {
        Self { name: name.into(), op, output }
    }

    /// A convolution from `channels` to the channels of `output`.
    pub fn conv(name: impl Into<String>, channels: u64, output: Shape, window: Window) -> Self {
        Self::new(name, Op::Conv { channels, window }, output)
    }

    /// A layer that connects every element of `input` to every one of `outputs`.
    pub fn fully_connected(name: impl Into<String>, input: Shape, outputs: u64) -> Self {
        let window = Window { kernel: [input.rows, input.columns], stride: [1, 1] };
        Self::conv(name, input.channels, Shape::new(outputs, 1, 1), window)
    }

    /// The shape of the input that the result needs, padding included.
    pub fn needs(&self) -> Shape {
        let Shape { channels, rows, columns } = self.output;
        let through =
            |of, window: Window| Shape::new(of, window.reach(0, rows), window.reach(1, columns));
        match &self.op {
            Op::Conv { channels, window } | Op::GroupedConv { channels, window, .. } => {
                through(*channels, *window)
            }
            Op::Pool(window) => through(channels, *window),
            Op::Eltwise { operands } => Shape::new(channels * operands, rows, columns),
            Op::Pointwise => self.output,
            Op::Transpose { order } => transposed(*order, [channels, rows, columns]).into(),
        }
    }

    /// The window; one element for operations without one.
    pub fn window(&self) -> Window {
        match self.op {
            Op::Conv { window, .. } | Op::GroupedConv { window, .. } | Op::Pool(window) => window,
            _ => Window::POINT,
        }
    }

    /// Groups of channels with weights of their own.
    pub fn groups(&self) -> u64 {
        match self.op {
            Op::GroupedConv { groups, .. } => groups,
            _ => 1,
        }
    }

    /// Shape of the weights: output channels, input channels per group, elements of the window.
    pub fn weights(&self) -> Option<Shape> {
        let [rows, columns] = self.window().kernel;
        let of = |channels| Some(Shape::new(self.output.channels, channels, rows * columns));
        match self.op {
            Op::Conv { channels, .. } => of(channels),
            Op::GroupedConv { channels, groups, .. } => of(channels / groups),
            _ => None,
        }
    }

    /// Whether a channel of the result needs only some channels of the input.
    pub fn splits_channels(&self) -> bool {
        !matches!(self.op, Op::Conv { .. })
    }

    /// Multiply-accumulates per image; for layers without weights, operations of vector units.
    pub fn operations(&self) -> u64 {
        let [rows, columns] = self.window().kernel;
        let each = match self.op {
            Op::Conv { channels, .. } => channels,
            Op::GroupedConv { channels, groups, .. } => channels / groups,
            Op::Eltwise { operands } => operands,
            Op::Pool(_) | Op::Pointwise | Op::Transpose { .. } => 1,
        };
        each * rows * columns * self.output.volume()
    }

    /// The part of the input that a part of the result needs.
    ///
    /// `input` is the shape without padding; `padding` is the number of elements before the
    /// first row and column. For an element-wise layer, the part of each operand.
    pub fn input_region(&self, part: Region, input: Shape, padding: [u64; 2]) -> Region {
        let moved = |channels, window: Window| Region {
            channels,
            images: part.images,
            rows: window.input(0, part.rows, padding[0], input.rows),
            columns: window.input(1, part.columns, padding[1], input.columns),
        };
        match self.op {
            Op::Conv { channels, window } => moved(Span::upto(channels), window),
            Op::GroupedConv { channels, window, groups } => {
                let of_results = self.output.channels / groups;
                let first = part.channels.from / of_results;
                let last = part.channels.to.div_ceil(of_results);
                let size = channels / groups;
                moved(Span { from: first * size, to: last * size }, window)
            }
            Op::Pool(window) => moved(part.channels, window),
            Op::Eltwise { .. } | Op::Pointwise => part,
            Op::Transpose { order } => {
                let axes = [part.channels, part.rows, part.columns];
                let [channels, rows, columns] = transposed(order, axes);
                Region { channels, images: part.images, rows, columns }
            }
        }
    }

    /// The part of the weights that a part of the result needs; `None` without weights.
    pub fn weight_region(&self, part: Region) -> Option<Region> {
        let weights = self.weights()?;
        let (rows, columns) = (Span::upto(weights.rows), Span::upto(weights.columns));
        Some(Region { rows, columns, ..part })
    }
}

/// Maps properties of the axes of the result to the axes of the input.
fn transposed<T: Copy>(order: [Axis; 3], result: [T; 3]) -> [T; 3] {
    let mut input = result;
    for (axis, of) in order.into_iter().zip(result) {
        input[axis as usize] = of;
    }
    input
}

impl From<[u64; 3]> for Shape {
    fn from([channels, rows, columns]: [u64; 3]) -> Self {
        Self { channels, rows, columns }
    }
}
