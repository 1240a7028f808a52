//! The target of a plan.
use crate::cost::machine;
use irc_ark_format::plan::Architecture;

/// More processors than any device has; the checks reject a plan that names more.
const MAX_PROCESSORS: i64 = 4096;

/// The target of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The architecture.
    pub architecture: Architecture,
    /// Processors to use.
    pub processors: i64,
}

impl Target {
    /// A target; by default with all processors of the architecture's largest device.
    ///
    /// # Errors
    /// No processors, or more than the architecture has.
    pub fn new(architecture: Architecture, processors: Option<i64>) -> Result<Self, String> {
        let processors = processors.unwrap_or_else(|| machine(architecture).processors);
        let limit = architecture.max_processors().unwrap_or(MAX_PROCESSORS);
        if !(1..=limit).contains(&processors) {
            let name = architecture.name();
            return Err(format!("expected 1 to {limit} processors on {name}, found {processors}"));
        }
        Ok(Self { architecture, processors })
    }
}

/// Parses the name of an architecture.
///
/// # Errors
/// The valid names.
pub fn architecture(name: &str) -> Result<Architecture, String> {
    Architecture::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Architecture::ALL.iter().map(|known| known.name()).collect();
        format!("expected one of {}, found '{name}'", known.join(", "))
    })
}
