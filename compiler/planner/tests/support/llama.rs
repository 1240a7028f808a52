//! Layers of Llama, as ARK's example writes them.
use irc_ark_format::model::{Arg, Buffer, DataType, Float, Model, Node, Op, OpKind, Tensor};
use std::collections::BTreeMap;

/// Sizes of a model.
#[derive(Clone, Copy)]
pub struct Llama {
    pub hidden: i64,
    pub heads: i64,
    pub inner: i64,
    pub sequence: i64,
    pub layers: usize,
}

/// The 7B model at a sequence of 512.
pub const SEVEN: Llama = Llama { hidden: 4096, heads: 32, inner: 11_008, sequence: 512, layers: 1 };

/// The 13B model at a sequence of 2048.
pub const THIRTEEN: Llama =
    Llama { hidden: 5120, heads: 40, inner: 13_824, sequence: 2048, layers: 1 };

#[derive(Default)]
pub(super) struct Builder {
    ops: Vec<Op>,
    tensors: u64,
    buffers: u64,
}

impl Builder {
    pub(super) fn tensor(&mut self, dtype: DataType, shape: &[i64]) -> Tensor {
        self.buffers += 1;
        self.tensors += 1;
        Tensor::dense(self.tensors, dtype, shape, Buffer::local(self.buffers))
    }

    /// The same memory under another id and shape.
    pub(super) fn view(&mut self, tensor: &Tensor, shape: &[i64]) -> Tensor {
        self.tensors += 1;
        Tensor::dense(self.tensors, tensor.dtype, shape, tensor.buffer.clone())
    }

    pub(super) fn op(
        &mut self,
        kind: OpKind,
        reads: &[&Tensor],
        output: Tensor,
        args: &[(&str, Arg)],
    ) -> Tensor {
        self.tensors += 1;
        let result = Tensor { id: self.tensors, ..output.clone() };
        let args = args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone()));
        self.ops.push(Op {
            kind,
            name: String::new(),
            is_virtual: false,
            reads: reads.iter().map(|tensor| (*tensor).clone()).collect(),
            writes: vec![output],
            results: vec![result.clone()],
            args: args.collect::<BTreeMap<_, _>>(),
        });
        result
    }

    pub(super) fn like(&mut self, kind: OpKind, reads: &[&Tensor]) -> Tensor {
        let output = self.tensor(reads[0].dtype, &reads[0].shape.clone());
        self.op(kind, reads, output, &[])
    }

    fn cast(&mut self, input: &Tensor, dtype: DataType) -> Tensor {
        let output = self.tensor(dtype, &input.shape.clone());
        self.op(OpKind::Cast, &[input], output, &[])
    }

    pub(super) fn reduce(&mut self, kind: OpKind, input: &Tensor) -> Tensor {
        let mut shape = input.shape.clone();
        *shape.last_mut().expect("a dimension") = 1;
        let axis = Arg::Int(shape.len() as i32 - 1);
        let output = self.tensor(input.dtype, &shape);
        self.op(kind, &[input], output, &[("Axis", axis), ("KeepDim", Arg::Bool(true))])
    }

    pub(super) fn matmul(
        &mut self,
        a: &Tensor,
        b: &Tensor,
        shape: &[i64],
        transposed: bool,
    ) -> Tensor {
        let output = self.tensor(a.dtype, shape);
        let args =
            [("TransposeInput", Arg::Bool(false)), ("TransposeOther", Arg::Bool(transposed))];
        self.op(OpKind::Matmul, &[a, b], output, &args)
    }

    pub(super) fn transpose(&mut self, input: &Tensor, permutation: &[i64]) -> Tensor {
        let shape: Vec<i64> = permutation.iter().map(|dim| input.shape[*dim as usize]).collect();
        let output = self.tensor(input.dtype, &shape);
        let args = [("Permutation", Arg::Dims(permutation.to_vec()))];
        self.op(OpKind::Transpose, &[input], output, &args)
    }

    fn norm(&mut self, x: &Tensor, weight: &Tensor) -> Tensor {
        let x = self.cast(x, DataType::Fp32);
        let square = self.like(OpKind::Mul, &[&x, &x]);
        let mean = self.reduce(OpKind::ReduceMean, &square);
        let root = self.like(OpKind::Rsqrt, &[&mean]);
        let scaled = self.like(OpKind::Mul, &[&x, &root]);
        let output = Tensor { id: scaled.id, ..scaled.clone() };
        let weighted = self.op(OpKind::Mul, &[&scaled, weight], output, &[]);
        self.cast(&weighted, DataType::Fp16)
    }

    pub(super) fn softmax(&mut self, x: &Tensor) -> Tensor {
        let most = self.reduce(OpKind::ReduceMax, x);
        let less = self.like(OpKind::Sub, &[x, &most]);
        let power = self.like(OpKind::Exp, &[&less]);
        let sum = self.reduce(OpKind::ReduceSum, &power);
        self.like(OpKind::Div, &[&power, &sum])
    }

    /// The model of all that was added.
    pub(super) fn model(self) -> Model {
        let node = |(id, op)| Node { id: id as u64, producers: vec![], consumers: vec![], op };
        let nodes = self.ops.into_iter().enumerate().map(node).collect();
        Model { rank: 0, world_size: 1, nodes }
    }

    fn layer(&mut self, x: &Tensor, turns: &Tensor, mask: &Tensor, size: Llama) -> Tensor {
        let Llama { hidden, heads, inner, sequence, .. } = size;
        let depth = hidden / heads;
        let weight = |builder: &mut Self, n: i64, k: i64| builder.tensor(DataType::Fp16, &[n, k]);
        let flat = [1, sequence, hidden];
        let split = [1, sequence, heads, depth];
        let scale = self.tensor(DataType::Fp32, &[1, 1, hidden]);
        let normed = self.norm(x, &scale);
        let [q, k, v] = [(); 3].map(|()| {
            let weight = weight(self, hidden, hidden);
            let made = self.matmul(&normed, &weight, &flat, true);
            self.view(&made, &split)
        });
        let [q, k] = [q, k].map(|x| self.like(OpKind::Rope, &[&x, turns]));
        let q = self.transpose(&q, &[0, 2, 1, 3]);
        let v = self.transpose(&v, &[0, 2, 1, 3]);
        let k = self.transpose(&k, &[0, 2, 3, 1]);
        let scores = self.matmul(&q, &k, &[1, heads, sequence, sequence], false);
        let output = self.tensor(DataType::Fp16, &[1, heads, sequence, sequence]);
        let factor = Arg::Float(Float(1.0 / (depth as f32).sqrt()));
        let scores = self.op(OpKind::ScalarMul, &[&scores], output, &[("Factor", factor)]);
        let scores = self.like(OpKind::Add, &[&scores, mask]);
        let weights = self.softmax(&scores);
        let mixed = self.matmul(&weights, &v, &[1, heads, sequence, depth], false);
        let mixed = self.transpose(&mixed, &[0, 2, 1, 3]);
        let mixed = self.view(&mixed, &flat);
        let out = weight(self, hidden, hidden);
        let mixed = self.matmul(&mixed, &out, &flat, true);
        let x = self.like(OpKind::Add, &[x, &mixed]);
        let scale = self.tensor(DataType::Fp32, &[1, 1, hidden]);
        let normed = self.norm(&x, &scale);
        let [gate, up, down] =
            [(inner, hidden), (inner, hidden), (hidden, inner)].map(|(n, k)| weight(self, n, k));
        let wide = [1, sequence, inner];
        let opened = self.matmul(&normed, &gate, &wide, true);
        let sigmoid = self.like(OpKind::Sigmoid, &[&opened]);
        let opened = self.like(OpKind::Mul, &[&opened, &sigmoid]);
        let raised = self.matmul(&normed, &up, &wide, true);
        let both = self.like(OpKind::Mul, &[&opened, &raised]);
        let made = self.matmul(&both, &down, &flat, true);
        self.like(OpKind::Add, &[&x, &made])
    }
}

/// A model of these sizes.
pub fn llama(size: Llama) -> Model {
    let mut builder = Builder::default();
    let mut x = builder.tensor(DataType::Fp16, &[1, size.sequence, size.hidden]);
    let turns = builder.tensor(DataType::Fp16, &[1, size.sequence, 1, size.hidden / size.heads]);
    let mask = builder.tensor(DataType::Fp16, &[1, 1, size.sequence, size.sequence]);
    for _ in 0..size.layers {
        x = builder.layer(&x, &turns, &mask, size);
    }
    builder.model()
}
