//! Model Library Format archives.
mod link;
mod run;

use crate::{console::Console, error::Error, output::Stream, values::Given};
use bytes::Bytes;
use irc::{ArchiveOptions, CompileOptions, Model, Session, Target, codegen::Output};
use irc_cli::CompileTo;
use irc_diag::{Diagnostic, Source};
use irc_mlf::{Contents, Depth, Package, Version, read};
use std::path::Path;

pub use run::{Loaded, kernel, run, self_test};

/// The creation time of artefacts in seconds since 1970, for reproducible builds.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The creation time of artefacts.
fn time() -> Result<u64, Error> {
    match std::env::var(EPOCH) {
        Err(_) => Ok(0),
        Ok(text) => text.parse().map_err(|_| {
            Error::Usage(format!("{EPOCH}: expected seconds since 1970, found '{text}'"))
        }),
    }
}

/// The options of the flags.
pub fn options(arguments: &CompileTo) -> Result<ArchiveOptions, Error> {
    let time = time()?;
    let version = match arguments.mlf_version.as_deref() {
        Some("7") => Version::V7,
        _ => Version::V5,
    };
    let default = ArchiveOptions::default().model;
    let model = arguments.model_name.clone().unwrap_or_else(|| default.clone());
    if version == Version::V5 && model != default {
        let message = format!("--model-name needs --mlf-version 7: in version 5 it is '{default}'");
        return Err(Error::Usage(message));
    }
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if model.is_empty() || !model.bytes().all(is_plain) {
        let expected = "expected printable ASCII without \" and \\, which every client takes";
        return Err(Error::Usage(format!("--model-name: {expected}; found '{model}'")));
    }
    Ok(ArchiveOptions { version, model, time })
}

/// Writes an archive, with test vectors if requested.
pub fn write(
    console: &Console,
    arguments: &CompileTo,
    model: &Model<'_>,
    compile: &CompileOptions,
) -> Result<(), Error> {
    let options = options(arguments)?;
    let step = console.step("compiling");
    let contents = model.archive(compile, &options)?;
    drop(step);
    if compile.target.backend.writes(Output::Object) {
        console.diagnostics(&model.source(), &model.slow_kernels(compile)?);
    }
    write_contents(console, arguments, contents, || {
        // In a new session, without cached results.
        let session = Session::new();
        Ok(model.in_session(&session).archive(compile, &options)?)
    })
}

/// Writes an archive with these contents, with test vectors if requested; `again` makes the contents once more.
pub fn write_contents(
    console: &Console,
    arguments: &CompileTo,
    mut contents: Contents,
    again: impl Fn() -> Result<Contents, Error>,
) -> Result<(), Error> {
    let path = &arguments.output;
    let mut package = built(path, &contents)?;
    if arguments.check_reproducible {
        let _step = console.step("compiling again");
        expect_equal(&package, &built(path, &again()?)?)?;
    }
    if arguments.with_test_vectors {
        let given = Given::open(arguments.inputs.as_deref())?;
        let vector = run::test_vector(console, &package, given)?;
        contents.models.iter_mut().for_each(|model| model.vectors.push(vector.clone()));
        package = built(path, &contents)?;
    }
    let stream = Stream::open(path)?;
    let written = package.archive.write(contents.time, &mut stream.writer()?);
    written.map_err(|error| Error::problem(format!("cannot write {}: {error}", path.display())))?;
    stream.finish()
}

/// The archive of a model with default options, for this machine; `path` is its name in messages.
pub fn compiled(console: &Console, path: &Path, model: &Model<'_>) -> Result<Vec<u8>, Error> {
    let step = console.step("compiling");
    model.observe(step.kernels());
    let options = ArchiveOptions { time: time()?, ..ArchiveOptions::default() };
    let contents = model.archive(Target::host(), &options)?;
    let mut bytes = vec![];
    let written = built(path, &contents)?.archive.write(contents.time, &mut bytes);
    written.map_err(|error| Error::problem(format!("cannot write {}: {error}", path.display())))?;
    Ok(bytes)
}

/// Fails if two compilations of the same program differ.
fn expect_equal(first: &Package, second: &Package) -> Result<(), Error> {
    let members = first.archive.members().iter();
    let differs = |(path, content): &(&String, &Bytes)| second.archive.get(path) != Some(*content);
    let found: Vec<&str> = members.filter(differs).map(|(path, _)| path.as_str()).collect();
    match found.is_empty() && first.archive == second.archive {
        true => Ok(()),
        false => {
            Err(Error::Internal(format!("the second compilation differs in {}", found.join(", "))))
        }
    }
}

fn built(path: &Path, contents: &Contents) -> Result<Package, Error> {
    irc_mlf::build(&path.display().to_string(), contents).map_err(|report| {
        let mut found: Vec<String> = report.all().map(|found| found.message.clone()).collect();
        found.dedup();
        Error::problem(format!("an archive cannot represent the model: {}", found.join("; ")))
    })
}

/// All diagnostics of an archive, by member; for a valid archive, only the archive itself.
pub fn check(name: &str, bytes: &Bytes) -> Vec<(Source, Vec<Diagnostic>)> {
    let (package, report) = read(name, bytes);
    let checked = package.map(|package| irc_mlf::check(&package, Depth::Content));
    let checked = checked.unwrap_or_default();
    let all = report.files().chain(checked.files());
    let mut found: Vec<_> = all.map(|file| (file.source.clone(), file.found.clone())).collect();
    if found.is_empty() {
        found.push((Source::new(name, ""), vec![]));
    }
    found
}
