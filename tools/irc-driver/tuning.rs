//! `--tuning`: schedules that `irc tune` measured.
use crate::{console::Console, error::Error, input};
use irc::{CompileOptions, Model, session::tuning::Tuning};
use irc_diag::Source;
use std::path::Path;

/// The file of a flag, if it is given.
pub struct TuningFile(Option<Source>);

impl TuningFile {
    /// Reads the file, and has the options use its schedules.
    ///
    /// # Errors
    /// If it is damaged, or its schedules were measured on another processor than that of the code.
    pub fn open(path: Option<&Path>, options: &mut CompileOptions) -> Result<Self, Error> {
        let Some(path) = path else { return Ok(Self(None)) };
        let name = path.display().to_string();
        let source = input::source(&name, &input::read(&name)?);
        let tuning = Tuning::from_json(&source).map_err(|mut found| {
            found.iter_mut().for_each(|one| {
                one.help.get_or_insert_with(|| "irc tune writes tuning files".to_owned());
            });
            Error::Diagnostics(source.clone(), found)
        })?;
        if let Some(found) = tuning.check_processor(&options.target) {
            let mut found = vec![found];
            Tuning::locate(&source, &mut found);
            return Err(Error::Diagnostics(source, found));
        }
        options.tuning = tuning.into();
        Ok(Self(Some(source)))
    }

    /// Rejects the file if it is of another model, or has choices that the model's kernels do not have.
    ///
    /// # Errors
    /// Those, and errors in the model.
    pub fn check(
        &self,
        console: &Console,
        model: &Model<'_>,
        options: &CompileOptions,
    ) -> Result<(), Error> {
        let Some(source) = &self.0 else { return Ok(()) };
        let mut found = options.tuning.check(&model.tuned(options)?);
        Tuning::locate(source, &mut found);
        if found.iter().any(irc_diag::Diagnostic::is_error) {
            return Err(Error::Diagnostics(source.clone(), found));
        }
        console.diagnostics(source, &found);
        Ok(())
    }
}
