//! A program as a list of calls of functions on tensors, from which the graph is made.
use super::{ArchiveError, Buffer, Callee, MAX_ARGUMENTS, Step};
use crate::{
    attributes::KernelInfo,
    interface::{Interface, Port},
    lowering::{
        outline_kernels::Sizes,
        plan_memory::program::{Function, Step as ProgramStep, Value},
    },
};
use bytes::Bytes;
use irc_mlf::{Code, DataType, Type};
use irc_tensor::{ALIGNMENT, DType, TensorType, append_aligned};
use irc_tl::{Constant, Dim};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Ranks that every client supports.
const RANKS: std::ops::RangeInclusive<usize> = 1..=6;

/// What to do where archives cannot represent a model.
pub const LIBRARY_HELP: &str = "compile to a shared library (-o model.so) instead";

/// Maximum length in bytes of an input's name that every client supports.
const MAX_NAME: usize = 79;

/// A program as calls.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The inputs of the model, by name.
    pub inputs: Vec<(String, Type)>,
    /// The constants, some of which may be unused.
    pub constants: Vec<(Type, Bytes)>,
    /// The calls, in execution order.
    pub calls: Vec<Call>,
    /// The outputs: each is the result of a call, and no two are the same.
    pub outputs: Vec<Place>,
    /// The branches and loops that are called.
    pub steps: Vec<Step>,
}

/// The origin of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An input.
    Input(usize),
    /// A constant.
    Constant(usize),
    /// A call, and the index of one of its results.
    Result(usize, usize),
}

/// A call of a function.
#[derive(Clone, Debug)]
pub struct Call {
    /// What it does.
    pub callee: Callee,
    /// The tensors that it reads.
    pub inputs: Vec<Place>,
    /// The types of its results.
    pub results: Vec<Type>,
    /// The places of the callee's operands and results in its arguments.
    pub buffers: Vec<Buffer>,
}

/// The calls of a program; `weights` are the constants that are arguments of the function, by number.
///
/// # Errors
/// If sizes depend on the inputs.
pub fn draft(
    function: &Function<'_, '_>,
    interface: &Interface,
    weights: &[Constant],
    kernels: &BTreeMap<String, KernelInfo>,
) -> Result<Draft, ArchiveError> {
    expect_types(interface, function.is_dynamic())?;
    let roots = (0..function.types.len()).collect();
    let mut reader =
        Reader { function, kernels, draft: Draft::default(), places: BTreeMap::new(), roots };
    reader.arguments(interface, weights)?;
    for (position, (step, _)) in function.steps.iter().enumerate() {
        reader.step(position, step)?;
    }
    reader.outputs()?;
    Ok(reader.draft)
}

/// Fails for types that clients of archives do not have: strings, and symbolic sizes.
fn expect_types(interface: &Interface, is_dynamic: bool) -> Result<(), ArchiveError> {
    let sizes = is_dynamic.then(|| dynamic_sizes(interface));
    match (expect_no_strings(interface), sizes) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(sizes)) => Err(sizes),
        (Err(strings), None) => Err(strings),
        // Given sizes would not help.
        (Err(strings), Some(sizes)) => {
            let message = format!("{}; {}", strings.message, sizes.message);
            Err(ArchiveError { message, ..strings })
        }
    }
}

/// Fails for inputs and outputs that are strings.
pub fn expect_no_strings(interface: &Interface) -> Result<(), ArchiveError> {
    let given = interface.inputs.iter().filter(|port| port.weight.is_none());
    let strings = given.chain(&interface.outputs);
    let strings = strings.filter(|port| port.element_type() == Some(DType::String));
    let strings: Vec<String> =
        strings.map(|port| format!("'{}': {}", port.name, port.type_text())).collect();
    match strings.is_empty() {
        true => Ok(()),
        false => Err(ArchiveError {
            message: format!("clients of archives have no strings: {}", strings.join(", ")),
            help: Some(LIBRARY_HELP.to_owned()),
        }),
    }
}

/// The error of a program with symbolic sizes.
fn dynamic_sizes(interface: &Interface) -> ArchiveError {
    let is_open = |port: &&Port| port.weight.is_none() && port.shape.iter().any(|size| *size < 0);
    let open: Vec<&Port> = interface.inputs.iter().filter(is_open).collect();
    if open.is_empty() {
        return "a graph of an archive has fixed sizes, but some sizes depend on the values of inputs"
            .into();
    }
    let types: Vec<String> =
        open.iter().map(|port| format!("'{}': {}", port.name, port.type_text())).collect();
    let flags: Vec<String> =
        open.iter().map(|port| format!("--shape {}", port.example_shape())).collect();
    let names: BTreeSet<Arc<str>> = open.iter().flat_map(|port| symbols(port)).collect();
    ArchiveError {
        message: format!(
            "a graph of an archive has fixed sizes, but these inputs have dynamic sizes: {}",
            types.join(", ")
        ),
        help: Some(format!(
            "specify them, as with {}, or bound their dimensions, as with {}",
            flags.join(" "),
            bound_flags(&names)
        )),
    }
}

/// The names in the sizes of a port.
pub fn symbols(port: &Port) -> BTreeSet<Arc<str>> {
    port.sizes
        .iter()
        .filter_map(|size| size.parse::<Dim>().ok())
        .flat_map(|size| size.symbols())
        .collect()
}

/// Flags that bound dimensions.
pub fn bound_flags(names: &BTreeSet<Arc<str>>) -> String {
    names.iter().map(|name| format!("--shape {name}=1..64")).collect::<Vec<_>>().join(" ")
}

/// The type that clients see: a scalar has one element, tensors of unsupported rank become one-dimensional,
/// and unsupported element types become bytes.
pub fn type_of(ty: &TensorType) -> Result<Type, String> {
    let bytes = ty.byte_size().map_err(|error| error.to_string())? as i64;
    let dtype = DataType::of(ty.dtype);
    let elements = match dtype {
        Some(_) => ty.elements().map_err(|error| error.to_string())? as i64,
        None => bytes,
    };
    let is_taken = dtype.is_some() && RANKS.contains(&ty.shape.len());
    let shape = if is_taken { ty.shape.clone() } else { vec![elements] };
    Ok(Type { dtype: dtype.unwrap_or(BYTE), shape })
}

/// The element type of a concatenation of tensors.
const BYTE: DataType = DataType::scalar(Code::Uint, 8);

fn bytes_of(ty: &Type) -> i64 {
    ty.shape.iter().product::<i64>() * ty.dtype.size() as i64
}

struct Reader<'p, 'c, 'a> {
    function: &'p Function<'c, 'a>,
    kernels: &'p BTreeMap<String, KernelInfo>,
    draft: Draft,
    /// The places of values that are not views.
    places: BTreeMap<Value, Place>,
    /// The value whose memory each value uses.
    roots: Vec<Value>,
}

impl Reader<'_, '_, '_> {
    fn ty(&self, value: Value) -> Result<Type, String> {
        let known = self.function.types[value].known();
        type_of(&known.ok_or("expected a tensor of known sizes")?)
    }

    fn arguments(&mut self, interface: &Interface, weights: &[Constant]) -> Result<(), String> {
        for (value, port) in interface.inputs.iter().enumerate() {
            let place = match port.weight {
                None => {
                    let input = (plain_name(interface, value), self.ty(value)?);
                    self.draft.inputs.push(input);
                    Place::Input(self.draft.inputs.len() - 1)
                }
                Some(number) => {
                    let weight = usize::try_from(number).ok().and_then(|at| weights.get(at));
                    let weight = weight.ok_or_else(|| format!("there is no constant {number}"))?;
                    self.draft.constant(type_of(&weight.ty)?, weight.bytes.clone())
                }
            };
            self.places.insert(value, place);
        }
        Ok(())
    }

    fn step(&mut self, position: usize, step: &ProgramStep) -> Result<(), String> {
        let callee = match step {
            ProgramStep::View { from, to, .. } => {
                self.roots[*to] = self.roots[*from];
                return Ok(());
            }
            ProgramStep::Constant { bytes, to } => {
                let place = self.draft.constant(self.ty(*to)?, bytes.clone().into());
                self.places.insert(*to, place);
                return Ok(());
            }
            ProgramStep::Launch { callee, sizes, .. } => {
                Callee::Kernel(callee.clone(), self.sizes(callee, sizes)?)
            }
            ProgramStep::Call { .. } | ProgramStep::Loop { .. } => {
                self.draft.steps.push(Step { position });
                Callee::Step(self.draft.steps.len() - 1)
            }
            ProgramStep::Size { .. } | ProgramStep::Check { .. } | ProgramStep::Host { .. } => {
                unreachable!("such a function is dynamic")
            }
        };
        let inputs = step.operands().iter().map(|value| self.places[&self.roots[*value]]).collect();
        let results = step.results();
        let types = results.iter().map(|value| self.ty(*value)).collect::<Result<_, _>>()?;
        let made = self.draft.call(callee, inputs, types);
        self.places.extend(results.into_iter().zip(made));
        Ok(())
    }

    /// The sizes that a kernel takes, which are constant.
    fn sizes(&self, kernel: &str, passed: &[Dim]) -> Result<Vec<i64>, String> {
        let kernel = self.kernels.get(kernel).ok_or_else(|| format!("there is no '{kernel}'"))?;
        let size = |symbol: &String| {
            let size = Sizes::outside(&Dim::symbol(symbol), passed).known();
            size.ok_or_else(|| format!("the size '{symbol}' of a kernel is not known"))
        };
        kernel.symbols.iter().map(size).collect()
    }

    /// Makes every output the result of a call, distinct from the others, and of the declared type.
    fn outputs(&mut self) -> Result<(), String> {
        for value in &self.function.results {
            let place = self.places[&self.roots[*value]];
            let ty = self.ty(*value)?;
            match place {
                Place::Result(call, result) if !self.draft.outputs.contains(&place) => {
                    self.draft.calls[call].results[result] = ty;
                    self.draft.outputs.push(place);
                }
                _ => {
                    let copy = Callee::Copy(vec![bytes_of(&ty)]);
                    let call = self.draft.add(copy, &[(place, 0)], vec![ty], &[(0, 0)]);
                    self.draft.outputs.push(Place::Result(call, 0));
                }
            }
        }
        Ok(())
    }
}

impl Draft {
    /// Adds a constant; constants with equal elements are shared.
    fn constant(&mut self, ty: Type, data: Bytes) -> Place {
        let is_same = |(known, bytes): &(Type, Bytes)| {
            *known == ty && (bytes.as_ptr() == data.as_ptr() || *bytes == data)
        };
        let constants = &mut self.constants;
        let known = constants.iter().position(is_same);
        Place::Constant(known.unwrap_or_else(|| {
            constants.push((ty, data));
            constants.len() - 1
        }))
    }

    /// Adds a call with at most as many arguments as every client supports: if there are more, its
    /// constants are concatenated, then its inputs, then its results. Returns the places of its results.
    pub fn call(&mut self, callee: Callee, inputs: Vec<Place>, results: Vec<Type>) -> Vec<Place> {
        let mut inputs: Vec<(Place, i64)> = inputs.into_iter().map(|place| (place, 0)).collect();
        if distinct(&inputs).len() + results.len() > MAX_ARGUMENTS {
            self.join_constants(&mut inputs);
        }
        if distinct(&inputs).len() + results.len() > MAX_ARGUMENTS {
            self.gather(&mut inputs);
        }
        if distinct(&inputs).len() + results.len() > MAX_ARGUMENTS {
            return self.split(callee, &inputs, &results);
        }
        let buffers = (0..results.len()).map(|result| (result, 0)).collect::<Vec<_>>();
        let call = self.add(callee, &inputs, results, &buffers);
        (0..buffers.len()).map(|result| Place::Result(call, result)).collect()
    }

    /// Concatenates the constants of a call.
    fn join_constants(&mut self, inputs: &mut [(Place, i64)]) {
        let (mut data, mut offsets) = (vec![], BTreeMap::new());
        for (place, _) in inputs.iter() {
            let Place::Constant(number) = place else { continue };
            if !offsets.contains_key(place) {
                let offset = append_aligned(&mut data, &self.constants[*number].1);
                offsets.insert(*place, offset as i64);
            }
        }
        if offsets.len() > 1 {
            let ty = Type { dtype: BYTE, shape: vec![data.len() as i64] };
            let all = self.constant(ty, data.into());
            for (place, offset) in inputs {
                if let Some(known) = offsets.get(place) {
                    (*place, *offset) = (all, *known);
                }
            }
        }
    }

    /// Concatenates the inputs of a call that are not constants, several at a time.
    fn gather(&mut self, inputs: &mut [(Place, i64)]) {
        let is_copied = |(place, _): &&(Place, i64)| !matches!(place, Place::Constant(_));
        let copied: Vec<(Place, i64)> = inputs.iter().filter(is_copied).copied().collect();
        let mut places = BTreeMap::new();
        for chunk in distinct(&copied).chunks(MAX_ARGUMENTS - 1) {
            let bytes: Vec<i64> = chunk.iter().map(|place| bytes_of(self.ty(*place))).collect();
            let (ty, offsets) = laid_out(&bytes);
            let sources: Vec<(Place, i64)> = chunk.iter().map(|place| (*place, 0)).collect();
            let targets: Vec<_> = offsets.iter().map(|offset| (0, *offset)).collect();
            let call = self.add(Callee::Copy(bytes), &sources, vec![ty], &targets);
            let made = offsets.into_iter().map(|offset| (Place::Result(call, 0), offset));
            places.extend(chunk.iter().copied().zip(made));
        }
        for input in inputs {
            if let Some(known) = places.get(&input.0) {
                *input = *known;
            }
        }
    }

    /// Adds a call that writes all its results to one tensor, from which they are copied.
    fn split(&mut self, callee: Callee, inputs: &[(Place, i64)], results: &[Type]) -> Vec<Place> {
        let bytes: Vec<i64> = results.iter().map(bytes_of).collect();
        let (ty, offsets) = laid_out(&bytes);
        let targets: Vec<_> = offsets.iter().map(|offset| (0, *offset)).collect();
        let all = self.add(callee, inputs, vec![ty], &targets);
        let copies = results.iter().zip(bytes).zip(offsets);
        let copies = copies.map(|((ty, bytes), offset)| {
            let from = (Place::Result(all, 0), offset);
            Place::Result(
                self.add(Callee::Copy(vec![bytes]), &[from], vec![ty.clone()], &[(0, 0)]),
                0,
            )
        });
        copies.collect()
    }

    /// Adds a call with inputs at offsets in places; `targets` are the result and the offset that each
    /// result of the callee is written to.
    fn add(
        &mut self,
        callee: Callee,
        inputs: &[(Place, i64)],
        results: Vec<Type>,
        targets: &[(usize, i64)],
    ) -> usize {
        let arguments = distinct(inputs);
        let index = |place: &Place| arguments.iter().position(|known| known == place);
        let read = inputs.iter().filter_map(|(place, offset)| {
            Some(Buffer { argument: index(place)?, offset: *offset })
        });
        let written = targets
            .iter()
            .map(|(result, offset)| Buffer { argument: arguments.len() + result, offset: *offset });
        let buffers = read.chain(written).collect();
        self.calls.push(Call { callee, inputs: arguments, results, buffers });
        self.calls.len() - 1
    }

    /// The type of a tensor.
    pub fn ty(&self, place: Place) -> &Type {
        match place {
            Place::Input(number) => &self.inputs[number].1,
            Place::Constant(number) => &self.constants[number].0,
            Place::Result(call, result) => &self.calls[call].results[result],
        }
    }
}

/// The distinct places, in order.
fn distinct(inputs: &[(Place, i64)]) -> Vec<Place> {
    let mut found = vec![];
    for (place, _) in inputs {
        if !found.contains(place) {
            found.push(*place);
        }
    }
    found
}

/// A tensor that concatenates others, and the offset of each in it.
fn laid_out(bytes: &[i64]) -> (Type, Vec<i64>) {
    let (mut end, mut offsets) = (0i64, vec![]);
    for bytes in bytes {
        offsets.push(end);
        end += (bytes + ALIGNMENT as i64 - 1) / ALIGNMENT as i64 * ALIGNMENT as i64;
    }
    (Type { dtype: BYTE, shape: vec![end] }, offsets)
}

/// A name that every client supports: that of the input, or else a unique name with its number.
pub fn plain_name(interface: &Interface, number: usize) -> String {
    let is_plain = |byte: u8| (byte.is_ascii_graphic() || byte == b' ') && !b"\"\\".contains(&byte);
    let name = &interface.inputs[number].name;
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_plain) {
        return name.clone();
    }
    let mut made = format!("input_{number}");
    while interface.inputs.iter().any(|port| port.name == made) {
        made.push('_');
    }
    made
}
