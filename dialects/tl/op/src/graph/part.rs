//! Parts of a graph.

use super::{Graph, Node, ValueId};
use std::collections::{BTreeMap, BTreeSet};

impl Graph {
    /// The part of a graph of known sizes that computes `results` of `given`, which become its inputs, and of the
    /// inputs of the graph that it needs besides. Values keep their ids; checks are left out.
    pub fn part(&self, given: &[(String, ValueId)], results: &[(String, ValueId)]) -> Self {
        let known: BTreeSet<ValueId> = given.iter().map(|(_, value)| *value).collect();
        let mut needed: BTreeSet<ValueId> = results.iter().map(|(_, value)| *value).collect();
        let mut nodes = vec![];
        for node in self.nodes.iter().rev() {
            let is_needed = |result: &ValueId| needed.contains(result) && !known.contains(result);
            if node.results.iter().any(is_needed) {
                needed.extend(&node.operands);
                nodes.push(node.clone());
            }
        }
        nodes.reverse();
        let is_read =
            |(_, value): &&(String, ValueId)| needed.contains(value) && !known.contains(value);
        let own = self.inputs.iter().filter(is_read).cloned();
        Self {
            types: self.types.clone(),
            inputs: own.chain(given.iter().cloned()).collect(),
            nodes,
            outputs: results.to_vec(),
            strings: self.strings.clone(),
            ..Self::default()
        }
    }

    /// A graph of some nodes, ascending, of a graph of known sizes. Its values have ids of their own, so that it is as
    /// large as its nodes are; checks are left out. Every value that the nodes read is the result of one, or an input.
    pub fn extract(
        &self,
        nodes: &[usize],
        inputs: &[(String, ValueId)],
        outputs: &[(String, ValueId)],
    ) -> Self {
        let mut made = Self { strings: self.strings.clone(), ..Self::default() };
        let mut ids: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let mut own = |value: &ValueId| {
            *ids.entry(*value).or_insert_with(|| {
                made.types.push(self.types[value.0].clone());
                ValueId(made.types.len() - 1)
            })
        };
        made.inputs = inputs.iter().map(|(name, value)| (name.clone(), own(value))).collect();
        for node in nodes.iter().map(|node| &self.nodes[*node]) {
            made.nodes.push(Node {
                operands: node.operands.iter().map(&mut own).collect(),
                results: node.results.iter().map(&mut own).collect(),
                ..node.clone()
            });
        }
        made.outputs = outputs.iter().map(|(name, value)| (name.clone(), own(value))).collect();
        made
    }
}

#[cfg(test)]
mod tests {
    use crate::{Binary, Builder, DType, Tensor, Type};
    use std::collections::BTreeMap;

    #[test]
    fn a_part_reads_what_is_given_and_the_inputs_that_it_needs() {
        let mut b = Builder::new();
        let [x, y, z] = ["x", "y", "z"].map(|name| b.input(name, Type::new(DType::F32, [])));
        let sum = b.binary(Binary::Add, x, y).expect("numbers");
        let product = b.binary(Binary::Mul, sum, z).expect("numbers");
        b.output("product", product);
        let graph = b.finish();
        let part = graph.part(&[("sum".into(), sum)], &[("product".into(), product)]);
        let names: Vec<&str> = part.inputs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["z", "sum"]);
        let number = |value: f32| Tensor::from_values([], &[value]).expect("a number");
        let given = BTreeMap::from([("z".into(), number(3.0)), ("sum".into(), number(5.0))]);
        assert_eq!(part.eval(&given).expect("a result")[0].to_f64(), [15.0]);
    }
    #[test]
    fn an_extract_has_values_of_its_own() {
        let mut b = Builder::new();
        let [x, y] = ["x", "y"].map(|name| b.input(name, Type::new(DType::F32, [])));
        let sum = b.binary(Binary::Add, x, y).expect("numbers");
        let product = b.binary(Binary::Mul, sum, y).expect("numbers");
        b.output("product", product);
        let graph = b.finish();
        let part =
            graph.extract(&[1], &[("y".into(), y), ("s".into(), sum)], &[("p".into(), product)]);
        assert_eq!(part.types.len(), 3);
        let number = |value: f32| Tensor::from_values([], &[value]).expect("a number");
        let given = BTreeMap::from([("y".into(), number(3.0)), ("s".into(), number(5.0))]);
        assert_eq!(part.eval(&given).expect("a result")[0].to_f64(), [15.0]);
    }
}
