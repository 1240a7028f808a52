//! The plan for running a graph: the memory of each tensor and the arguments of each call. Plain data,
//! computed once per model, without loading any code.
use super::{packed::CPU, workspace};
use crate::{Interface, Port};
use irc_mlf::{
    DataType, Package, Type,
    graph::{COPY, Call, Graph, NOP},
    metadata::{Memory, Module},
    params::{self, index},
};
use std::collections::BTreeMap;

/// A graph whose memory is planned, but not allocated.
pub struct Plan {
    /// The inputs and outputs, as callers see them.
    pub interface: Interface,
    /// Sizes in bytes of the blocks of memory that a context allocates for tensors.
    pub blocks: Vec<usize>,
    /// Maximum number of bytes of workspace of a call.
    pub workspace: usize,
    /// The places of tensors.
    pub places: Vec<Place>,
    /// The arguments of calls.
    pub tensors: Vec<Tensor>,
    /// The steps of a run, in order.
    pub steps: Vec<Step>,
    /// Names of the called functions.
    pub functions: Vec<String>,
    /// The place of each input that is not a parameter.
    pub inputs: Vec<usize>,
    /// The place of each output.
    pub outputs: Vec<Output>,
}

/// The memory of a value, which several tensors may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// What provides the memory.
    pub home: ValueMemory,
    /// Number of bytes of the largest of its tensors.
    pub bytes: usize,
}

/// What provides the memory of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueMemory {
    /// A block of the context.
    Block(usize),
    /// A parameter, by its number in the archive.
    Param(usize),
}

/// A tensor as the argument of a call.
pub struct Tensor {
    /// Its place.
    pub place: usize,
    /// Type of an element.
    pub dtype: DataType,
    /// Extents of the dimensions.
    pub shape: Box<[i64]>,
}

/// A node that runs.
pub struct Step {
    /// Name of the node.
    pub node: String,
    /// Its action.
    pub action: Action,
}

/// The action of a node.
pub enum Action {
    /// Calls a function on tensors, all given by number.
    Call {
        /// The function.
        function: usize,
        /// Inputs, then outputs.
        tensors: Vec<usize>,
    },
    /// Copies bytes between places.
    Copy {
        /// The source.
        from: usize,
        /// The destination.
        to: usize,
        /// Number of bytes.
        bytes: usize,
    },
}

/// The place of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its place.
    pub place: usize,
    /// Whether bound memory can be that place. An output that is also an input, a parameter or another
    /// output is copied after a run instead.
    pub can_move: bool,
}

/// The plan of the model with that number, in an archive without errors.
///
/// # Errors
/// If the model uses a feature that this runtime does not support.
pub fn of(package: &Package, model: usize) -> Result<Plan, String> {
    let (module, part) = (&package.metadata.modules[model], &package.parts[model]);
    let graph = part.graph.as_ref().ok_or("it has no graph, and only graphs run here")?;
    let params = params::by_name(&part.params);
    for entry in &graph.entries {
        if let Some(device) = entry.device.filter(|device| *device != i64::from(CPU)) {
            return Err(format!("its graph is for device type {device}, not the host's"));
        }
    }
    let workspace = workspace_of(module, graph);
    let workspace = usize::try_from(workspace).ok().and_then(workspace::capacity);
    let workspace = workspace.ok_or("the size of its workspace overflows")?;
    let mut planner = Planner {
        graph,
        first: graph.first_entries(),
        places: vec![],
        place_of: vec![],
        tensors: vec![],
        number_of: vec![[None; 2]; graph.entries.len()],
        steps: vec![],
        functions: index(graph.functions().keys().copied().zip(0..)),
    };
    let (inputs, blocks) = planner.inputs_and_blocks(&params)?;
    planner.nodes(&params, &blocks)?;
    let outputs = planner.outputs();
    let functions = planner.functions.keys().map(|name| (*name).to_owned()).collect();
    Ok(Plan {
        interface: interface(graph, &inputs, output_names(package, module)),
        blocks: blocks.bytes,
        workspace,
        places: planner.places,
        tensors: planner.tensors,
        steps: planner.steps,
        functions,
        inputs: inputs.iter().map(|(_, entry)| planner.place_of[*entry]).collect(),
        outputs,
    })
}

/// The largest workspace that a called function specifies.
fn workspace_of(module: &Module, graph: &Graph) -> u64 {
    let Memory::Model(memory) = &module.memory else { return 0 };
    let called = graph.functions();
    let usages = memory.functions.iter().filter(|usage| called.contains_key(usage.name.as_str()));
    usages.flat_map(|usage| &usage.workspace).map(|(_, bytes)| *bytes).max().unwrap_or_default()
}

/// The names of outputs in an archive of irc; graphs have no names.
fn output_names<'p>(package: &'p Package, module: &Module) -> &'p [String] {
    let ours = package.metadata.extension.as_ref();
    ours.and_then(|ours| ours.models.get(&module.name)).map_or(&[], |model| &model.outputs)
}

/// The interface: inputs by name, outputs by name if the archive has names, otherwise by number.
fn interface(graph: &Graph, inputs: &[(&str, usize)], names: &[String]) -> Interface {
    let port = |name: String, entry: usize| {
        let Type { dtype, shape } = &graph.entries[entry].ty;
        let dtype = dtype.element().map_or(dtype.to_string(), |known| known.name().to_owned());
        Port { name, dtype, shape: shape.clone(), ..Port::default() }
    };
    let outputs = graph.output_entries().into_iter().enumerate();
    Interface {
        inputs: inputs.iter().map(|(name, entry)| port((*name).to_owned(), *entry)).collect(),
        outputs: outputs
            .map(|(number, entry)| {
                let name = names.get(number).cloned();
                port(name.unwrap_or_else(|| number.to_string()), entry)
            })
            .collect(),
        ..Interface::default()
    }
}

/// Blocks of memory, by storage.
struct Blocks {
    bytes: Vec<usize>,
    by_storage: BTreeMap<i64, usize>,
}

struct Planner<'g> {
    graph: &'g Graph,
    first: Vec<usize>,
    places: Vec<Place>,
    /// The place of each entry that has been planned.
    place_of: Vec<usize>,
    tensors: Vec<Tensor>,
    /// Tensors of each entry: with its own shape, and flattened.
    number_of: Vec<[Option<usize>; 2]>,
    steps: Vec<Step>,
    /// Numbers of the called functions.
    functions: BTreeMap<&'g str, usize>,
}

impl<'g> Planner<'g> {
    fn bytes(&self, entry: usize) -> Result<usize, String> {
        let ty = &self.graph.entries[entry].ty;
        let bytes = ty.bytes().and_then(|bytes| usize::try_from(bytes).ok());
        bytes.ok_or_else(|| format!("a tensor of type {ty} is more than this machine can hold"))
    }

    /// Inputs that are not parameters, with their entries, and the blocks of all storages except those
    /// of parameters.
    #[allow(clippy::type_complexity, reason = "documented above")]
    fn inputs_and_blocks(
        &self,
        params: &BTreeMap<&str, usize>,
    ) -> Result<(Vec<(&'g str, usize)>, Blocks), String> {
        let (given, inputs): (Vec<_>, Vec<_>) =
            self.graph.named_inputs().into_iter().partition(|(name, _)| params.contains_key(name));
        let mut is_param = vec![false; self.graph.entries.len()];
        given.iter().for_each(|(_, entry)| is_param[*entry] = true);
        let mut sizes = BTreeMap::new();
        for (entry, _) in is_param.iter().enumerate().filter(|(_, is_param)| !**is_param) {
            let bytes = self.bytes(entry)?;
            let largest = sizes.entry(self.graph.entries[entry].storage).or_insert(bytes);
            *largest = bytes.max(*largest);
        }
        let by_storage = index(sizes.keys().copied().zip(0..));
        Ok((inputs, Blocks { bytes: sizes.values().copied().collect(), by_storage }))
    }

    fn nodes(&mut self, params: &BTreeMap<&str, usize>, blocks: &Blocks) -> Result<(), String> {
        let graph = self.graph;
        for (index, node) in graph.nodes.iter().enumerate() {
            let shares = match &node.call {
                Some(call) => self.shared(call, index)?,
                None => None,
            };
            for output in 0..node.outputs() {
                let entry = self.first[index] + output;
                let param = params.get(node.name.as_str()).filter(|_| node.call.is_none());
                let home = match param {
                    Some(param) => ValueMemory::Param(*param),
                    None => ValueMemory::Block(blocks.by_storage[&graph.entries[entry].storage]),
                };
                let place = match shares {
                    Some(place) => place,
                    None => {
                        self.places.push(Place { home, bytes: self.bytes(entry)? });
                        self.places.len() - 1
                    }
                };
                self.place_of.push(place);
            }
            if let Some(call) = &node.call {
                self.call(call, index, shares.is_some())?;
            }
        }
        Ok(())
    }

    fn operand(&self, call: &Call, index: usize) -> usize {
        let edge = call.inputs[index];
        self.first[edge.node] + edge.output
    }

    /// The place of the input of a node that only reinterprets it.
    fn shared(&self, call: &Call, node: usize) -> Result<Option<usize>, String> {
        if ![NOP, COPY].contains(&call.function.as_str()) {
            return Ok(None);
        }
        let (name, function) = (&self.graph.nodes[node].name, &call.function);
        if call.inputs.len() != 1 || call.outputs != 1 {
            return Err(format!(
                "`{name}` calls `{function}`, which takes one tensor and gives one"
            ));
        }
        let (from, to) = (self.operand(call, 0), self.first[node]);
        if self.bytes(from)? != self.bytes(to)? {
            return Err(format!("`{name}` calls `{function}` on tensors of two sizes"));
        }
        let storage = |entry: usize| self.graph.entries[entry].storage;
        let is_same = call.function == NOP && storage(from) == storage(to);
        Ok(is_same.then(|| self.place_of[from]))
    }

    fn call(&mut self, call: &'g Call, node: usize, is_nothing: bool) -> Result<(), String> {
        if is_nothing {
            return Ok(());
        }
        let action = if [NOP, COPY].contains(&call.function.as_str()) {
            let (from, to) = (self.operand(call, 0), self.first[node]);
            let bytes = self.bytes(to)?;
            Action::Copy { from: self.place_of[from], to: self.place_of[to], bytes }
        } else {
            let function = self.functions[call.function.as_str()];
            let inputs = (0..call.inputs.len()).map(|index| self.operand(call, index));
            let outputs = (0..call.outputs).map(|output| self.first[node] + output);
            let entries: Vec<usize> = inputs.chain(outputs).collect();
            let tensors = entries.into_iter().map(|entry| self.tensor(entry, call.flatten));
            Action::Call { function, tensors: tensors.collect() }
        };
        self.steps.push(Step { node: self.graph.nodes[node].name.clone(), action });
        Ok(())
    }

    /// The number of the tensor as which an entry is passed.
    fn tensor(&mut self, entry: usize, is_flat: bool) -> usize {
        let ty = &self.graph.entries[entry].ty;
        let number = &mut self.number_of[entry][usize::from(is_flat)];
        *number.get_or_insert_with(|| {
            let shape = match is_flat {
                true => Box::new([elements(ty)]) as Box<[i64]>,
                false => ty.shape.clone().into(),
            };
            self.tensors.push(Tensor { place: self.place_of[entry], dtype: ty.dtype, shape });
            self.tensors.len() - 1
        })
    }

    fn outputs(&self) -> Vec<Output> {
        let mut is_fixed: Vec<bool> =
            self.places.iter().map(|place| matches!(place.home, ValueMemory::Param(_))).collect();
        for (_, entry) in self.graph.named_inputs() {
            is_fixed[self.place_of[entry]] = true;
        }
        let entries = self.graph.output_entries().into_iter();
        entries
            .map(|entry| {
                let place = self.place_of[entry];
                let can_move = !std::mem::replace(&mut is_fixed[place], true);
                Output { place, can_move }
            })
            .collect()
    }
}

/// Number of elements of a tensor.
fn elements(ty: &Type) -> i64 {
    let bytes = ty.bytes().unwrap_or_default();
    bytes.checked_div(ty.dtype.size()).unwrap_or_default() as i64
}
