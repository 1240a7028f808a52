//! Between the tensors of a graph and those that the NPU stores.
//!
//! The host quantises inputs and undoes the quantisation of results, with the nodes of the graph that do. The NPU
//! stores `[N, C, H, W]` of the axes that layers need.

use crate::layers::{Dimension, Layers, Operand, Stored, Whole};
use crate::numbers::LayerNumbers;
use irc_tensor::{DType, Tensor, TensorType};
use irc_tl::{Graph, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Tensors by name.
type Tensors = BTreeMap<String, Tensor>;

/// The start of the names of results in the part of the graph after the NPU.
const VALUE: &str = "\0value ";
/// The start of the names of weights in the part before it.
const WEIGHTS: &str = "\0weights ";

/// The inputs and results of a network.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// What the NPU reads, and then what only results contain: names, values, the axes of their dimensions.
    inputs: Vec<(String, ValueId, Vec<Dimension>)>,
    /// How many of the inputs the NPU reads.
    read: usize,
    /// The values that are the weights of layers: the index of the layer, the axes of the dimensions.
    weights: Vec<(usize, Vec<Dimension>)>,
    /// What it computes for the outputs.
    results: Vec<Stored>,
    /// Names of layers, channels of their results, and the types that the NPU stores.
    layers: Vec<(String, u64)>,
    types: BTreeMap<String, DType>,
    /// The inputs of the graph that are weights.
    parameters: Vec<(String, ValueId)>,
    /// From the inputs of the graph to those of the network.
    before: Graph,
    /// From the results of the network to the outputs of the graph.
    after: Graph,
}

impl Boundary {
    /// The boundary of a network.
    pub fn new(graph: &Graph, layers: &Layers, numbers: &[LayerNumbers]) -> Self {
        let mut known: BTreeSet<ValueId> = BTreeSet::new();
        let mut new_input = |operand: &Operand| match operand {
            Operand::Value { value, name, dims, .. } if known.insert(*value) => {
                Some((name.clone(), *value, dims.clone()))
            }
            _ => None,
        };
        let operands = layers.origins.iter().flat_map(|origin| &origin.operands);
        let mut inputs: Vec<(String, ValueId, Vec<Dimension>)> =
            operands.filter_map(&mut new_input).collect();
        let read: BTreeSet<ValueId> = inputs.iter().map(|(_, value, _)| *value).collect();
        // What the NPU reads is known, with all that is a part of it.
        let is_own = |stored: &&Stored| {
            let is_value = |part: &Operand| matches!(part, Operand::Value { value, .. } if *value == stored.value);
            !stored.parts.iter().any(is_value) && !read.contains(&stored.value)
        };
        let results: Vec<Stored> = layers.results.iter().filter(is_own).cloned().collect();
        let parts = results.iter().flat_map(|stored| &stored.parts);
        inputs.extend(parts.filter_map(new_input));
        let read = read.len();
        let nodes = layers.network.nodes();
        let named = nodes.iter().map(|node| (node.layer.name.clone(), node.layer.output.channels));
        let named: Vec<(String, u64)> = named.collect();
        let mut types: BTreeMap<String, DType> =
            named.iter().zip(numbers).map(|((name, _), own)| (name.clone(), own.dtype)).collect();
        types.extend(inputs.iter().map(|(name, value, _)| (name.clone(), graph.ty(*value).dtype)));
        let mut ends: Vec<_> =
            inputs.iter().map(|(name, value, _)| (name.clone(), *value)).collect();
        let mut weights = vec![];
        for (layer, origin) in layers.origins.iter().enumerate() {
            if let [Operand::Value { value, dims, .. }] = &origin.weights[..] {
                ends.push((format!("{WEIGHTS}{}", named[layer].0), *value));
                weights.push((layer, dims.clone()));
            }
        }
        let starts: Vec<_> = (results.iter())
            .map(|stored| (format!("{VALUE}{}", stored.value.0), stored.value))
            .collect();
        let parameters = graph.inputs.iter();
        let parameters = parameters.filter(|(_, value)| layers.parameters.contains(value));
        Self {
            parameters: parameters.cloned().collect(),
            before: graph.part(&[], &ends),
            after: graph.part(&starts, &graph.outputs),
            inputs,
            read,
            weights,
            results,
            layers: named,
            types,
        }
    }

    /// The element types of the tensors that the NPU stores, by name.
    pub fn types(&self) -> &BTreeMap<String, DType> {
        &self.types
    }

    /// The inputs of the graph that are read, with their types: activations, and weights that it does not contain.
    pub fn graph_inputs(&self) -> impl Iterator<Item = (String, TensorType)> {
        let known = |(name, value): &(String, ValueId)| {
            (!name.starts_with(VALUE)).then_some((name.clone(), *value))
        };
        let inputs = self.before.inputs.iter().chain(&self.after.inputs).filter_map(known);
        let all: BTreeMap<String, ValueId> = inputs.chain(self.parameters.clone()).collect();
        let typed = |(name, value): (String, ValueId)| Some((name, self.before.ty(value).known()?));
        all.into_iter().filter_map(typed)
    }

    /// The names of the inputs of the graph that are weights.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| name.as_str())
    }

    /// The tensors that the NPU reads, from the inputs of the graph. `shapes` are `[N, C, H, W]` by name.
    ///
    /// # Errors
    /// An input that is missing or has another type, and tensors of other sizes.
    pub fn pack(
        &self,
        given: &Tensors,
        shape: impl Fn(&str) -> Option<[usize; 4]>,
    ) -> Result<Tensors, String> {
        let values = self.before.eval(given).map_err(|error| error.to_string())?;
        let mut packed = Tensors::new();
        for ((name, _, dims), value) in self.inputs[..self.read].iter().zip(values) {
            let shape = shape(name).ok_or_else(|| format!("the NPU does not read '{name}'"))?;
            let (whole, all) = arranged(&value, dims)?;
            let is_part = whole.iter().zip(&shape).all(|(whole, part)| part <= whole);
            if whole[..2] != shape[..2] || !is_part {
                let found = value.ty();
                return Err(format!("'{name}' is {found}, and the NPU reads {shape:?}"));
            }
            let stored = first_rows(&all, whole, shape);
            let shape = shape.map(|size| size as i64);
            let ty = TensorType::new(value.dtype(), shape);
            let tensor = Tensor::from_bytes(ty, &stored).map_err(|error| error.to_string())?;
            packed.insert(name.clone(), tensor);
        }
        Ok(packed)
    }

    /// The values that are weights, `[K, C, R S]` by the names of their layers, from the inputs of the graph.
    ///
    /// # Errors
    /// An input that is missing or has another type, and values of several images.
    pub fn weights(&self, given: &Tensors) -> Result<Tensors, String> {
        if self.weights.is_empty() {
            return Ok(Tensors::new());
        }
        let values = self.before.eval(given).map_err(|error| error.to_string())?;
        let mut all = Tensors::new();
        for ((layer, dims), value) in self.weights.iter().zip(&values[self.inputs.len()..]) {
            let name = &self.layers[*layer].0;
            // Output channels are channels, and input channels are rows.
            let ([images, count, depth, area], bytes) = arranged(value, dims)?;
            if images != 1 {
                return Err(format!("the weights of {name} are {}, of several images", value.ty()));
            }
            let ty = TensorType::new(value.dtype(), [count, depth, area].map(|size| size as i64));
            let tensor = Tensor::from_bytes(ty, &bytes).map_err(|error| error.to_string())?;
            all.insert(name.clone(), tensor);
        }
        Ok(all)
    }

    /// The outputs of the graph, from the tensors `[N, C, H, W]` that the NPU has stored, and the inputs of the graph.
    ///
    /// # Errors
    /// A result that is missing or has another size.
    pub fn unpack(&self, found: &Tensors, given: &Tensors) -> Result<Tensors, String> {
        let mut inputs = BTreeMap::new();
        let parts = || self.results.iter().flat_map(|stored| &stored.parts);
        if parts().any(|part| matches!(part, Operand::Value { .. })) {
            let values = self.before.eval(given).map_err(|error| error.to_string())?;
            let known = self.inputs.iter().map(|(name, ..)| name.as_str());
            inputs = known.zip(values).collect();
        }
        let mut values: Tensors = given.clone();
        for stored in &self.results {
            let name = format!("{VALUE}{}", stored.value.0);
            values.insert(name, self.result(stored, found, &inputs)?);
        }
        let needed = |name: &str| self.after.inputs.iter().any(|(input, _)| input == name);
        values.retain(|name, _| needed(name));
        let outputs = self.after.eval(&values).map_err(|error| error.to_string())?;
        let names = self.after.outputs.iter().map(|(name, _)| name.clone());
        Ok(names.zip(outputs).collect())
    }

    /// A value of the graph, from the tensors and the inputs that are parts of its channels.
    fn result(
        &self,
        stored: &Stored,
        found: &Tensors,
        inputs: &BTreeMap<&str, Tensor>,
    ) -> Result<Tensor, String> {
        let mut parts: Vec<([usize; 4], Vec<u8>)> = vec![];
        for part in &stored.parts {
            match part {
                Operand::Layer(layer) => {
                    let name = &self.layers[*layer].0;
                    let tensor = found.get(name);
                    let tensor =
                        tensor.ok_or_else(|| format!("the NPU does not store '{name}'"))?;
                    let size =
                        |axis: usize| tensor.shape().get(axis).map_or(1, |extent| *extent as usize);
                    parts.push(([0, 1, 2, 3].map(size), tensor.bytes().to_vec()));
                }
                Operand::Value { name, dims, .. } => {
                    let input = inputs.get(name.as_str());
                    let input = input.ok_or_else(|| format!("there is no input '{name}'"))?;
                    parts.push(arranged(input, dims)?);
                }
            }
        }
        let Some((first, _)) = parts.first() else { return Err("an output has no parts".into()) };
        let shape = [first[0], stored.channels as usize, first[2], first[3]];
        let plane = shape[2] * shape[3];
        if let Some((other, _)) =
            parts.iter().find(|(own, _)| own[0] != shape[0] || own[2..] != shape[2..])
        {
            return Err(format!("parts of a result are {shape:?} and {other:?}"));
        }
        if parts.iter().map(|(part, _)| part[1]).sum::<usize>() != stored.order.len() {
            return Err("parts of a result have other channels than it".into());
        }
        let mut bytes = vec![0; shape.iter().product()];
        for image in 0..shape[0] {
            let planes = parts.iter().flat_map(|(part, all)| {
                let each = part[1] * plane;
                all[image * each..(image + 1) * each].chunks(plane.max(1))
            });
            for (channel, own) in stored.order.iter().zip(planes) {
                let at = (image * shape[1] + *channel as usize) * plane;
                bytes[at..at + plane].copy_from_slice(own);
            }
        }
        let ty = self.after.ty(stored.value).known().ok_or("a result has an open size")?;
        let places = places(&stored.dims, &ty.shape, shape)?;
        if places.len() != bytes.len() || ty.dtype.size() != 1 {
            return Err(format!("a result is {ty}, and the NPU stores {shape:?}"));
        }
        let values: Vec<u8> = places.into_iter().map(|place| bytes[place]).collect();
        Tensor::from_bytes(ty, &values).map_err(|error| error.to_string())
    }
}

/// The shape `[N, C, H, W]` that dimensions of these axes have.
fn whole(dims: &[Dimension]) -> [usize; 4] {
    let mut shape = [1; 4];
    for atom in dims.iter().flatten() {
        let axis = match atom.of {
            Whole::Images => 0,
            Whole::Axis(axis) => axis as usize + 1,
            Whole::Dimension(_) => continue,
        };
        shape[axis] += (atom.extent as usize).saturating_sub(1) * atom.stride as usize;
    }
    shape
}

/// The bytes of a value in `[N, C, H, W]`, and that shape.
fn arranged(value: &Tensor, dims: &[Dimension]) -> Result<([usize; 4], Vec<u8>), String> {
    let whole = whole(dims);
    let places = places(dims, value.shape(), whole)?;
    let bytes = value.bytes();
    if whole.iter().product::<usize>() != bytes.len() {
        return Err(format!("{} is no tensor of bytes {whole:?}", value.ty()));
    }
    let mut all = vec![0; bytes.len()];
    places.into_iter().zip(bytes).for_each(|(place, byte)| all[place] = *byte);
    Ok((whole, all))
}

/// The first rows and columns of a tensor: windows may leave the last ones out.
fn first_rows(all: &[u8], whole: [usize; 4], part: [usize; 4]) -> Vec<u8> {
    let [_, _, rows, columns] = part;
    let planes = all.chunks(whole[2] * whole[3]);
    let lines = planes.flat_map(|plane| plane.chunks(whole[3]).take(rows));
    lines.flat_map(|line| &line[..columns]).copied().collect()
}

/// The index in `[N, C, H, W]` of each element of a tensor of some dimensions, row-major.
fn places(dims: &[Dimension], extents: &[i64], shape: [usize; 4]) -> Result<Vec<usize>, String> {
    if dims.len() != extents.len() {
        return Err("the axes of a tensor are not known".into());
    }
    let strides = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1];
    let mut all = vec![0];
    for (atoms, extent) in dims.iter().zip(extents) {
        let mut own = vec![0];
        for atom in atoms {
            let axis = match atom.of {
                Whole::Images => 0,
                Whole::Axis(axis) => axis as usize + 1,
                Whole::Dimension(_) => return Err("the axes of a tensor are not known".into()),
            };
            let step = atom.stride as usize * strides[axis];
            let next =
                own.iter().flat_map(|at| (0..atom.extent as usize).map(move |n| at + n * step));
            own = next.collect();
        }
        if own.len() as i64 != *extent {
            return Err("the axes of a tensor are not known".into());
        }
        all = all.iter().flat_map(|at| own.iter().map(move |own| at + own)).collect();
    }
    match all.iter().all(|place| *place < shape.iter().product()) {
        true => Ok(all),
        false => Err(format!("a tensor {extents:?} is larger than {shape:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::Atom;
    use irc_npu_cost::Axis;

    #[test]
    fn elements_are_placed_by_the_axes_of_dimensions() {
        let atom = |of, stride, extent| Atom { of, stride, extent };
        let [channels, rows] = [Axis::Channels, Axis::Rows].map(Whole::Axis);
        // Rows first, then channels in two parts.
        let dims = [vec![atom(rows, 1, 2)], vec![atom(channels, 2, 2)], vec![atom(channels, 1, 2)]];
        let found = places(&dims, &[2, 2, 2], [1, 4, 2, 1]).expect("known axes");
        assert_eq!(found, [0, 2, 4, 6, 1, 3, 5, 7]);
        assert!(places(&dims[..2], &[2, 2, 2], [1, 4, 2, 1]).is_err());
    }
}
