//! `irc-translate` of Gemini schedules.
use super::{assembled, schedule};
use crate::{console::Console, output::Content, stop::Stop};
use irc_cli::Translate;
use irc_gemini_format::Options;
use irc_npu::{binary, listing};

/// The program that runs a schedule: a listing, or its binary form where the suffix is `.npu`.
pub fn program(console: &Console, arguments: &Translate) -> Result<(Vec<u8>, Content), Stop> {
    let options = Options { strict: arguments.strict, ..Options::default() };
    let frontend = arguments.frontend.as_deref();
    let (_, program) = assembled(console, &arguments.input, frontend, &options)?;
    if arguments.output.extension().is_some_and(|suffix| suffix == "npu") {
        return Ok((binary::encode(&program), Content::Binary));
    }
    Ok((listing::write(&program).into_bytes(), Content::Text))
}

/// A schedule as it was read.
pub fn written(console: &Console, arguments: &Translate) -> Result<(Vec<u8>, Content), Stop> {
    let options = Options { strict: arguments.strict, ..Options::default() };
    let (_, schedule) = schedule(console, &arguments.input, &options)?;
    Ok((irc_gemini_format::schedule::write(&schedule).into_bytes(), Content::Text))
}
