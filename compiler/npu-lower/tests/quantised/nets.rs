//! Small quantised networks with the structure of published ones, as ONNX: every activation is quantised and
//! dequantised, weights are constants.

use irc_common_format::model::{
    Attribute, AttributeValue, Dim, Graph, Module, Node, Opset, Schema, Tensor as FileTensor, Value,
};
use irc_onnx_ops::{ImportOptions, element_of, import};
use irc_tensor::{DType, Element, Tensor};
use irc_tl::Constant;

/// A network under construction.
pub struct Net {
    nodes: Vec<Node>,
    constants: Vec<FileTensor>,
    images: i64,
    signed: bool,
    random: u64,
    count: usize,
}

/// A value: the name of its quantised tensor, its shape without images, and its scale and zero point.
#[derive(Clone, Debug)]
pub struct Map {
    pub name: String,
    pub channels: i64,
    pub size: i64,
    pub scale: f32,
    pub zero: i64,
}

impl Net {
    /// A network of images `[images, 3, size, size]` in `f32`; activations are `i8` if `signed`.
    pub fn new(images: i64, size: i64, signed: bool) -> (Self, Map) {
        let mut net =
            Self { nodes: vec![], constants: vec![], images, signed, random: 1, count: 0 };
        let zero = if signed { -11 } else { 117 };
        let map = Map { name: String::new(), channels: 3, size, scale: 0.031, zero };
        let name = net.quantise("image", &map);
        (net, Map { name, ..map })
    }

    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 33
    }

    /// A number from -1 to 1.
    pub fn number(&mut self) -> f32 {
        self.next() as f32 / (1_u64 << 30) as f32 - 1.0
    }

    fn name(&mut self, of: &str) -> String {
        self.count += 1;
        format!("{of}_{}", self.count)
    }

    /// The name of a constant.
    pub fn constant<T: Element>(&mut self, shape: &[i64], values: &[T]) -> String {
        let name = self.name("c");
        let tensor = Tensor::from_values(shape, values).expect("as many values");
        let bytes = Constant::of(&tensor).bytes;
        self.constants.push(FileTensor::raw(&name, element_of(T::DTYPE), shape, bytes));
        name
    }

    fn zero(&mut self, zero: i64) -> String {
        match self.signed {
            true => self.constant(&[], &[zero as i8]),
            false => self.constant(&[], &[zero as u8]),
        }
    }

    /// Adds a node, and returns the name of its result.
    pub fn node(&mut self, op: &str, inputs: &[&str], attributes: Vec<Attribute>) -> String {
        let name = self.name(&op.to_lowercase());
        let mut node = Node::new(op, inputs.to_vec(), [name.clone()]).named(&name);
        node.attributes = attributes;
        self.nodes.push(node);
        name
    }

    /// The name of a quantised tensor.
    pub fn quantise(&mut self, float: &str, as_map: &Map) -> String {
        let (scale, zero) = (self.constant(&[], &[as_map.scale]), self.zero(as_map.zero));
        self.node("QuantizeLinear", &[float, &scale, &zero], vec![])
    }

    /// The name of a map in `f32`.
    pub fn dequantise(&mut self, map: &Map) -> String {
        let (scale, zero) = (self.constant(&[], &[map.scale]), self.zero(map.zero));
        self.node("DequantizeLinear", &[&map.name, &scale, &zero], vec![])
    }

    /// The least byte.
    pub fn lowest(&self) -> i64 {
        if self.signed { -128 } else { 0 }
    }

    /// Images at once.
    pub fn images(&self) -> i64 {
        self.images
    }

    /// The zero point of a result: the least byte after a ReLU, unless it is symmetric.
    fn zero_of(&mut self, relu: bool) -> i64 {
        match (relu, self.signed) {
            (true, true) => -128,
            (true, false) => 0,
            (false, true) => 3,
            (false, false) => 131,
        }
    }

    /// A convolution, perhaps with a ReLU, whose result uses most bytes.
    pub fn conv(
        &mut self,
        x: &Map,
        channels: i64,
        [kernel, stride, groups]: [i64; 3],
        relu: bool,
    ) -> Map {
        let depth = x.channels / groups;
        let shape = [channels, depth, kernel, kernel];
        let count: i64 = shape.iter().product();
        let weights: Vec<i8> =
            (0..count).map(|_| (self.next() % 255) as i16 - 127).map(|w| w as i8).collect();
        let scales: Vec<f32> = (0..channels).map(|_| 0.002 * (1.5 + 0.5 * self.number())).collect();
        let bias_scales: Vec<f32> = scales.iter().map(|scale| scale * x.scale).collect();
        let spread = 73.0 * 45.0 * ((depth * kernel * kernel) as f32).sqrt();
        let bias: Vec<i32> = (0..channels).map(|_| (self.number() * spread * 0.5) as i32).collect();
        let weights = self.constant(&shape, &weights);
        let scale_names = self.constant(&[channels], &scales);
        let zeros = self.constant(&[channels], &vec![0_i8; channels as usize]);
        let weights = self.node(
            "DequantizeLinear",
            &[&weights, &scale_names, &zeros],
            vec![Attribute::new("axis", AttributeValue::Int(0))],
        );
        let bias = self.constant(&[channels], &bias);
        let bias_scales = self.constant(&[channels], &bias_scales);
        let zeros = self.constant(&[channels], &vec![0_i32; channels as usize]);
        let bias = self.node(
            "DequantizeLinear",
            &[&bias, &bias_scales, &zeros],
            vec![Attribute::new("axis", AttributeValue::Int(0))],
        );
        let operand = self.dequantise(x);
        let pad = kernel / 2;
        let attributes = vec![
            Attribute::new("kernel_shape", AttributeValue::Ints(vec![kernel; 2])),
            Attribute::new("strides", AttributeValue::Ints(vec![stride; 2])),
            Attribute::new("pads", AttributeValue::Ints(vec![pad; 4])),
            Attribute::new("group", AttributeValue::Int(groups)),
        ];
        let mut float = self.node("Conv", &[&operand, &weights, &bias], attributes);
        if relu {
            float = self.node("Relu", &[&float], vec![]);
        }
        let size = (x.size + 2 * pad - kernel) / stride + 1;
        let steps = if relu { 90.0 } else { 40.0 };
        // Ratios of scales are no simple fractions: sums halfway between two bytes are rare.
        let scale = x.scale * 0.003 * spread / steps * (1.0 + 0.1 * self.number());
        let zero = self.zero_of(relu);
        let map = Map { name: String::new(), channels, size, scale, zero };
        let name = self.quantise(&float, &map);
        Map { name, ..map }
    }

    /// The sum of two maps, perhaps with a ReLU.
    pub fn add(&mut self, x: &Map, y: &Map, relu: bool) -> Map {
        let (left, right) = (self.dequantise(x), self.dequantise(y));
        let mut float = self.node("Add", &[&left, &right], vec![]);
        if relu {
            float = self.node("Relu", &[&float], vec![]);
        }
        let zero = self.zero_of(relu);
        let map = Map { name: String::new(), scale: (x.scale + y.scale) * 0.61, zero, ..x.clone() };
        let name = self.quantise(&float, &map);
        Map { name, ..map }
    }

    /// The largest elements of windows.
    pub fn max_pool(&mut self, x: &Map, kernel: i64, stride: i64, pad: i64) -> Map {
        let operand = self.dequantise(x);
        let attributes = vec![
            Attribute::new("kernel_shape", AttributeValue::Ints(vec![kernel; 2])),
            Attribute::new("strides", AttributeValue::Ints(vec![stride; 2])),
            Attribute::new("pads", AttributeValue::Ints(vec![pad; 4])),
        ];
        let float = self.node("MaxPool", &[&operand], attributes);
        let size = (x.size + 2 * pad - kernel) / stride + 1;
        let map = Map { size, ..x.clone() };
        let name = self.quantise(&float, &map);
        Map { name, ..map }
    }

    /// Means of windows.
    pub fn average_pool(&mut self, x: &Map, kernel: i64, stride: i64) -> Map {
        let operand = self.dequantise(x);
        let attributes = vec![
            Attribute::new("kernel_shape", AttributeValue::Ints(vec![kernel; 2])),
            Attribute::new("strides", AttributeValue::Ints(vec![stride; 2])),
        ];
        let float = self.node("AveragePool", &[&operand], attributes);
        let map = Map { size: (x.size - kernel) / stride + 1, ..x.clone() };
        let name = self.quantise(&float, &map);
        Map { name, ..map }
    }

    /// Channels of several maps, with the largest scale.
    pub fn concat(&mut self, parts: &[Map]) -> Map {
        let operands: Vec<String> = parts.iter().map(|part| self.dequantise(part)).collect();
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let axis = vec![Attribute::new("axis", AttributeValue::Int(1))];
        let float = self.node("Concat", &operands, axis);
        let scale = parts.iter().map(|part| part.scale).fold(0.0, f32::max);
        let channels = parts.iter().map(|part| part.channels).sum();
        let map = Map { name: String::new(), scale, channels, ..parts[0].clone() };
        let name = self.quantise(&float, &map);
        Map { name, ..map }
    }

    /// Channels `from..to` of a map.
    pub fn slice(&mut self, x: &Map, from: i64, to: i64) -> Map {
        let operand = self.dequantise(x);
        let channels = to - from;
        let [from, to, axis] = [from, to, 1].map(|number| self.constant(&[1], &[number]));
        let float = self.node("Slice", &[&operand, &from, &to, &axis], vec![]);
        let map = Map { channels, ..x.clone() };
        let name = self.quantise(&float, &map);
        Map { name, ..map }
    }

    /// A softmax over rows, which the NPU does not compute.
    pub fn softmax(&mut self, x: &Map) -> Map {
        let operand = self.dequantise(x);
        let axis = vec![Attribute::new("axis", AttributeValue::Int(2))];
        let float = self.node("Softmax", &[&operand], axis);
        let zero = self.zero_of(true);
        let map = Map { name: String::new(), scale: 0.0041, zero, ..x.clone() };
        let name = self.quantise(&float, &map);
        Map { name, ..map }
    }

    /// A network whose result is a map.
    pub fn values(mut self, x: &Map) -> Module {
        self.dequantise(x);
        self.module()
    }

    /// A network that ends with such a softmax.
    pub fn host_alone(mut self, x: &Map) -> Module {
        let x = self.softmax(x);
        self.values(&x)
    }

    /// The mean of each channel, then products with all of them.
    pub fn classify(mut self, x: &Map, classes: i64) -> Module {
        let operand = self.dequantise(x);
        let float = self.node("GlobalAveragePool", &[&operand], vec![]);
        let mean = Map { size: 1, scale: x.scale * 0.4, ..x.clone() };
        let name = self.quantise(&float, &mean);
        self.end(&Map { name, ..mean }, classes)
    }

    /// Products with all elements.
    pub fn end(mut self, x: &Map, classes: i64) -> Module {
        let operand = self.dequantise(x);
        let flat = self.node("Flatten", &[&operand], vec![]);
        let flat = self.quantise(&flat, x);
        let flat = self.dequantise(&Map { name: flat, ..x.clone() });
        let depth = x.channels * x.size * x.size;
        let weights: Vec<i8> =
            (0..depth * classes).map(|_| ((self.next() % 255) as i16 - 127) as i8).collect();
        let weights = self.constant(&[classes, depth], &weights);
        let (scale, zero) = (self.constant(&[], &[0.004_f32]), self.constant(&[], &[0_i8]));
        let weights = self.node("DequantizeLinear", &[&weights, &scale, &zero], vec![]);
        let bias: Vec<i32> = (0..classes).map(|_| (self.number() * 9000.0) as i32).collect();
        let bias = self.constant(&[classes], &bias);
        let (scale, zero) = (self.constant(&[], &[0.004 * x.scale]), self.constant(&[], &[0_i32]));
        let bias = self.node("DequantizeLinear", &[&bias, &scale, &zero], vec![]);
        let transposed = vec![Attribute::new("transB", AttributeValue::Int(1))];
        let float = self.node("Gemm", &[&flat, &weights, &bias], transposed);
        let scale = x.scale * 0.004 * 73.0 * (depth as f32).sqrt();
        let zero = self.zero_of(false);
        let map = Map { name: String::new(), channels: classes, size: 1, scale, zero };
        let name = self.quantise(&float, &map);
        let map = Map { name, ..map };
        self.dequantise(&map);
        self.module()
    }

    /// The model whose result is that of the last node.
    fn module(mut self) -> Module {
        self.nodes.last_mut().expect("a node").outputs = vec!["scores".into()];
        let shape = [self.images, 3, 32, 32].map(Dim::Size);
        let graph = Graph {
            inputs: vec![Value::tensor("image", element_of(DType::F32), shape)],
            outputs: vec![Value::untyped("scores")],
            initializers: self.constants,
            nodes: self.nodes,
            ..Graph::default()
        };
        let opsets = vec![Opset { domain: None, version: 17 }];
        Module { schema: Schema::Onnx, opsets, graph: Some(graph), ..Module::default() }
    }
}

/// The graph of a model.
pub fn graph(module: &Module) -> irc_tl::Graph {
    let imported = import(module, &ImportOptions::default());
    imported.unwrap_or_else(|found| panic!("{found:#?}")).graph
}

const CHANNELS: [i64; 4] = [8, 16, 32, 64];

/// ResNet-18, -34 or -50.
pub fn resnet(images: i64, signed: bool, blocks: [usize; 4], has_bottlenecks: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let x = net.conv(&image, 8, [7, 2, 1], true);
    let mut x = net.max_pool(&x, 3, 2, 1);
    for (stage, count) in blocks.into_iter().enumerate() {
        for block in 0..count {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let width = CHANNELS[stage];
            let wide = if has_bottlenecks { 4 * width } else { width };
            let y = if has_bottlenecks {
                let y = net.conv(&x, width, [1, 1, 1], true);
                let y = net.conv(&y, width, [3, stride, 1], true);
                net.conv(&y, wide, [1, 1, 1], false)
            } else {
                let y = net.conv(&x, width, [3, stride, 1], true);
                net.conv(&y, width, [3, 1, 1], false)
            };
            let short = match x.channels == wide && stride == 1 {
                true => x.clone(),
                false => net.conv(&x, wide, [1, stride, 1], false),
            };
            x = net.add(&y, &short, true);
        }
    }
    net.classify(&x, 10)
}

/// VGG-16 with eighths of its channels.
pub fn vgg(images: i64, signed: bool) -> Module {
    let (mut net, mut x) = Net::new(images, 32, signed);
    for (channels, count) in [(8, 2), (16, 2), (32, 3), (64, 3), (64, 3)] {
        for _ in 0..count {
            x = net.conv(&x, channels, [3, 1, 1], true);
        }
        x = net.max_pool(&x, 2, 2, 0);
    }
    net.end(&x, 12)
}

/// GoogLeNet with eighths of its channels: blocks of four branches, of which some have odd numbers of channels.
pub fn googlenet(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let x = net.conv(&image, 8, [7, 2, 1], true);
    let x = net.conv(&x, 24, [3, 1, 1], true);
    let mut x = net.max_pool(&x, 3, 2, 1);
    let blocks = [
        [8, 12, 16, 2, 4, 4],
        [16, 16, 24, 4, 12, 8],
        [24, 12, 26, 2, 6, 8],
        [20, 14, 28, 3, 8, 8],
        [16, 16, 32, 3, 8, 8],
    ];
    for (index, [a, b0, b, c0, c, d]) in blocks.into_iter().enumerate() {
        let first = net.conv(&x, a, [1, 1, 1], true);
        let second = net.conv(&x, b0, [1, 1, 1], true);
        let second = net.conv(&second, b, [3, 1, 1], true);
        let third = net.conv(&x, c0, [1, 1, 1], true);
        let third = net.conv(&third, c, [5, 1, 1], true);
        let fourth = net.max_pool(&x, 3, 1, 1);
        let fourth = net.conv(&fourth, d, [1, 1, 1], true);
        x = net.concat(&[first, second, third, fourth]);
        if index == 1 {
            x = net.max_pool(&x, 3, 2, 1);
        }
        if index == 3 {
            x = net.average_pool(&x, 2, 2);
        }
    }
    net.classify(&x, 10)
}

/// Inverted residuals with convolutions of each channel, as in MobileNetV2.
pub fn mobilenet(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let mut x = net.conv(&image, 8, [3, 2, 1], true);
    for (channels, expansion, stride) in
        [(4, 1, 1), (6, 6, 2), (6, 6, 1), (8, 6, 2), (8, 6, 1), (16, 6, 2)]
    {
        let wide = x.channels * expansion;
        let y = if expansion > 1 { net.conv(&x, wide, [1, 1, 1], true) } else { x.clone() };
        let y = net.conv(&y, wide, [3, stride, wide], true);
        let y = net.conv(&y, channels, [1, 1, 1], false);
        x = match stride == 1 && x.channels == channels {
            true => net.add(&x, &y, false),
            false => y,
        };
    }
    let x = net.conv(&x, 40, [1, 1, 1], true);
    net.classify(&x, 10)
}

/// Grouped convolutions of four channels, as in ResNeXt.
pub fn resnext(images: i64, signed: bool) -> Module {
    let (mut net, image) = Net::new(images, 32, signed);
    let mut x = net.conv(&image, 16, [3, 2, 1], true);
    for _ in 0..2 {
        let y = net.conv(&x, 16, [1, 1, 1], true);
        let y = net.conv(&y, 16, [3, 1, 4], true);
        let y = net.conv(&y, 16, [1, 1, 1], false);
        x = net.add(&y, &x, true);
    }
    net.classify(&x, 10)
}
