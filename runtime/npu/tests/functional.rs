//! Small programs compute the same bytes as a direct evaluation.

use half::f16;
use irc_diag::{Sink, Source};
use irc_npu::Program;
use irc_npu::listing::{self, Limits};
use irc_npu_sim::functional::{self, Memory};

const SMALL: &str = include_str!("../../../formats/npu/tests/data/small.txt");
const TWO_CORES: &str = include_str!("../../../formats/npu/tests/data/two_cores.txt");

fn program(text: &str) -> Program {
    let source = Source::new("small.txt", text);
    let listing = listing::parse(&source, Limits::default(), &mut Sink::new());
    listing.expect("a right listing").program
}

/// A deterministic pseudo-random generator.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }

    fn weight(&mut self) -> i8 {
        (self.next() % 255) as i8
    }

    fn value(&mut self) -> f32 {
        (self.next() % 2000) as f32 / 150.0 - 6.0
    }
}

/// A tensor `[C, H, W]`.
#[derive(Clone)]
struct Tensor<T> {
    shape: [usize; 3],
    values: Vec<T>,
}

impl<T: Copy> Tensor<T> {
    fn new(shape: [usize; 3], mut value: impl FnMut(usize, usize, usize) -> T) -> Self {
        let [c, h, w] = shape;
        let mut values = vec![];
        for c in 0..c {
            for h in 0..h {
                for w in 0..w {
                    values.push(value(c, h, w));
                }
            }
        }
        Self { shape, values }
    }

    fn at(&self, c: usize, h: i64, w: i64) -> Option<T> {
        let [_, height, width] = self.shape;
        let inside = (0..height as i64).contains(&h) && (0..width as i64).contains(&w);
        inside.then(|| self.values[(c * height + h as usize) * width + w as usize])
    }
}

fn quantise(value: f32, k: f32, b: f32) -> i8 {
    (value * k + b).round_ties_even().clamp(-128.0, 127.0) as i8
}

/// Weights `[K, C, R, S]` with scale and bias.
struct Weights {
    c: usize,
    r: usize,
    values: Vec<i8>,
    scale: Vec<f32>,
    bias: Vec<f32>,
}

impl Weights {
    fn new(k: usize, c: usize, r: usize, noise: &mut Noise) -> Self {
        let values = (0..k * c * r * r).map(|_| noise.weight()).collect();
        let scale = (0..k).map(|_| 0.0001 + (noise.next() % 100) as f32 * 1e-5).collect();
        let bias = (0..k).map(|_| noise.value() / 2.0).collect();
        Self { c, r, values, scale, bias }
    }

    fn at(&self, k: usize, c: usize, r: usize, s: usize) -> i8 {
        self.values[((k * self.c + c) * self.r + r) * self.r + s]
    }

    /// The bytes in DRAM order: `[R, S, C]` padded, scale, bias.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![];
        for k in 0..self.scale.len() {
            for (r, s) in (0..self.r).flat_map(|r| (0..self.r).map(move |s| (r, s))) {
                for c in 0..self.c.next_multiple_of(8) {
                    let weight = if c < self.c { self.at(k, c, r, s) } else { 0 };
                    bytes.push(weight.cast_unsigned());
                }
            }
            bytes.extend(self.scale[k].to_le_bytes());
            bytes.extend(self.bias[k].to_le_bytes());
            bytes.extend([0; 24]);
        }
        bytes
    }

    fn convolve(
        &self,
        input: &Tensor<i8>,
        padding: (i64, i8),
        relu: bool,
        (qk, qb): (f32, f32),
    ) -> Tensor<i8> {
        let [_, height, width] = input.shape;
        Tensor::new([self.scale.len(), height, width], |k, h, w| {
            let mut sum = 0i32;
            for c in 0..self.c {
                for r in 0..self.r {
                    for s in 0..self.r {
                        let (y, x) = (h + r, w + s);
                        let pixel = input.at(c, y as i64 - padding.0, x as i64 - padding.0);
                        let pixel = pixel.unwrap_or(padding.1);
                        sum += i32::from(pixel) * i32::from(self.at(k, c, r, s));
                    }
                }
            }
            let value = sum as f32 * self.scale[k] + self.bias[k];
            quantise(if relu { value.max(0.0) } else { value }, qk, qb)
        })
    }
}

fn max_pool(input: &Tensor<i8>, dequantise: (f32, f32), (qk, qb): (f32, f32)) -> Tensor<i8> {
    let [c, height, width] = input.shape;
    Tensor::new([c, height / 2, width / 2], |c, h, w| {
        let window = (0..3).flat_map(|r| (0..3).map(move |s| (r, s)));
        let pixels =
            window.filter_map(|(r, s)| input.at(c, 2 * h as i64 + r - 1, 2 * w as i64 + s - 1));
        let greatest = pixels.max().expect("a window meets the input");
        quantise(f32::from(greatest) * dequantise.0 + dequantise.1, qk, qb)
    })
}

/// The input in DRAM order, and quantised.
fn input(shape: [usize; 3], noise: &mut Noise) -> (Vec<u8>, Tensor<i8>) {
    let tensor = Tensor::new(shape, |_, _, _| f16::from_f32(noise.value()));
    (
        dense(&tensor, |value| value.to_le_bytes().to_vec()),
        Tensor {
            shape,
            values: tensor
                .values
                .iter()
                .map(|value| quantise(value.to_f32(), 16.5, -14.0))
                .collect(),
        },
    )
}

/// `[H, W, C]`
fn dense<T: Copy>(tensor: &Tensor<T>, bytes: impl Fn(T) -> Vec<u8>) -> Vec<u8> {
    let [c, h, w] = tensor.shape;
    let places = (0..h).flat_map(|h| (0..w).flat_map(move |w| (0..c).map(move |c| (c, h, w))));
    let value = |(c, h, w)| tensor.at(c, h as i64, w as i64).expect("a place inside");
    places.flat_map(|place| bytes(value(place))).collect()
}

#[test]
fn a_network_of_every_engine() {
    let mut noise = Noise(7);
    let (image, quantised) = input([3, 8, 8], &mut noise);
    let (first, second) = (Weights::new(16, 3, 3, &mut noise), Weights::new(32, 16, 1, &mut noise));
    let mut memory = Memory::new(1, 8 << 20);
    memory.dram.insert(0, image);
    memory.dram.insert(1, [first.bytes(), second.bytes()].concat());
    functional::run(&program(SMALL), &mut memory).expect("a run");

    let hidden = first.convolve(&quantised, (1, -14), true, (21.25, -128.0));
    let pooled = max_pool(&hidden, (0.047058824, 6.0235294), (21.25, -128.0));
    let last = second.convolve(&pooled, (0, -128), false, (12.5, 3.0));
    let real = |value: i8| f32::from(value) * 0.08 - 0.24;
    let expected = dense(&last, |value| {
        vec![quantise((real(value) + real(value)).max(0.0), 6.75, -7.0).cast_unsigned()]
    });
    assert!(expected.iter().any(|byte| *byte != expected[0]), "not all the same");
    assert_eq!(memory.dram[&0][512..], expected);
}

#[test]
fn what_a_core_sends_another_receives() {
    let (image, quantised) = input([8, 4, 4], &mut Noise(3));
    let mut memory = Memory::new(2, 8 << 20);
    memory.dram.insert(0, image);
    functional::run(&program(TWO_CORES), &mut memory).expect("a run");
    let expected = dense(&quantised, |value| vec![value.cast_unsigned()]);
    assert_eq!(memory.dram[&0][512..640], expected);
    assert_eq!(memory.dram[&0][1024..], expected);
}

#[test]
fn bytes_that_are_not_there_are_a_fault() {
    let mut memory = Memory::new(1, 8 << 20);
    let fault = functional::run(&program(SMALL), &mut memory).expect_err("no input");
    let expected = "instruction 4 of core 0: 6 bytes at 0 of DRAM base 0 are not there";
    assert_eq!(fault.to_string(), expected);
}

#[test]
fn what_is_not_modelled_is_a_fault() {
    let text = SMALL.replace("'Order': 0", "'Order': 2");
    let fault =
        functional::run(&program(&text), &mut Memory::new(1, 8 << 20)).expect_err("a fault");
    assert!(fault.to_string().contains("Order is neither 0 nor 1"), "{fault}");
}
