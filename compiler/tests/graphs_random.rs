//! Random programs with control flow agree with their evaluation, whether sizes are known or symbols.
use crate::support::graphs::read_back;
use irc::{Session, Target};
use irc_tensor::{Tensor, TensorType, Tolerance, compare};
use irc_tl::{
    Binary, Builder, Comparison, DType, Dim, Graph, NodeKind, Reduction, Type, Unary, ValueId,
};
use std::collections::BTreeMap;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % sides
    }
}

/// Writes programs over values of one type.
struct Writer {
    dice: Dice,
    ty: Type,
    names: usize,
}

impl Writer {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn pick(&mut self, values: &[ValueId]) -> ValueId {
        values[self.dice.roll(values.len())]
    }

    /// Adds steps to a body, and gives all its values.
    fn steps(&mut self, b: &mut Builder, mut values: Vec<ValueId>, depth: usize) -> Vec<ValueId> {
        for _ in 0..1 + self.dice.roll(4) {
            let (x, y) = (self.pick(&values), self.pick(&values));
            match self.dice.roll(if depth == 0 { 3 } else { 6 }) {
                0 => values.push(b.unary(Unary::Tanh, x).unwrap()),
                1 => values.push(b.binary(Binary::Add, x, y).unwrap()),
                2 => values.push(b.binary(Binary::Sub, x, y).unwrap()),
                3 => values.extend(self.choice(b, &values, depth)),
                _ => values.extend(self.repeat(b, &values, depth)),
            }
        }
        values
    }

    /// A body that takes as many values as it captures, behind those that are given.
    fn body(
        &mut self,
        given: &[Type],
        captured: usize,
        results: usize,
        depth: usize,
        first: impl FnOnce(&mut Builder, &[ValueId]) -> Option<ValueId>,
    ) -> Box<Graph> {
        let prefix = self.name();
        let mut b = Builder::nested(&prefix);
        let mut inputs = vec![];
        for ty in given.iter().cloned().chain(vec![self.ty.clone(); captured]) {
            let name = self.name();
            inputs.push(b.input(name, ty));
        }
        let flag = first(&mut b, &inputs);
        let values = inputs.iter().copied().filter(|value| *b.ty(*value) == self.ty).collect();
        let values = self.steps(&mut b, values, depth - 1);
        let chosen: Vec<_> = (0..results).map(|_| self.pick(&values)).collect();
        for value in flag.into_iter().chain(chosen) {
            let name = self.name();
            b.output(name, value);
        }
        Box::new(b.finish())
    }

    fn choice(&mut self, b: &mut Builder, values: &[ValueId], depth: usize) -> Vec<ValueId> {
        let results = 1 + self.dice.roll(2);
        let captured: Vec<_> = (0..1 + self.dice.roll(2)).map(|_| self.pick(values)).collect();
        let condition = b.scalar(self.dice.roll(2) as f64, DType::Bool).unwrap();
        let [then, otherwise] =
            [0; 2].map(|_| self.body(&[], captured.len(), results, depth, |_, _| None));
        let operands: Vec<_> = [condition].into_iter().chain(captured).collect();
        b.region(NodeKind::If { then, otherwise }, &operands, vec![self.ty.clone(); results])
            .unwrap()
    }

    fn repeat(&mut self, b: &mut Builder, values: &[ValueId], depth: usize) -> Vec<ValueId> {
        let (carried, sequences) = (1 + self.dice.roll(2), self.dice.roll(2));
        let trips = self.dice.roll(4) as i64;
        let state: Vec<_> = (0..carried).map(|_| self.pick(values)).collect();
        let captured: Vec<_> = (0..self.dice.roll(2)).map(|_| self.pick(values)).collect();
        let mut given = vec![Type::new(DType::I64, [])];
        given.extend(vec![self.ty.clone(); carried]);
        let last = self.dice.roll(3) as f64;
        let body = self.body(&given, captured.len(), carried + sequences, depth, |b, inputs| {
            let last = b.scalar(last, DType::I64).unwrap();
            Some(b.compare(Comparison::Ne, inputs[0], last).unwrap())
        });
        let count = b.scalar(trips as f64, DType::I64).unwrap();
        let start = b.scalar(1.0, DType::Bool).unwrap();
        let operands: Vec<_> = [count, start].into_iter().chain(state).chain(captured).collect();
        let mut types = vec![self.ty.clone(); carried];
        for _ in 0..sequences {
            let length = trips.min(last as i64 + 1);
            let dims = [Dim::Known(length)].into_iter().chain(self.ty.dims.clone());
            types.push(Type::new(DType::F32, dims.collect::<Vec<_>>()));
        }
        let kind = NodeKind::Loop { body, carried };
        let results = b.region(kind, &operands, types).unwrap();
        let sum = |sequence: &ValueId| b.reduce(Reduction::Sum, *sequence, &[0], false).unwrap();
        let sums: Vec<_> = results[carried..].iter().map(sum).collect();
        results[..carried].iter().copied().chain(sums).collect()
    }

    fn program(seed: u64, ty: Type) -> Graph {
        let mut writer = Writer { dice: Dice(seed), ty: ty.clone(), names: 0 };
        let mut b = Builder::new();
        let inputs = ["x", "y"].map(|name| b.input(name, ty.clone()));
        let values = writer.steps(&mut b, inputs.to_vec(), 3);
        for _ in 0..3 {
            let value = writer.pick(&values);
            let name = writer.name();
            b.output(name, value);
        }
        b.output("last", *values.last().unwrap());
        b.finish()
    }
}

fn agree(ty: &Type, seeds: std::ops::Range<u64>, shapes: &[[i64; 2]]) {
    let graphs: Vec<Graph> = seeds.map(|seed| Writer::program(seed, ty.clone())).collect();
    let session = Session::new();
    let models: Vec<_> = graphs.iter().map(|graph| session.import_graph(graph)).collect();
    let compiled = session.compile_batch(&models, &Target::host().into()).unwrap();
    let runners = compiled.runners().unwrap();
    for (seed, (graph, runner)) in graphs.iter().zip(runners).enumerate() {
        let failed = || compiled.programs[seed].as_ref().err();
        let mut runner = runner.unwrap_or_else(|| panic!("program {seed}: {:?}", failed()));
        for shape in shapes {
            let input = |seed| Tensor::random(TensorType::new(DType::F32, *shape), seed).unwrap();
            let inputs: BTreeMap<String, Tensor> =
                [("x".to_owned(), input(1)), ("y".to_owned(), input(2))].into();
            let expected = graph.eval(&inputs).unwrap();
            let read = read_back(graph).eval(&inputs).unwrap();
            assert_eq!(read, expected, "program {seed}, read back");
            let found = runner.run(inputs).unwrap();
            for ((name, _), expected) in graph.outputs.iter().zip(expected) {
                let tolerance = Tolerance::of(DType::F32);
                let result = compare(&expected, &found[name], tolerance).unwrap();
                assert!(result.is_match(), "program {seed}, {name}: {result}");
            }
        }
    }
}

#[test]
fn of_known_sizes() {
    agree(&TensorType::new(DType::F32, [3, 5]).into(), 0..24, &[[3, 5]]);
}

#[test]
fn of_sizes_that_are_symbols() {
    let ty = Type::new(DType::F32, [Dim::symbol("N"), 5.into()]);
    agree(&ty, 100..124, &[[3, 5], [0, 5], [20, 5]]);
}
