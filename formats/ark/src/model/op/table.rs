//! The kinds of op, one row each.

use std::fmt;

use super::{ArgKind, Argument, Elements, Exchange, Family, Lane, Row};
use super::{communicate, shapes};

/// Number of operations of an exponential, a root or a quotient of one element.
const FUNCTION: u32 = 8;

const MANY: usize = usize::MAX;

const FLAG: Argument = Argument::new("Flag", ArgKind::Uint32);
const PEERS: Argument = Argument::new("NPeers", ArgKind::Uint32);
const RANK: Argument = Argument::new("Rank", ArgKind::Int);
const AXIS: &[Argument] =
    &[Argument::new("Axis", ArgKind::Int), Argument::new("KeepDim", ArgKind::Bool)];
const SYNC: &[Argument] = &[Argument::new("PeerNum", ArgKind::Int), RANK];
const TRANSPOSED: &[Argument] = &[
    Argument::new("TransposeInput", ArgKind::Bool),
    Argument::new("TransposeOther", ArgKind::Bool),
];
const PERMUTATION: &[Argument] = &[Argument::new("Permutation", ArgKind::Dims)];
const VALUE: &[Argument] = &[Argument::new("Value", ArgKind::Float)];
const FACTOR: &[Argument] =
    &[Argument { name: "Factor", kind: ArgKind::Float, old_name: Some("Value") }];

macro_rules! ops {
    ($($kind:ident $summary:literal => $($fact:ident($($value:expr),*)).+;)*) => {
        /// All kinds of op.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum OpKind { $(#[doc = $summary] $kind),* }

        impl OpKind {
            /// All kinds, in alphabetical order.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$kind),*];

            /// The kind with that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $(stringify!($kind) => Some(OpKind::$kind),)* _ => None }
            }
        }

        /// The rows, in the order of [`OpKind::ALL`].
        static ROWS: [Row; OpKind::ALL.len()] = [$(
            Row::new(OpKind::$kind, stringify!($kind), $summary)$(.$fact($($value),*))+
        ),*];
    };
}

ops! {
    Add "elementwise sum with NumPy broadcasting" => binary();
    Cast "conversion of the element type" =>
        unary().rule(shapes::cast).elements(Elements::Any).lane(Lane::Pairs).costs(0, 0);
    Copy "copy, possibly broadcasting" => unary().elements(Elements::Any).costs(0, 0);
    DeviceSync "waits for every rank" =>
        family(Family::Communication(Exchange::Signals), 1).args(SYNC);
    Div "elementwise quotient with NumPy broadcasting" => binary().costs(FUNCTION, 1);
    Embedding "rows of a table by `INT32` index, where negative ones count from the end" =>
        family(Family::Lookup, 2).rule(shapes::embedding);
    Exp "elementwise exponential" => unary().elements(Elements::Floats).costs(FUNCTION, 1);
    Gelu "elementwise GELU, tanh approximation" =>
        unary().elements(Elements::Floats).costs(FUNCTION, 1);
    Matmul "matrix product, batched over leading dimensions" =>
        family(Family::Product, 2).args(TRANSPOSED).elements(Elements::Floats)
            .rule(shapes::matmul);
    Mul "elementwise product with NumPy broadcasting" => binary();
    Noop "keeps the buffer of its operand allocated" =>
        family(Family::Idle, 1).writes(0..=0).results(0..=0);
    Recv "waits for what a peer sends into a local tensor" =>
        family(Family::Communication(Exchange::Signals), 1).rule(communicate::receive);
    RecvPacket "receives packets into a local tensor" =>
        family(Family::Communication(Exchange::Packets), 2).args(&[FLAG])
            .rule(communicate::receive_packets);
    RecvReduceSend "reduces what peers wrote, and sends the sum to them" =>
        family(Family::Communication(Exchange::Data), 2).writes(1..=MANY).args(&[PEERS, RANK])
            .rule(communicate::reduce);
    RecvReduceSendPacket "as `RecvReduceSend`, with packets" =>
        family(Family::Communication(Exchange::Packets), 2).writes(1..=MANY)
            .args(&[FLAG, PEERS, RANK]).rule(communicate::reduce_packets);
    ReduceMax "maximum along one axis" => reduction().args(AXIS);
    ReduceMean "mean along one axis" => reduction().args(AXIS);
    ReduceSum "sum along one axis" => reduction().args(AXIS);
    Relu "elementwise max(x, 0)" => unary();
    Reshape "registered by ARK, and never written by it" => view();
    Rope "rotary embedding: adjacent pairs, by interleaved (cos, sin)" =>
        binary().rule(shapes::rope).elements(Elements::Floats).lane(Lane::CoupledPairs)
            .costs(4, 3);
    Rsqrt "elementwise 1 / sqrt(x)" => unary().elements(Elements::Floats).costs(FUNCTION, 1);
    ScalarAdd "adds a constant" => unary().args(FACTOR);
    ScalarAssign "fills with a constant" => family(Family::Elementwise, 0).args(VALUE).costs(1, 0);
    ScalarMul "multiplies by a constant" => unary().args(FACTOR);
    Send "sends a tensor to a buffer of a peer" =>
        family(Family::Communication(Exchange::Data), 1).rule(communicate::send);
    SendDone "waits until a `Send` has left" =>
        family(Family::Communication(Exchange::Signals), 1).writes(0..=0);
    SendPacket "sends a tensor as packets" =>
        family(Family::Communication(Exchange::Packets), 1).args(&[FLAG])
            .rule(communicate::send_packets);
    Sigmoid "elementwise logistic function" =>
        unary().elements(Elements::Floats).costs(FUNCTION, 1);
    Sqrt "elementwise square root" => unary().elements(Elements::Floats).costs(FUNCTION, 1);
    Sub "elementwise difference with NumPy broadcasting" => binary();
    Tensor "a tensor, or a view of one" => view();
    Transpose "permutation of dimensions: dimension `i` is `Permutation[i]` of the operand" =>
        family(Family::Transposition, 1).args(PERMUTATION).rule(shapes::transposition)
            .costs(1, 0);
}

impl OpKind {
    /// The definition of the kind.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Name in a file.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its role in planning and checking of tasks.
    pub fn family(self) -> Family {
        self.row().family
    }

    /// Whether each element of its result depends only on those of its operands at the same position.
    pub fn is_elementwise(self) -> bool {
        self.family() == Family::Elementwise
    }

    /// Whether it is a reduction along one axis.
    pub fn is_reduce(self) -> bool {
        self.family() == Family::Reduction
    }

    /// Whether it moves data between ranks or waits for them.
    pub fn is_communication(self) -> bool {
        matches!(self.family(), Family::Communication(_))
    }

    /// Whether it exchanges packets with other ranks.
    pub fn uses_packets(self) -> bool {
        self.family() == Family::Communication(Exchange::Packets)
    }

    /// Whether it exchanges only signals with other ranks.
    pub fn only_signals(self) -> bool {
        self.family() == Family::Communication(Exchange::Signals)
    }

    /// Whether it describes memory without computing.
    pub fn is_virtual(self) -> bool {
        self.family() == Family::View
    }

    /// The known name most similar to `name`, for a hint.
    pub fn nearest(name: &str) -> Option<OpKind> {
        let names = OpKind::ALL.iter().map(|kind| kind.name());
        OpKind::from_name(irc_diag::nearest(name, names)?)
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_diag::{Sink, Source};

    use crate::model::{Model, Node, Options, parse, validate, write};

    #[test]
    fn kinds_are_sorted_and_arguments_too() {
        assert!(OpKind::ALL.iter().map(|kind| kind.name()).is_sorted());
        for kind in OpKind::ALL {
            assert_eq!(kind.row().kind, *kind);
            assert!(kind.row().args.iter().map(|argument| argument.name).is_sorted(), "{kind}");
        }
    }

    #[test]
    fn an_op_of_every_row_is_valid_written_and_read_back() {
        for kind in OpKind::ALL {
            let node = Node { id: 0, producers: vec![], consumers: vec![], op: kind.example() };
            let model = Model { rank: 0, world_size: 2, nodes: vec![node] };
            assert_eq!(validate(&model), [], "{kind}");
            let mut sink = Sink::new();
            let source = Source::new("example.json", write(&model));
            let read = parse(&source, &Options::default(), &mut sink);
            assert_eq!(sink.into_diagnostics(), [], "{kind}");
            assert_eq!(read.map(|document| document.model), Some(model), "{kind}");
        }
    }

    #[test]
    fn a_misspelt_kind_has_a_suggestion() {
        assert_eq!(OpKind::nearest("MatMull"), Some(OpKind::Matmul));
        assert_eq!(OpKind::nearest("Convolution"), None);
    }
}
