//! The description of a kernel for a GPU, in the first line of its PTX.
mod driver;

use crate::Interface;
use serde::{Deserialize, Serialize};

/// Before the description, in the first line.
const PREFIX: &str = "// irc: ";

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
}

/// The memory of a parameter: of an input, of an output, or of both; of neither for the workspace. It is aligned to 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// The number of the input whose value the memory holds before the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
    /// The number of the output whose value the memory holds after the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
}

impl GpuKernel {
    /// A kernel of a program whose inputs, outputs and workspace have memory of their own, in this order.
    pub fn of_program(entry: &str, interface: Interface, threads: u32) -> Self {
        let inputs =
            (0..interface.inputs.len()).map(|at| Parameter { input: Some(at), output: None });
        let outputs =
            (0..interface.outputs.len()).map(|at| Parameter { input: None, output: Some(at) });
        let parameters = inputs.chain(outputs).chain([Parameter::default()]).collect();
        Self {
            entry: entry.to_owned(),
            interface,
            parameters,
            blocks: None,
            threads,
            shared_bytes: 0,
        }
    }

    /// The line that describes it, without its end.
    pub fn to_line(&self) -> String {
        let parameters = serde_json::to_string(&self.parameters).unwrap_or_default();
        let blocks = self.blocks.map_or(String::new(), |blocks| format!(",\"blocks\":{blocks}"));
        format!(
            "{PREFIX}{{\"entry\":{},\"threads\":{},\"shared_bytes\":{}{blocks},\"parameters\":{parameters},\"interface\":{}}}",
            serde_json::Value::from(self.entry.as_str()),
            self.threads,
            self.shared_bytes,
            self.interface.to_json()
        )
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
            ..GpuKernel::of_program("irc_run", Interface::default(), 256)
        };
        let text = format!("{}\n.version 8.0\n", kernel.to_line());
        assert_eq!(GpuKernel::from_ptx(&text), Ok(kernel));
        assert!(GpuKernel::from_ptx(".version 8.0").is_err());
        assert!(GpuKernel::from_ptx("// irc: {}").is_err());
    }
}
