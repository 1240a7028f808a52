//! Small quantised networks with blocks that do not only multiply, add and choose: concatenations of different scales,
//! padded means, functions of bytes, factors of channels, channels in another order.

use super::nets::{Map, Net};
use irc_common_format::model::{Attribute, AttributeValue, Module};

fn ints(name: &str, values: &[i64]) -> Attribute {
    Attribute::new(name, AttributeValue::Ints(values.to_vec()))
}

impl Net {
    /// An operator on dequantised maps and constants, whose result has a scale, a zero point and a shape.
    fn apply(
        &mut self,
        op: &str,
        maps: &[&Map],
        more: &[&str],
        of: Vec<Attribute>,
        to: &Map,
    ) -> Map {
        let mut inputs: Vec<String> = maps.iter().map(|map| self.dequantise(map)).collect();
        inputs.extend(more.iter().map(|name| (*name).to_owned()));
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let float = self.node(op, &inputs, of);
        let name = self.quantise(&float, to);
        Map { name, ..to.clone() }
    }

    /// A function of each element, with results from 0 to 1, from -1 to 1, or like the operand.
    fn function(&mut self, op: &str, x: &Map) -> Map {
        let (scale, zero) = match op {
            "Sigmoid" => (1.0 / 255.0, self.lowest()),
            "Tanh" => (2.0 / 255.0, self.lowest() + 128),
            _ => (x.scale * 0.7, self.lowest() + 60),
        };
        self.apply(op, &[x], &[], vec![], &Map { scale, zero, ..x.clone() })
    }

    /// A tensor times its sigmoid.
    fn swish(&mut self, x: &Map) -> Map {
        let gate = self.function("Sigmoid", x);
        let to = Map { scale: x.scale * 0.6, zero: self.lowest() + 5, ..x.clone() };
        self.apply("Mul", &[x, &gate], &[], vec![], &to)
    }

    /// Means of all elements of channels, two products, and a factor of each channel.
    fn excite(&mut self, x: &Map) -> Map {
        let mean = Map { size: 1, scale: x.scale * 0.5, ..x.clone() };
        let mean = self.apply("GlobalAveragePool", &[x], &[], vec![], &mean);
        let inner = self.conv(&mean, x.channels / 2, [1, 1, 1], true);
        let outer = self.conv(&inner, x.channels, [1, 1, 1], false);
        let gate = self.function("Sigmoid", &outer);
        let to = Map { scale: x.scale * 0.8, ..x.clone() };
        self.apply("Mul", &[x, &gate], &[], vec![], &to)
    }

    /// Means of windows of three that begin one before the map.
    fn padded_mean(&mut self, x: &Map, with_pads: bool) -> Map {
        let of = vec![
            ints("kernel_shape", &[3; 2]),
            ints("strides", &[1; 2]),
            ints("pads", &[1; 4]),
            Attribute::new("count_include_pad", AttributeValue::Int(with_pads.into())),
        ];
        let to = Map { scale: x.scale * 0.8, ..x.clone() };
        self.apply("AveragePool", &[x], &[], of, &to)
    }

    /// A normalisation with constants of each channel, and a ReLU.
    fn normal(&mut self, x: &Map) -> Map {
        let operand = self.dequantise(x);
        let count = x.channels;
        let spread = x.scale * 60.0;
        let mut numbers = |from: f32, by: f32| {
            let values: Vec<f32> = (0..count).map(|_| from + by * self.number()).collect();
            self.constant(&[count], &values)
        };
        let constants =
            [numbers(1.0, 0.3), numbers(0.0, 0.3 * spread), numbers(0.0, 0.2), numbers(1.2, 0.4)];
        let [scale, shift, mean, variance] = constants.each_ref().map(String::as_str);
        let float =
            self.node("BatchNormalization", &[&operand, scale, shift, mean, variance], vec![]);
        let float = self.node("Relu", &[&float], vec![]);
        let to = Map { scale: x.scale * 0.9, zero: self.lowest(), ..x.clone() };
        let name = self.quantise(&float, &to);
        Map { name, ..to }
    }

    /// Channels with the first of each group first, as in ShuffleNet.
    fn shuffle(&mut self, x: &Map, groups: i64) -> Map {
        let Map { channels, size, .. } = *x;
        let operand = self.dequantise(x);
        let shape = [self.images(), groups, channels / groups, size, size];
        let shape = self.constant(&[5], &shape);
        let split = self.node("Reshape", &[&operand, &shape], vec![]);
        let turned = self.node("Transpose", &[&split], vec![ints("perm", &[0, 2, 1, 3, 4])]);
        let shape = self.constant(&[4], &[self.images(), channels, size, size]);
        let joined = self.node("Reshape", &[&turned, &shape], vec![]);
        let name = self.quantise(&joined, x);
        Map { name, ..x.clone() }
    }

    /// Some channels.
    fn part(&mut self, x: &Map, from: i64, end: i64) -> Map {
        let [first, last, axis] = [from, end, 1].map(|number| self.constant(&[1], &[number]));
        let to = Map { channels: end - from, ..x.clone() };
        self.apply("Slice", &[x], &[&first, &last, &axis], vec![], &to)
    }

    /// Zeros around rows and columns: above, to the left, below, to the right.
    fn pad(&mut self, x: &Map, [top, left, bottom, right]: [i64; 4]) -> Map {
        let pads = self.constant(&[8], &[0, 0, top, left, 0, 0, bottom, right]);
        assert_eq!(top + bottom, left + right, "maps are squares");
        let to = Map { size: x.size + top + bottom, ..x.clone() };
        self.apply("Pad", &[x], &[&pads], vec![], &to)
    }
}

/// Blocks whose input and results are concatenated, as in DenseNet; each has a scale of its own.
pub fn densenet(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let mut x = net.conv(&image, 8, [3, 2, 1], false);
    for block in 0..2 {
        for _ in 0..2 {
            let y = net.normal(&x);
            let y = net.conv(&y, 8, [1, 1, 1], true);
            let y = net.conv(&y, 4, [3, 1, 1], false);
            x = net.concat(&[x, y]);
        }
        if block == 0 {
            let y = net.normal(&x);
            let y = net.conv(&y, 10, [1, 1, 1], false);
            x = net.average_pool(&y, 2, 2);
        }
    }
    let x = net.normal(&x);
    net.classify(&x, 10)
}

/// Padded means beside convolutions, and sums and maxima of concatenations, as in Inception.
pub fn inception(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let x = net.conv(&image, 8, [3, 2, 1], true);
    let first = net.conv(&x, 6, [1, 1, 1], true);
    let mean = net.padded_mean(&x, false);
    let second = net.conv(&mean, 5, [1, 1, 1], true);
    let third = net.conv(&x, 5, [3, 1, 1], true);
    let third = net.padded_mean(&third, true);
    let all = net.concat(&[third.clone(), first, second]);
    let other = net.conv(&all, 16, [3, 1, 1], false);
    let sum = net.add(&all, &other, false);
    let both = net.concat(&[sum, third]);
    let x = net.max_pool(&both, 3, 2, 1);
    net.classify(&x, 10)
}

/// Channels in another order, half of them passed on, as in both versions of ShuffleNet.
pub fn shufflenet(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let mut x = net.conv(&image, 16, [3, 2, 1], true);
    let y = net.conv(&x, 16, [1, 1, 4], true);
    let y = net.shuffle(&y, 4);
    let y = net.conv(&y, 16, [3, 1, 16], false);
    x = net.add(&x, &y, true);
    for _ in 0..2 {
        let (left, right) = (net.part(&x, 0, 8), net.part(&x, 8, 16));
        let right = net.conv(&right, 8, [1, 1, 1], true);
        let right = net.conv(&right, 8, [3, 1, 8], true);
        let joined = net.concat(&[left, right]);
        x = net.shuffle(&joined, 2);
    }
    // The mean reads channels in another order.
    net.classify(&x, 10)
}

/// Functions of bytes and factors of channels, as in EfficientNet and MobileNetV3.
pub fn efficientnet(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let x = net.conv(&image, 8, [3, 2, 1], false);
    let x = net.swish(&x);
    let y = net.conv(&x, 16, [1, 1, 1], false);
    let y = net.function("HardSwish", &y);
    let y = net.conv(&y, 16, [3, 1, 16], true);
    let y = net.excite(&y);
    let y = net.conv(&y, 8, [1, 1, 1], false);
    let y = net.function("LeakyRelu", &y);
    let gate = net.function("Tanh", &y);
    let other = net.conv(&x, 8, [3, 1, 1], false);
    let to = Map { scale: other.scale * 0.9, ..other.clone() };
    let product = net.apply("Mul", &[&other, &gate], &[], vec![], &to);
    let x = net.add(&x, &product, false);
    let x = net.pad(&x, [1, 2, 2, 1]);
    let x = net.conv(&x, 12, [3, 2, 1], true);
    let x = net.pad(&x, [0, 0, 1, 1]);
    let x = net.max_pool(&x, 2, 2, 0);
    net.classify(&x, 10)
}

/// Sums of products of two results, as in attention, with zero points of 0: some heads, each with so many channels and
/// keys, at most 16.
pub fn attention(images: i64, [heads, depth, keys]: [i64; 3]) -> Module {
    let (mut net, image) = Net::new(images, 32, true);
    let x = net.conv(&image, heads * depth, [3, 2, 1], true);
    let rows = vec![ints("kernel_shape", &[17 - keys, 16])];
    let x = net.apply("MaxPool", &[&x], &[], rows, &x);
    let shape = net.constant(&[4], &[images, heads, depth, keys]);
    let [q, k, v] = [(); 3].map(|()| {
        let y = net.conv(&x, heads * depth, [1, 1, 1], false);
        let to = Map { zero: 0, ..y.clone() };
        let y = net.apply("LeakyRelu", &[&y], &[], vec![], &to);
        net.apply("Reshape", &[&y], &[&shape], vec![], &to)
    });
    let turn = || vec![ints("perm", &[0, 1, 3, 2])];
    let q = net.apply("Transpose", &[&q], &[], turn(), &q);
    let scale = |terms: i64| 30.0 * (terms as f32).sqrt();
    let scores = Map { scale: q.scale * k.scale * scale(depth), ..q.clone() };
    let scores = net.apply("MatMul", &[&q, &k], &[], vec![], &scores);
    let v = net.apply("Transpose", &[&v], &[], turn(), &v);
    let sums = Map { scale: scores.scale * v.scale * scale(keys), ..v.clone() };
    let sums = net.apply("MatMul", &[&scores, &v], &[], vec![], &sums);
    let sums = net.apply("Transpose", &[&sums], &[], turn(), &sums);
    net.end(&Map { channels: heads * depth * keys, size: 1, ..sums }, 10)
}

/// Means and maxima over rows and columns, and over one of them, with the axes as attributes.
pub fn reductions(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let x = net.conv(&image, 16, [3, 2, 1], false);
    let point = Map { size: 1, ..x.clone() };
    let to = Map { scale: x.scale * 0.35, zero: x.zero - 9, ..point.clone() };
    let mean = net.apply("ReduceMean", &[&x], &[], vec![ints("axes", &[2, 3])], &to);
    let most = net.apply("GlobalMaxPool", &[&x], &[], vec![], &point);
    let last = net.apply("ReduceMax", &[&x], &[], vec![ints("axes", &[-1, -2])], &point);
    let [mean, most, last] = [mean, most, last].map(|y| net.conv(&y, 16, [1, 1, 1], false));
    let gate = net.add(&mean, &most, false);
    let gate = net.add(&gate, &last, false);
    let gate = net.function("Sigmoid", &gate);
    let to = Map { scale: x.scale * 0.7, ..x.clone() };
    let y = net.apply("Mul", &[&x, &gate], &[], vec![], &to);
    let to = Map { scale: y.scale * 0.5, ..y.clone() };
    let columns = net.apply("ReduceMean", &[&y], &[], vec![ints("axes", &[3])], &to);
    // Of another scale than its operand.
    let to = Map { scale: columns.scale * 1.37, size: 1, ..columns.clone() };
    let of = || vec![ints("axes", &[-2, 3]), Attribute::new("keepdims", AttributeValue::Int(0))];
    let most = net.apply("ReduceMax", &[&columns], &[], of(), &to);
    net.end(&most, 10)
}

/// Means over channels, which are read and of which a function is.
pub fn channel_means(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let x = net.conv(&image, 16, [3, 2, 1], false);
    let to = Map { channels: 1, scale: x.scale * 0.3, zero: x.zero + 4, ..x.clone() };
    let mean = net.apply("ReduceMean", &[&x], &[], vec![ints("axes", &[1])], &to);
    let gate = net.function("Sigmoid", &mean);
    let [one, other] =
        [(&mean, 3), (&gate, 1)].map(|(y, kernel)| net.conv(y, 8, [kernel, 1, 1], false));
    let both = net.concat(&[one, other]);
    let to = Map { channels: 1, scale: both.scale * 0.3, ..both.clone() };
    let of = vec![ints("axes", &[-3])];
    let last = net.apply("ReduceMean", &[&both], &[], of, &to);
    let last = net.conv(&last, 8, [3, 2, 1], true);
    net.classify(&last, 10)
}

/// A reduction of a convolution's result.
pub fn reduced(op: &str, axes: &[i64]) -> Module {
    let (mut net, image) = Net::new(1, 32, false);
    let x = net.conv(&image, 8, [3, 2, 1], false);
    let y = net.apply(op, &[&x], &[], vec![ints("axes", axes)], &x);
    net.values(&y)
}

/// A convolution of 1 by 1 whose weights are of `u8`, with a zero point far from 128.
pub fn wide_weights() -> Module {
    let (mut net, image) = Net::new(1, 32, false);
    let scale = net.constant(&[], &[image.scale]);
    let own = net.constant(&[], &[117_u8]);
    let weights: Vec<u8> = (0..24).map(|number| number * 11).collect();
    let w = net.constant(&[8, 3, 1, 1], &weights);
    let (w_scale, w_zero) = (net.constant(&[], &[0.01_f32]), net.constant(&[], &[7_u8]));
    let inputs = [&image.name, &scale, &own, &w, &w_scale, &w_zero, &scale, &own];
    let name = net.node("QLinearConv", &inputs.map(String::as_str), vec![]);
    net.values(&Map { name, channels: 8, ..image })
}

/// A function of each element of a map and of its channels.
pub fn over_channels(op: &str, last: &str) -> Module {
    let (mut net, image) = Net::new(1, 32, false);
    let x = net.conv(&image, 8, [3, 2, 1], false);
    let float = net.dequantise(&x);
    let over = net.node(op, &[&float], vec![ints("axes", &[1])]);
    let float = net.node(last, &[&float, &over], vec![]);
    let name = net.quantise(&float, &x);
    net.values(&Map { name, ..x })
}
