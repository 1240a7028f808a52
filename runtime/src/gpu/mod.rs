//! The description of a kernel for a GPU, in the first line of its PTX, and its constants, in its last lines.
mod driver;
mod execution;
pub mod record;

pub use execution::{Execution, capability};

use crate::{
    Interface, Port,
    interface::{interface_of, number, texts},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use irc_diag::Sink;
use irc_json::{At, Format, Node, Reader};
use irc_tensor::{Tensor, TensorType};
use record::Step;
use serde::Serialize;
use std::collections::BTreeMap;

/// Before a part of the constants, in base64.
const CONSTANTS: &str = "// irc-constants: ";

/// Bytes of constants in a line.
const LINE: usize = 3072;

/// A kernel that runs a whole program: it is launched once, cooperatively.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuKernel {
    /// The name of its entry point.
    pub entry: String,
    /// The program's inputs and outputs, and the size of its workspace.
    pub interface: Interface,
    /// What each parameter points to.
    pub parameters: Vec<Parameter>,
    /// The number of blocks, if it is given by the program; otherwise any number that the GPU can run at once.
    pub blocks: Option<u32>,
    /// The number of blocks of each rank, if there are several: those of a rank follow each other.
    pub ranks: Vec<u32>,
    /// The number of threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block, beside that which the PTX declares with a size.
    pub shared_bytes: u64,
    /// Bytes of constants in the PTX.
    pub constant_bytes: u64,
    /// The steps that threads record.
    pub steps: Vec<Step>,
    /// The entry points that are launched one after the other, if there are several; then `entry` is the first.
    pub launches: Vec<String>,
}

/// The memory of a parameter: of an input, of an output, or of both; of the constants; of the record; of events; of ranks
/// only; else the workspace. It is aligned to 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// The number of the input whose value the memory holds before the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
    /// The number of the output whose value the memory holds after the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
    /// Whether the memory holds the constants of the program.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub constants: bool,
    /// Whether the memory holds the record of the launch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub record: bool,
    /// Whether the memory holds the times of events after the launch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trace: bool,
    /// The bytes of memory that is zero before the launch, and that only processors of ranks use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeroed: Option<u64>,
    /// The rank whose memory it is, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

/// What the memory of a parameter holds before the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Bytes that the kernel only reads.
    Constants(Vec<u8>),
    /// So many bytes, which the kernel has to write before it reads them.
    Unwritten(usize),
    /// The record, in memory of the host, which is left after a fault.
    Record(Vec<u8>),
    /// Events, zero before the launch.
    Trace(Vec<u8>),
}

impl GpuKernel {
    /// Before the description, in the first line.
    pub const PREFIX: &str = "// irc: ";

    /// A kernel of a program whose inputs, outputs, constants if it has any, workspace and record have memory of their own,
    /// in this order.
    pub fn of_program(
        entry: &str,
        interface: Interface,
        threads: u32,
        has_constants: bool,
    ) -> Self {
        let none = Parameter::default();
        let inputs = (0..interface.inputs.len()).map(|at| Parameter { input: Some(at), ..none });
        let outputs = (0..interface.outputs.len()).map(|at| Parameter { output: Some(at), ..none });
        let constants = has_constants.then_some(Parameter { constants: true, ..none });
        let last = [none, Parameter { record: true, ..none }];
        let parameters = inputs.chain(outputs).chain(constants).chain(last).collect();
        Self {
            entry: entry.to_owned(),
            interface,
            parameters,
            blocks: None,
            ranks: vec![],
            threads,
            shared_bytes: 0,
            constant_bytes: 0,
            steps: vec![],
            launches: vec![],
        }
    }

    /// Adds what the form of the program requires: the events, and the entry points if there are several.
    #[must_use]
    pub fn formed(mut self, timestamps: bool, launches: Vec<String>) -> Self {
        if timestamps {
            self.parameters.push(Parameter { trace: true, ..Parameter::default() });
        }
        // A single entry point has the name of the program's.
        if let [first, _, ..] = &launches[..] {
            self.entry.clone_from(first);
            self.launches = launches;
        }
        self
    }

    /// The entry points, which are launched one after the other.
    pub fn entries(&self) -> &[String] {
        if self.launches.is_empty() { std::slice::from_ref(&self.entry) } else { &self.launches }
    }

    /// The line that describes it, without its end.
    pub fn to_line(&self) -> String {
        let parameters = serde_json::to_string(&self.parameters).unwrap_or_default();
        let steps = serde_json::to_string(&self.steps).unwrap_or_default();
        let launches = match self.launches.is_empty() {
            true => String::new(),
            false => format!(",\"launches\":{}", serde_json::Value::from(self.launches.clone())),
        };
        let blocks = self.blocks.map_or(String::new(), |blocks| format!(",\"blocks\":{blocks}"));
        let ranks = match self.ranks.is_empty() {
            true => String::new(),
            false => format!(",\"ranks\":{}", serde_json::Value::from(self.ranks.clone())),
        };
        let prefix = Self::PREFIX;
        format!(
            "{prefix}{{\"entry\":{},\"threads\":{},\"shared_bytes\":{},\"constant_bytes\":{}{blocks}{ranks},\"parameters\":{parameters},\"interface\":{},\"steps\":{steps}{launches}}}",
            serde_json::Value::from(self.entry.as_str()),
            self.threads,
            self.shared_bytes,
            self.constant_bytes,
            self.interface.to_json()
        )
    }

    /// PTX with the description, and with constants.
    pub fn describe(&self, code: &[u8], constants: &[u8]) -> Vec<u8> {
        let mut text = self.to_line().into_bytes();
        text.push(b'\n');
        text.extend(code);
        for part in constants.chunks(LINE) {
            text.extend(CONSTANTS.as_bytes());
            text.extend(BASE64_STANDARD.encode(part).into_bytes());
            text.push(b'\n');
        }
        text
    }

    /// The constants in PTX; empty if it has none.
    ///
    /// # Errors
    /// If they are not in base64.
    pub fn constants(text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = vec![];
        for line in text.lines().filter_map(|line| line.strip_prefix(CONSTANTS)) {
            let part = BASE64_STANDARD.decode(line.trim_end());
            bytes.extend(part.map_err(|error| format!("the constants of the PTX: {error}"))?);
        }
        Ok(bytes)
    }

    /// The type of an input or output.
    ///
    /// # Errors
    /// An unknown element type, or an extent that is not known.
    pub fn type_of(port: &Port) -> Result<TensorType, String> {
        port.tensor_type().ok_or_else(|| format!("'{}' has no known type", port.name))
    }

    /// The description in PTX.
    ///
    /// # Errors
    /// If irc has not written it.
    pub fn from_ptx(text: &str) -> Result<Self, String> {
        let line = text.lines().next().and_then(|line| line.strip_prefix(Self::PREFIX));
        let line = line.ok_or("expected PTX of irc, whose first line describes its kernel")?;
        let mut sink = Sink::new();
        let tree = irc_json::tree(line, &FORMAT, &mut sink);
        let read = |tree| kernel(&mut Reader::new(&mut sink, &FORMAT, false), &tree);
        let kernel = tree.and_then(read);
        let wrong = |what: &str| format!("the first line of the PTX: {what}");
        let Some(kernel) = kernel.filter(|_| sink.diagnostics().is_empty()) else {
            let found = sink.diagnostics().first();
            return Err(wrong(found.map_or("no description", |found| &found.message)));
        };
        let inside = |at: Option<usize>, count: usize| at.is_none_or(|at| at < count);
        let known = |parameter: &Parameter| {
            inside(parameter.input, kernel.interface.inputs.len())
                && inside(parameter.output, kernel.interface.outputs.len())
        };
        if !kernel.parameters.iter().all(known) {
            return Err(wrong("expected parameters that are inputs and outputs of the interface"));
        }
        if !(1..=1024).contains(&kernel.threads) {
            return Err(wrong(&format!("expected 1 to 1024 threads, found {}", kernel.threads)));
        }
        for port in kernel.interface.inputs.iter().chain(&kernel.interface.outputs) {
            Self::type_of(port).map_err(|message| wrong(&message))?;
        }
        let of_ranks = kernel.ranks.iter().map(|blocks| u64::from(*blocks)).sum::<u64>();
        let is_owned = |parameter: &Parameter| inside(parameter.rank, kernel.ranks.len());
        let has_ranks = kernel.ranks.is_empty() || kernel.blocks.map(u64::from) == Some(of_ranks);
        match has_ranks && kernel.parameters.iter().all(is_owned) {
            true => Ok(kernel),
            false => Err(wrong("expected as many blocks as the ranks have, and memory of ranks")),
        }
    }
}

/// The names of diagnostics in the description of a kernel; only their messages are shown.
static FORMAT: Format = Format { file: "description", ..Format::of("description") };

fn kernel(r: &mut Reader<'_>, tree: &Node<'_>) -> Option<GpuKernel> {
    let object = r.object(tree, &At::ROOT)?;
    let [entry, threads, parameters, interface, steps] =
        ["entry", "threads", "parameters", "interface", "steps"]
            .map(|key| r.required(&object, key));
    let at = object.at;
    let entry = r.string(entry?, &at.key("entry"))?.to_owned();
    Some(GpuKernel {
        entry,
        interface: interface_of(r, interface?, &at.key("interface"))?,
        parameters: r.list(parameters?, &at.key("parameters"), parameter)?,
        blocks: number(r, &object, "blocks")?,
        ranks: match object.get("ranks") {
            Some(ranks) => {
                r.list(ranks, &at.key("ranks"), |r, blocks, at| r.integer(blocks, at, "a number"))?
            }
            None => vec![],
        },
        threads: r.integer(threads?, &at.key("threads"), "a number")?,
        shared_bytes: number(r, &object, "shared_bytes")?.unwrap_or(0),
        constant_bytes: number(r, &object, "constant_bytes")?.unwrap_or(0),
        steps: r.list(steps?, &at.key("steps"), record::step)?,
        launches: texts(r, &object, "launches")?,
    })
}

fn parameter(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Parameter> {
    let object = r.object(value, at)?;
    let (input, output) = (number(r, &object, "input")?, number(r, &object, "output")?);
    let [constants, record, trace] = ["constants", "record", "trace"]
        .map(|key| object.get(key).map_or(Some(false), |value| r.boolean(value, &at.key(key))));
    let (zeroed, rank) = (number(r, &object, "zeroed")?, number(r, &object, "rank")?);
    let (constants, record, trace) = (constants?, record?, trace?);
    Some(Parameter { input, output, constants, record, trace, zeroed, rank })
}

/// A kernel with its code and its constants.
#[derive(Clone, Debug)]
pub struct GpuProgram {
    /// The description of the kernel.
    pub kernel: GpuKernel,
    /// The PTX, whose first line is the description; its constants are not used.
    pub text: String,
    /// The constants.
    pub constants: Bytes,
}

impl GpuProgram {
    /// The program of a PTX file, with its constants.
    ///
    /// # Errors
    /// If irc has not written it, or it is incomplete.
    pub fn from_ptx(text: &str) -> Result<Self, String> {
        let constants = GpuKernel::constants(text)?.into();
        let code = text.find(CONSTANTS).map_or(text, |at| &text[..at]);
        Self::new(code.to_owned(), constants)
    }

    /// The program of PTX whose constants are elsewhere.
    ///
    /// # Errors
    /// As [`GpuProgram::from_ptx`].
    pub fn new(text: String, constants: Bytes) -> Result<Self, String> {
        let kernel = GpuKernel::from_ptx(&text)?;
        if constants.len() as u64 != kernel.constant_bytes {
            let (expected, found) = (kernel.constant_bytes, constants.len());
            return Err(format!(
                "the PTX is incomplete: expected {expected} bytes of constants, found {found}"
            ));
        }
        Ok(Self { kernel, text, constants })
    }

    /// The number of bytes of the memory of a parameter in a launch of some blocks.
    ///
    /// # Errors
    /// A type without a size.
    pub(crate) fn bytes_of(&self, parameter: Parameter, blocks: u32) -> Result<usize, String> {
        if parameter.constants {
            return Ok(self.constants.len());
        }
        if parameter.record {
            return Ok(self.kernel.record_bytes(blocks));
        }
        if parameter.trace {
            return self.kernel.trace_bytes(blocks);
        }
        if let Some(bytes) = parameter.zeroed {
            return usize::try_from(bytes).map_err(|_| "memory of ranks is too large".to_owned());
        }
        match self.port(parameter) {
            Some(port) => GpuKernel::type_of(port)?.byte_size().map_err(|error| error.to_string()),
            None => usize::try_from(self.kernel.interface.workspace_bytes)
                .map_err(|_| "the workspace does not fit in memory".to_owned()),
        }
    }

    /// The input or the output in the memory of a parameter.
    fn port(&self, parameter: Parameter) -> Option<&Port> {
        let interface = &self.kernel.interface;
        let input = parameter.input.map(|input| &interface.inputs[input]);
        input.or_else(|| parameter.output.map(|output| &interface.outputs[output]))
    }

    /// The name and the contents of the memory of a parameter in a launch of some blocks, given inputs by name. Inputs
    /// that are not given are zero. A block traps after it has waited for `patience` nanoseconds, unless that is 0.
    ///
    /// # Errors
    /// An input of another type, a type without a size, or more bytes than can be allocated.
    pub fn contents(
        &self,
        parameter: Parameter,
        given: &BTreeMap<String, Tensor>,
        blocks: u32,
        patience: u64,
    ) -> Result<(String, Contents), String> {
        let bytes = self.bytes_of(parameter, blocks)?;
        let zeros = |name: &str| {
            let mut zeros = Vec::new();
            zeros.try_reserve_exact(bytes).map_err(|_| unallocated(name, bytes))?;
            zeros.resize(bytes, 0);
            Ok::<_, String>(zeros)
        };
        if parameter.record {
            return Ok((
                "record".to_owned(),
                Contents::Record(self.kernel.record(blocks, patience, 0)),
            ));
        }
        if parameter.trace {
            return Ok(("events".to_owned(), Contents::Trace(zeros("events")?)));
        }
        if parameter.constants {
            return Ok(("constants".to_owned(), Contents::Constants(self.constants.to_vec())));
        }
        if parameter.zeroed.is_some() {
            let name = match parameter.rank {
                Some(rank) => format!("memory of rank {rank} that peers use"),
                None => "memory of the rank".to_owned(),
            };
            let bytes = zeros(&name)?;
            return Ok((name, Contents::Bytes(bytes)));
        }
        let Some(port) = self.port(parameter) else {
            return Ok(("workspace".to_owned(), Contents::Unwritten(bytes)));
        };
        let is_given = parameter.input.is_some();
        let contents = match given.get(&port.name).filter(|_| is_given) {
            Some(tensor) => {
                let bound = crate::bind(port, Some(tensor.clone()));
                Contents::Bytes(bound.map_err(|error| error.to_string())?.bytes().to_vec())
            }
            // An output of a plan is a buffer, which is zero at the start.
            None if is_given || self.kernel.blocks.is_some() => Contents::Bytes(zeros(&port.name)?),
            None => Contents::Unwritten(bytes),
        };
        Ok((port.name.clone(), contents))
    }
}

/// Why memory of a kernel is not there.
pub fn unallocated(name: &str, bytes: usize) -> String {
    format!("cannot allocate {name}: {bytes} bytes could not be allocated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_describes_the_kernel() {
        let kernel = GpuKernel {
            blocks: Some(4),
            ranks: vec![1, 3],
            constant_bytes: 10_000,
            ..GpuKernel::of_program("irc_run", Interface::default(), 256, true)
        };
        let constants: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let text = String::from_utf8(kernel.describe(b".version 8.0\n", &constants)).expect("text");
        assert_eq!(GpuKernel::from_ptx(&text), Ok(kernel));
        assert_eq!(GpuKernel::constants(&text), Ok(constants));
        let without = text.replace("\"threads\":256", "\"threads\":0");
        assert!(GpuKernel::from_ptx(&without).is_err());
        assert!(GpuKernel::from_ptx(&text.replace("\"ranks\":[1,3]", "\"ranks\":[1,2]")).is_err());
        let program = GpuProgram::from_ptx(&text).expect("a program");
        assert!(program.text.ends_with(".version 8.0\n"));
        assert!(GpuProgram::new(program.text, Bytes::new()).is_err());
        assert!(GpuKernel::constants("// irc-constants: ?").is_err());
        assert!(GpuKernel::from_ptx(".version 8.0").is_err());
        assert!(GpuKernel::from_ptx("// irc: {}").is_err());
    }
}
