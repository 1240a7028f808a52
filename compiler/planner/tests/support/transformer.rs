//! Layers of a transformer's encoder and decoder, as ARK's example writes them.
use super::llama::Builder;
use irc_ark_format::model::{Arg, DataType, Float, Model, OpKind, Tensor};

const SEQUENCE: i64 = 512;
const WIDTH: i64 = 512;
const HEADS: i64 = 8;
const DEPTH: i64 = 256;
const INNER: i64 = 2048;

fn input(builder: &mut Builder, shape: &[i64]) -> Tensor {
    builder.tensor(DataType::Fp16, shape)
}

/// A product with weights of its own.
fn linear(builder: &mut Builder, x: &Tensor, [from, to]: [i64; 2]) -> Tensor {
    let weight = input(builder, &[from, to]);
    builder.matmul(x, &weight, &[1, SEQUENCE, to], false)
}

fn scalar(builder: &mut Builder, kind: OpKind, x: &Tensor, factor: f32) -> Tensor {
    let output = input(builder, &x.shape);
    builder.op(kind, &[x], output, &[("Factor", Arg::Float(Float(factor)))])
}

fn norm(builder: &mut Builder, x: &Tensor) -> Tensor {
    let mean = builder.reduce(OpKind::ReduceMean, x);
    let less = builder.like(OpKind::Sub, &[x, &mean]);
    let square = builder.like(OpKind::Mul, &[&less, &less]);
    let variance = builder.reduce(OpKind::ReduceMean, &square);
    let variance = scalar(builder, OpKind::ScalarAdd, &variance, 1e-6);
    let root = builder.like(OpKind::Rsqrt, &[&variance]);
    builder.like(OpKind::Mul, &[&less, &root])
}

/// Attention of `x` to `memory`, and the norm of its sum with `x`.
fn attention(builder: &mut Builder, x: &Tensor, memory: &Tensor) -> Tensor {
    let split = [1, SEQUENCE, HEADS, DEPTH];
    let [q, k, v] = [x, memory, memory].map(|source| {
        let made = linear(builder, source, [WIDTH, HEADS * DEPTH]);
        let view = builder.view(&made, &split);
        builder.transpose(&view, &[0, 2, 1, 3])
    });
    let k = builder.transpose(&k, &[0, 1, 3, 2]);
    let square = [1, HEADS, SEQUENCE, SEQUENCE];
    let mask = input(builder, &square);
    let scores = builder.matmul(&q, &k, &square, false);
    let scores = scalar(builder, OpKind::ScalarMul, &scores, 0.0625);
    let scores = builder.like(OpKind::Add, &[&scores, &mask]);
    let weights = builder.softmax(&scores);
    let mixed = builder.matmul(&weights, &v, &[1, HEADS, SEQUENCE, DEPTH], false);
    let mixed = builder.transpose(&mixed, &[0, 2, 1, 3]);
    let mixed = builder.view(&mixed, &[1, SEQUENCE, HEADS * DEPTH]);
    let mixed = linear(builder, &mixed, [HEADS * DEPTH, WIDTH]);
    let sum = builder.like(OpKind::Add, &[&mixed, x]);
    norm(builder, &sum)
}

fn feed_forward(builder: &mut Builder, x: &Tensor) -> Tensor {
    let raised = linear(builder, x, [WIDTH, INNER]);
    let raised = builder.like(OpKind::Relu, &[&raised]);
    let made = linear(builder, &raised, [INNER, WIDTH]);
    let sum = builder.like(OpKind::Add, &[&made, x]);
    norm(builder, &sum)
}

/// A layer of the encoder.
pub fn encoder() -> Model {
    let mut builder = Builder::default();
    let x = input(&mut builder, &[1, SEQUENCE, WIDTH]);
    let x = attention(&mut builder, &x, &x);
    feed_forward(&mut builder, &x);
    builder.model()
}

/// A layer of the decoder.
pub fn decoder() -> Model {
    let mut builder = Builder::default();
    let x = input(&mut builder, &[1, SEQUENCE, WIDTH]);
    let memory = input(&mut builder, &[1, SEQUENCE, WIDTH]);
    let x = attention(&mut builder, &x, &x);
    let x = attention(&mut builder, &x, &memory);
    feed_forward(&mut builder, &x);
    builder.model()
}
