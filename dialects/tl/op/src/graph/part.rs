//! Parts of a graph.

use super::{Graph, ValueId};
use std::collections::BTreeSet;

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
}
