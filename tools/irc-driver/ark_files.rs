//! Files beside ARK models that were converted from other models, with the names of their buffers.
use crate::{
    console::Console,
    error::Error,
    output::{self, Content},
    values,
};
use irc_ark_model::ArkModel;
use std::path::{Path, PathBuf};

/// Stages, beside a model or plan at `output`, the names of its buffers (`.buffers.json`) and the elements
/// of its constants (`.constants.npz`), which ARK files cannot represent. Does nothing for a model that was
/// an ARK model, or if the output is not a file.
pub fn stage_beside(
    console: &Console,
    output: &Path,
    ark: &ArkModel,
) -> Result<Vec<output::Stream>, Error> {
    if ark.buffers.is_empty() {
        return Ok(vec![]);
    }
    if output.as_os_str() == "-" {
        console.note("the names of buffers and the constants are written beside a file only: give one with -o");
        return Ok(vec![]);
    }
    let names = beside(output, "buffers.json");
    let mut staged = vec![output::stage(&names, ark.names().as_bytes(), Content::Text)?];
    let constants = ark.constants().map_err(|error| Error::problem(error.to_string()))?;
    if !constants.is_empty() {
        staged.push(values::stage(&beside(output, "constants.npz"), &constants)?);
    }
    Ok(staged)
}

/// The files that [`stage_beside`] may write.
pub fn beside_all(output: &Path) -> Vec<PathBuf> {
    match output::is_stdout(output) {
        true => vec![],
        false => ["buffers.json", "constants.npz"].map(|suffix| beside(output, suffix)).to_vec(),
    }
}

/// `net.plan.buffers.json` beside `net.plan.json`.
fn beside(output: &Path, suffix: &str) -> PathBuf {
    output.with_extension(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_have_the_name_of_the_output() {
        assert_eq!(
            beside(Path::new("a/net.plan.json"), "buffers.json"),
            Path::new("a/net.plan.buffers.json")
        );
    }
}
