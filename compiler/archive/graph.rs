//! The calls of a program as a graph of the Model Library Format.
use super::{
    Argument, Callee, Operator,
    draft::{Draft, Place},
};
use irc_mlf::{
    Type,
    graph::{self, Edge, Entry, Graph, Node},
    params::Param,
};
use irc_planner::memory::{self, Block};
use std::collections::{BTreeMap, BTreeSet};

/// The DLPack device type of host memory.
const CPU: i64 = 1;

/// Writes a graph, its parameters in the order of its inputs, and the functions that its nodes call, whose
/// names begin with `prefix`; `kind` returns a word that describes a function.
pub fn write(
    draft: Draft,
    prefix: &str,
    kind: impl Fn(&Callee) -> String,
) -> (Graph, Vec<Param>, Vec<Operator>) {
    let mut writer =
        Writer { draft, graph: Graph::default(), params: vec![], sources: BTreeMap::new() };
    writer.sources();
    let operators = writer.calls(prefix, kind);
    let outputs = writer.draft.outputs.iter().map(|place| writer.edge(*place));
    writer.graph.outputs = outputs.collect();
    writer.storages();
    (writer.graph, writer.params, operators)
}

struct Writer {
    draft: Draft,
    graph: Graph,
    params: Vec<Param>,
    /// The nodes of inputs and of constants.
    sources: BTreeMap<Place, usize>,
}

impl Writer {
    /// Inputs come first, as some clients do not accept parameters before them. Unused constants are
    /// omitted.
    fn sources(&mut self) {
        for (number, (name, ty)) in self.draft.inputs.clone().into_iter().enumerate() {
            self.source(Place::Input(number), name, ty);
        }
        let read: BTreeSet<Place> =
            self.draft.calls.iter().flat_map(|call| call.inputs.iter().copied()).collect();
        let constants = self.draft.constants.clone().into_iter().enumerate();
        for (number, (ty, data)) in constants {
            if read.contains(&Place::Constant(number)) {
                let name = format!("p{}", self.params.len());
                self.params.push(Param { name: name.clone(), ty: ty.clone(), data });
                self.source(Place::Constant(number), name, ty);
            }
        }
        self.graph.inputs = (0..self.graph.nodes.len()).collect();
    }

    fn source(&mut self, place: Place, name: String, ty: Type) {
        let number = self.graph.nodes.len();
        self.sources.insert(place, number);
        self.graph.nodes.push(Node { name, call: None });
        self.graph.entries.push(Entry { ty, storage: number as i64, device: Some(CPU) });
    }

    fn edge(&self, place: Place) -> Edge {
        match place {
            Place::Result(call, output) => Edge { node: self.sources.len() + call, output },
            source => Edge { node: self.sources[&source], output: 0 },
        }
    }

    /// Adds a node for each call. Nodes with equal callees and argument types share one function.
    fn calls(&mut self, prefix: &str, kind: impl Fn(&Callee) -> String) -> Vec<Operator> {
        let mut operators: Vec<Operator> = vec![];
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for call in &self.draft.calls {
            let read = call.inputs.iter().map(|place| self.draft.ty(*place));
            let argument =
                |ty: &Type| Argument { elements: ty.shape.iter().product(), dtype: ty.dtype };
            let arguments: Vec<Argument> = read.chain(&call.results).map(argument).collect();
            let is_same = |known: &&Operator| {
                known.callee == call.callee
                    && known.arguments == arguments
                    && known.buffers == call.buffers
            };
            let known = operators.iter().find(is_same).map(|known| known.name.clone());
            let function = known.unwrap_or_else(|| {
                let name = format!("{prefix}_{}_{}", kind(&call.callee), operators.len());
                let (callee, buffers) = (call.callee.clone(), call.buffers.clone());
                operators.push(Operator { name: name.clone(), callee, arguments, buffers });
                name
            });
            let count = counts.entry(function.clone()).or_default();
            let name = if *count == 0 { function.clone() } else { format!("{function}_{count}") };
            *count += 1;
            let inputs = call.inputs.iter().map(|place| self.edge(*place)).collect();
            let outputs = call.results.len();
            let attributes = BTreeMap::new();
            let call_ = graph::Call { function, inputs, outputs, flatten: false, attributes };
            self.graph.nodes.push(Node { name, call: Some(call_) });
            let entry = |ty: &Type| Entry { ty: ty.clone(), storage: -1, device: Some(CPU) };
            self.graph.entries.extend(call.results.iter().map(entry));
        }
        operators
    }

    /// Assigns storage by live range; an output shares its storage with no other value.
    fn storages(&mut self) {
        let (mut blocks, mut made_at) = (vec![], vec![]);
        let mut numbers = BTreeMap::new();
        for (made, call) in self.draft.calls.iter().enumerate() {
            for (result, ty) in call.results.iter().enumerate() {
                let place = Place::Result(made, result);
                numbers.insert(place, blocks.len());
                blocks.push(Block { bytes: ty.bytes().unwrap_or(0), first: made, last: made });
                made_at.push(place);
            }
            for number in call.inputs.iter().filter_map(|place| numbers.get(place)) {
                blocks[*number].last = made;
            }
        }
        let outputs: BTreeSet<Place> = self.draft.outputs.iter().copied().collect();
        let storages = memory::storages(&blocks, |block| outputs.contains(&made_at[block]));
        let first = self.sources.len();
        for (entry, storage) in self.graph.entries[first..].iter_mut().zip(storages) {
            entry.storage = (first + storage) as i64;
        }
    }
}
