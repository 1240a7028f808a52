//! The description of a kernel for a GPU, in the first line of its PTX, and its constants, in its last lines.
mod driver;
pub mod record;

use crate::{Interface, Port};
use base64::{Engine, prelude::BASE64_STANDARD};
use irc_tensor::{Tensor, TensorType};
use record::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Before the description, in the first line.
const PREFIX: &str = "// irc: ";

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

/// The memory of a parameter: of an input, of an output, or of both; of the constants; of the record; of events; else the
/// workspace. It is aligned to 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// The number of the input whose value the memory holds before the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
    /// The number of the output whose value the memory holds after the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
    /// Whether the memory holds the constants of the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub constants: bool,
    /// Whether the memory holds the record of the launch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record: bool,
    /// Whether the memory holds the times of events after the launch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trace: bool,
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
    Record,
    /// Events, zero before the launch.
    Trace,
}

impl GpuKernel {
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
        if let Some(first) = launches.first() {
            self.entry.clone_from(first);
        }
        self.launches = launches;
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
        format!(
            "{PREFIX}{{\"entry\":{},\"threads\":{},\"shared_bytes\":{},\"constant_bytes\":{}{blocks},\"parameters\":{parameters},\"interface\":{},\"steps\":{steps}{launches}}}",
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

    /// The name and the contents of the memory of a parameter, given inputs by name and the PTX. Inputs that are not given
    /// are zero.
    ///
    /// # Errors
    /// An input of another type, a type without a size, or constants that are not in base64.
    pub fn contents(
        &self,
        parameter: Parameter,
        given: &BTreeMap<String, Tensor>,
        ptx: &str,
    ) -> Result<(String, Contents), String> {
        if parameter.constants {
            let bytes = Self::constants(ptx)?;
            if bytes.len() as u64 != self.constant_bytes {
                let (expected, found) = (self.constant_bytes, bytes.len());
                return Err(format!(
                    "the PTX is incomplete: expected {expected} bytes of constants, found {found}"
                ));
            }
            return Ok(("constants".to_owned(), Contents::Constants(bytes)));
        }
        if parameter.record {
            return Ok(("record".to_owned(), Contents::Record));
        }
        if parameter.trace {
            return Ok(("events".to_owned(), Contents::Trace));
        }
        let input = parameter.input.map(|input| &self.interface.inputs[input]);
        let output = || parameter.output.map(|output| &self.interface.outputs[output]);
        let Some(port) = input.or_else(output) else {
            let bytes = usize::try_from(self.interface.workspace_bytes);
            let bytes = bytes.map_err(|_| "the workspace does not fit in memory")?;
            return Ok(("workspace".to_owned(), Contents::Unwritten(bytes)));
        };
        let ty = Self::type_of(port)?;
        let size = ty.byte_size().map_err(|error| error.to_string())?;
        let contents = match input.and_then(|input| given.get(&input.name)) {
            Some(tensor) if tensor.ty() == &ty => Contents::Bytes(tensor.bytes().to_vec()),
            Some(tensor) => {
                return Err(format!("input '{}': expected {ty}, found {}", port.name, tensor.ty()));
            }
            // An output of a plan is a buffer, which is zero at the start.
            None if input.is_some() || self.blocks.is_some() => Contents::Bytes(vec![0; size]),
            None => Contents::Unwritten(size),
        };
        Ok((port.name.clone(), contents))
    }

    /// The type of an input or output.
    ///
    /// # Errors
    /// An unknown element type, or an extent that is not known.
    pub fn type_of(port: &Port) -> Result<TensorType, String> {
        port.tensor_type().ok_or_else(|| format!("'{}' has no known type", port.name))
    }

    /// PTX without its constants.
    fn code(text: &str) -> &str {
        match text.find(CONSTANTS) {
            Some(at) => &text[..at],
            None => text,
        }
    }

    /// The description in PTX.
    ///
    /// # Errors
    /// If irc has not written it.
    pub fn from_ptx(text: &str) -> Result<Self, String> {
        let line = text.lines().next().and_then(|line| line.strip_prefix(PREFIX));
        let line = line.ok_or("expected PTX of irc, whose first line describes its kernel")?;
        let wrong = |what: &str| format!("the first line of the PTX: expected {what}");
        let value: serde_json::Value =
            serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
        let number = |key: &str| value[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let parameters: Vec<Parameter> = serde_json::from_value(value["parameters"].clone())
            .map_err(|error| wrong(&error.to_string()))?;
        let steps = serde_json::from_value(value["steps"].clone());
        let steps: Vec<Step> = steps.map_err(|error| wrong(&error.to_string()))?;
        let launches = match &value["launches"] {
            serde_json::Value::Null => vec![],
            some => {
                serde_json::from_value(some.clone()).map_err(|error| wrong(&error.to_string()))?
            }
        };
        let interface = Interface::from_json(&value["interface"].to_string())?;
        let inside = |at: Option<usize>, count: usize| at.is_none_or(|at| at < count);
        let known = |parameter: &Parameter| {
            inside(parameter.input, interface.inputs.len())
                && inside(parameter.output, interface.outputs.len())
        };
        if !parameters.iter().all(known) {
            return Err(wrong("parameters of the interface"));
        }
        Ok(Self {
            entry: value["entry"].as_str().ok_or_else(|| wrong("an entry point"))?.to_owned(),
            interface,
            parameters,
            blocks: number("blocks"),
            shared_bytes: value["shared_bytes"].as_u64().unwrap_or(0),
            constant_bytes: value["constant_bytes"].as_u64().unwrap_or(0),
            steps,
            launches,
            threads: number("threads")
                .filter(|threads| (1..=1024).contains(threads))
                .ok_or_else(|| wrong("1 to 1024 threads"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_describes_the_kernel() {
        let kernel = GpuKernel {
            blocks: Some(4),
            constant_bytes: 10_000,
            ..GpuKernel::of_program("irc_run", Interface::default(), 256, true)
        };
        let constants: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let text = String::from_utf8(kernel.describe(b".version 8.0\n", &constants)).expect("text");
        assert_eq!(GpuKernel::from_ptx(&text), Ok(kernel));
        assert_eq!(GpuKernel::constants(&text), Ok(constants));
        assert!(GpuKernel::code(&text).ends_with(".version 8.0\n"));
        assert!(GpuKernel::constants("// irc-constants: ?").is_err());
        assert!(GpuKernel::from_ptx(".version 8.0").is_err());
        assert!(GpuKernel::from_ptx("// irc: {}").is_err());
    }
}
