//! What a plan is made for.
use crate::cost::machine;
use irc_ark_format::plan::Architecture;

/// Processors no device has; a plan that names more is rejected by its checks.
const MAX_PROCESSORS: i64 = 4096;

/// What a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The architecture.
    pub architecture: Architecture,
    /// Processors to use.
    pub processors: i64,
}

impl Target {
    /// A target; without a number of processors all of the architecture's largest device.
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

/// The architecture of a name.
///
/// # Errors
/// The names there are.
pub fn architecture(name: &str) -> Result<Architecture, String> {
    Architecture::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Architecture::ALL.iter().map(|known| known.name()).collect();
        format!("expected an architecture of {}, found '{name}'", known.join(", "))
    })
}
