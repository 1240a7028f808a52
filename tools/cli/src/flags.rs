//! Which flags apply to which inputs and outputs: one table, from which follow what the commands reject,
//! their help and a page.
use crate::{
    InputKind::{self, *},
    MODELS,
};
use clap::{ArgMatches, parser::ValueSource};
use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

/// A command: what it reads, and what it writes where that is a choice.
pub struct CommandRow {
    /// The name of the subcommand of `irc`, or of the tool.
    pub name: &'static str,
    /// The kinds of file that it takes.
    pub inputs: &'static [InputKind],
}

/// The commands that take several kinds of file.
pub static COMMANDS: [CommandRow; 6] = [
    CommandRow { name: "compile", inputs: &[ArkModel, CommonIr, Layers, Mlir, Plan, Schedule] },
    CommandRow {
        name: "run",
        inputs: &[ArkModel, CommonIr, Layers, Mlir, Plan, Program, Library, Archive, Ptx],
    },
    CommandRow {
        name: "check",
        inputs: &[ArkModel, CommonIr, Layers, Mlir, Plan, Schedule, Program, Archive, Ptx],
    },
    CommandRow {
        name: "bench",
        inputs: &[ArkModel, CommonIr, Layers, Mlir, Plan, Library, Archive, Ptx],
    },
    CommandRow { name: "tune", inputs: &[ArkModel, CommonIr, Layers] },
    CommandRow { name: TRANSLATE, inputs: &[ArkModel, CommonIr, Mlir, Schedule, Program] },
];

impl CommandRow {
    /// The command of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        COMMANDS.iter().find(|row| row.name == name)
    }
}

const TRANSLATE: &str = "irc-translate";

/// Flags that apply to some inputs and outputs only. One that no row names applies to all; one that several
/// rows of its command name applies where one of them says so.
#[derive(Clone, Copy)]
pub struct FlagRow {
    /// The commands, by the names in [`COMMANDS`].
    pub commands: &'static [&'static str],
    /// The flags, as written on the command line.
    pub flags: &'static [&'static str],
    /// The inputs that they apply to; empty for all.
    pub inputs: &'static [InputKind],
    /// The outputs that they apply to, by suffix or by flag; empty for all.
    pub outputs: &'static [&'static str],
    /// Why they have no effect on an input, where what they apply to does not say it.
    pub reasons: &'static [(InputKind, &'static str)],
}

/// Outputs of `irc compile` that depend on the processor.
const HOST_CODE: &[&str] = &[".so", ".o", ".ll", ".s", ".c", ".mlir", ".tar"];

/// Outputs of `irc compile` whose kernels are fused.
const CODE: &[&str] = &[".so", ".o", ".ll", ".s", ".c", ".mlir", ".tar", ".ptx"];

/// How a model is scheduled for an NPU.
const NPU: &[&str] = &["--target", "--batch", "--objective", "--set-tree", "--explain-schedule"];

/// How a model is quantised.
const QUANTISE: &[&str] =
    &["--calibrate", "--calibrate-method", "--quantize", "--quantize-results"];

/// Inputs that are compiled to be run.
const COMPILED: &[InputKind] = &[ArkModel, CommonIr, Layers, Mlir, Plan];

/// Models whose results can be chosen.
const GRAPHS: &[InputKind] = &[ArkModel, CommonIr, Layers];

/// The reason of flags that say how to compile.
const DONE: &str = "it is already compiled";

/// Every flag that does not apply everywhere.
pub static FLAGS: &[FlagRow] = &[
    flags(&["compile", "check", "bench", "tune"], READING).of(&[CommonIr]),
    flags(&["run"], READING).of(&[CommonIr, Program]),
    flags(&["run", "bench"], &["--shape"]).of(&[Library, Archive]),
    flags(&["check"], &["--compat"]).of(&[CommonIr]),
    flags(&["compile", "bench", "tune"], &["--ark-accumulate"]).of(&[ArkModel]),
    flags(&["run"], &["--ark-accumulate"]).of(&[ArkModel]).why(&[
        (Plan, "the tasks of a plan accumulate in f32"),
        (Program, DONE),
        (Library, DONE),
        (Archive, DONE),
        (Ptx, DONE),
    ]),
    flags(&["compile"], QUANTISE).of(&[ArkModel, CommonIr, Schedule]),
    flags(&["run"], QUANTISE).of(&[ArkModel, CommonIr, Program]),
    // irc compile.
    flags(&["compile"], &["--backend"])
        .to(&[".so", ".o", ".ll", ".s", ".mlir", ".tar", ".ptx"])
        .of(MODELS),
    flags(&["compile"], &["--backend"]).to(&[".so", ".ll", ".mlir", ".tar", ".ptx"]).of(&[Plan]),
    flags(&["compile"], &["--stage"]).to(&[".mlir"]),
    flags(&["compile"], &["--frontend"]).to(&[".asm"]),
    flags(&["compile"], &["--model"]).to(&[".asm"]).of(&[Schedule]),
    flags(&["compile"], &["--arch"]).to(&[".json", ".ptx", ".so", ".tar", ".ll", ".mlir"]),
    flags(&["compile"], &["--timestamps", "--no-persistent"])
        .to(&[".ptx", ".so", ".tar", ".ll", ".mlir"]),
    flags(&["compile"], &["--processors", "--planner", "--config-rules"]).to(&[".json"]),
    flags(&["compile"], NPU)
        .to(&[".json", ".asm"])
        .of(MODELS)
        .why(&[(Schedule, "a schedule states its NPU")]),
    flags(&["compile"], &["--dialect"])
        .to(&[".json"])
        .of(MODELS)
        .why(&[(Schedule, "its program does not depend on it")]),
    flags(&["compile"], &["--report"])
        .to(&[".json", ".asm"])
        .of(MODELS)
        .why(&[(Schedule, "a schedule states its NPU")]),
    flags(&["compile"], &["--host-fallback"]).to(&[".json", ".asm"]).of(MODELS).why(&[(
        Schedule,
        "the program of one part of a model does not run by itself: compile the model",
    )]),
    flags(
        &["compile"],
        &[
            "--mlf-version",
            "--codegen",
            "--check-reproducible",
            "--with-test-vectors",
            "--model-name",
        ],
    )
    .to(&[".tar"]),
    flags(&["compile"], &["--inputs"]).of(&[CommonIr]),
    flags(&["compile"], &["--inputs"]).to(&[".tar"]),
    flags(&["compile"], &["--target-cpu"]).to(HOST_CODE).of(MODELS),
    flags(&["compile"], &["--explain-fusion"]).to(CODE).of(MODELS),
    flags(&["compile"], &["--tuning"]).to(&[".so", ".tar", ".o", ".ll", ".s"]).of(GRAPHS),
    flags(&["compile"], &["--results"]).to(CODE).of(GRAPHS),
    flags(&["compile"], &["--results"]).to(&[".json"]).of(&[CommonIr, Layers]),
    // irc run and irc bench.
    flags(&["run", "bench"], &["--tuning"]).of(GRAPHS).why(&[
        (Plan, "the tasks of a plan state their schedules"),
        (Mlir, "a module has no default schedules to replace"),
        (Program, DONE),
        (Library, DONE),
        (Archive, DONE),
        (Ptx, DONE),
    ]),
    flags(&["run"], &["--target-cpu"]).of(COMPILED).why(&[
        (Program, DONE),
        (Library, DONE),
        (Archive, DONE),
        (Ptx, DONE),
    ]),
    flags(&["run"], &["--arch"]).of(COMPILED).why(&[
        (Program, DONE),
        (Library, DONE),
        (Archive, DONE),
        (Ptx, DONE),
    ]),
    flags(&["bench"], &["--arch"]).of(COMPILED).why(&[
        (Library, DONE),
        (Archive, DONE),
        (Ptx, DONE),
    ]),
    flags(&["run"], &["--backend"])
        .of(&[ArkModel, CommonIr, Layers, Mlir, Plan, Ptx, Library, Archive])
        .why(&[(Program, DONE)]),
    flags(&["run"], &["--results"]).of(GRAPHS).why(&[
        (Plan, "a plan states which buffers it keeps"),
        (Mlir, "a module states its results"),
        (Program, "it computes the outputs of its model"),
        (Library, DONE),
        (Archive, DONE),
        (Ptx, DONE),
    ]),
    flags(&["run"], &["--explain-fusion"]).of(MODELS).why(&[
        (Plan, "the tasks of a plan are already fused"),
        (Program, DONE),
        (Library, DONE),
        (Archive, DONE),
        (Ptx, DONE),
    ]),
    flags(&["run"], &["--model"]).of(&[Program]),
    flags(&["run"], &["--data-set"]).of(&[CommonIr]),
    flags(&["run"], &["--self-test"]).of(&[Archive]),
    flags(&["run"], &["--trace"]).of(&[Plan]),
    flags(&["run"], &["--trace"]).of(&[ArkModel, CommonIr, Layers, Mlir, Ptx, Library, Archive]),
    flags(&["run"], &["--race-check"]).of(&[Plan]),
    flags(&["run"], &["--race-check", "--max-instructions"])
        .of(&[ArkModel, CommonIr, Layers, Mlir, Plan, Ptx, Library, Archive]),
    flags(&["bench"], &["--profile"])
        .of(&[ArkModel, CommonIr, Layers, Mlir, Library, Archive])
        .why(&[(Plan, "`irc run --trace` shows the tasks of a plan")]),
    flags(&["bench"], &["--in-place"]).of(&[ArkModel, CommonIr, Layers, Mlir, Library]),
    flags(&["bench"], &["--inputs"]).of(&[ArkModel, CommonIr, Layers, Mlir, Library, Archive, Ptx]),
    // irc check.
    flags(&["check"], &["--model"]).of(&[Plan]),
    flags(&["check"], &["--cost"]).of(&[ArkModel, CommonIr, Layers, Mlir, Plan, Schedule]),
    flags(&["check"], NPU).of(MODELS),
    flags(&["check"], &["--host-fallback"]).of(MODELS),
    flags(&["check"], &["--target", "--objective"]).of(&[Schedule]),
    flags(&["check"], &["--against"]).of(&[Program]),
    flags(&["check"], &["--strict"]).of(&[ArkModel, Plan, Schedule, Layers]),
    // irc-translate.
    flags(&[TRANSLATE], &["--arch", "--processors", "--planner", "--config-rules"])
        .to(&["--emit-plan"]),
    flags(&[TRANSLATE], NPU)
        .to(&["--emit-gemini", "--emit-npu"])
        .of(&[ArkModel, CommonIr, Mlir])
        .why(&[(Schedule, "a schedule states its NPU"), (Program, "a program states its NPU")]),
    flags(&[TRANSLATE], &["--dialect"]).to(&["--emit-gemini"]).of(&[ArkModel, CommonIr, Mlir]),
    flags(&[TRANSLATE], &["--frontend"]).of(&[Schedule]),
    flags(&[TRANSLATE], &["--strict"]).of(&[ArkModel, Schedule]),
    flags(&[TRANSLATE], IMPORTING).of(&[CommonIr]).to(&["--emit-ark", "--emit-plan", "--emit-mlf"]),
    flags(&[TRANSLATE], &["--library-path", "--allow-fetch", "--bundle"]).of(&[CommonIr]),
    flags(&[TRANSLATE], &["--library-path", "--allow-fetch", "--bundle", "--encoding"])
        .to(&["--emit-common-ir", "--emit-onnx"]),
    flags(&[TRANSLATE], &["--common-ir-fields", "--inline"]).to(&["--emit-onnx"]),
];

/// How Common IR and ONNX files are read. `--format` says that a file is one.
const READING: &[&str] = &[
    "--library-path",
    "--allow-fetch",
    "--shape",
    "--cache",
    "--implicit-std",
    "--functions",
    "--ignore-control-inputs",
    "--assume-stated-shapes",
];

/// How their graphs are imported.
const IMPORTING: &[&str] = &[
    "--shape",
    "--cache",
    "--implicit-std",
    "--functions",
    "--ignore-control-inputs",
    "--assume-stated-shapes",
];

const fn flags(commands: &'static [&'static str], flags: &'static [&'static str]) -> FlagRow {
    FlagRow { commands, flags, inputs: &[], outputs: &[], reasons: &[] }
}

impl FlagRow {
    const fn of(self, inputs: &'static [InputKind]) -> Self {
        Self { inputs, ..self }
    }

    const fn to(self, outputs: &'static [&'static str]) -> Self {
        Self { outputs, ..self }
    }

    const fn why(self, reasons: &'static [(InputKind, &'static str)]) -> Self {
        Self { reasons, ..self }
    }

    fn takes_input(&self, input: InputKind) -> bool {
        self.inputs.is_empty() || self.inputs.contains(&input)
    }

    fn takes_output(&self, output: Option<&str>) -> bool {
        output.is_none_or(|output| self.outputs.is_empty() || self.outputs.contains(&output))
    }

    /// What the flags apply to, in words.
    fn scope(&self) -> String {
        let outputs = self.outputs.join(", ");
        match (self.outputs.is_empty(), self.inputs.is_empty()) {
            (true, _) => plural(self.inputs),
            (false, true) => outputs,
            (false, false) => format!("{outputs} of {}", plural(self.inputs)),
        }
    }
}

/// Kinds of file in words.
fn plural(kinds: &[InputKind]) -> String {
    let has_all = MODELS.iter().all(|kind| kinds.contains(kind));
    let others = kinds.iter().filter(|kind| !has_all || !MODELS.contains(kind));
    let mut words: Vec<&str> = has_all.then_some("models").into_iter().collect();
    words.extend(others.map(|kind| kind.plural()));
    words.join(", ")
}

/// The rows of a flag.
fn rows(command: &str, flag: &str) -> impl Iterator<Item = &'static FlagRow> {
    FLAGS.iter().filter(move |row| row.commands.contains(&command) && row.flags.contains(&flag))
}

/// What a flag of a command applies to, in words; `None` for everything.
pub fn scope(command: &str, flag: &str) -> Option<String> {
    let scopes: Vec<String> = rows(command, flag).map(FlagRow::scope).collect();
    (!scopes.is_empty()).then(|| scopes.join("; "))
}

/// Why a flag of a command has no effect on an input or an output; `None` where it has one.
pub fn rejection(
    command: &str,
    flag: &str,
    inputs: &[InputKind],
    output: Option<&str>,
) -> Option<String> {
    let rows: Vec<_> = rows(command, flag).collect();
    let takes = |row: &&FlagRow| {
        row.takes_output(output)
            && (inputs.is_empty() || inputs.iter().any(|input| row.takes_input(*input)))
    };
    if rows.is_empty() || rows.iter().any(takes) {
        return None;
    }
    let is_of_output = !rows.iter().any(|row| row.takes_output(output));
    let (on, why) = match (inputs.first(), output) {
        (Some(input), _) if !is_of_output => {
            let reasons = || rows.iter().flat_map(|row| row.reasons);
            let reason = reasons().find(|(kind, _)| kind == input).map(|(_, why)| *why);
            (input.words(), reason.map(str::to_owned))
        }
        (_, output) => (output.unwrap_or_default(), None),
    };
    let why = why.or_else(|| Some(format!("it applies to {}", scope(command, flag)?)))?;
    Some(format!("{flag} has no effect on {on}: {why}"))
}

/// Arguments that name files that commands read.
const READ: &[&str] = &[
    "against",
    "calibrate",
    "config_rules",
    "expected",
    "file",
    "files",
    "frontend",
    "input",
    "inputs",
    "model",
    "models",
    "numbers_of",
    "program",
    "ranks",
    "schedule",
    "set_tree",
    "tuning",
    "weights",
];

/// Arguments that name files that commands write.
const WRITTEN: &[&str] = &["html", "output", "outputs", "report", "trace"];

/// A file of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The flag that names it; `None` for an argument without a flag.
    pub flag: Option<String>,
    /// Its path; `-` is standard input or output.
    pub path: PathBuf,
}

/// The flags and files that a command was given.
#[derive(Clone, Debug)]
pub struct Flags {
    command: String,
    given: Vec<String>,
    read: Vec<NamedFile>,
    written: Vec<NamedFile>,
}

impl Flags {
    /// The flags that have another value than by default.
    pub(crate) fn of(command: &clap::Command, matches: &ArgMatches) -> Self {
        let is_given = |argument: &&clap::Arg| {
            let id = argument.get_id().as_str();
            let is_written = matches.value_source(id) == Some(ValueSource::CommandLine);
            let values = matches.get_raw(id).into_iter().flatten();
            is_written
                && !values.eq(argument.get_default_values().iter().map(|value| value.as_os_str()))
        };
        let given = command.get_arguments().filter(is_given);
        let given = given.filter_map(clap::Arg::get_long).map(|flag| format!("--{flag}"));
        let mut written = files(command, matches, WRITTEN);
        if matches.try_get_one("json").ok().flatten() == Some(&true) {
            written.push(NamedFile { flag: Some("--json".to_owned()), path: "-".into() });
        }
        Self {
            command: command.get_name().to_owned(),
            given: given.collect(),
            read: files(command, matches, READ),
            written,
        }
    }

    /// The files that the command line names as inputs.
    pub fn read(&self) -> &[NamedFile] {
        &self.read
    }

    /// The files that the command line names as outputs; `--json` is one on standard output.
    pub fn written(&self) -> &[NamedFile] {
        &self.written
    }

    /// Rejects a flag that has no effect on any of these inputs, or on the output.
    ///
    /// # Errors
    /// The flag, what it has no effect on, and why.
    pub fn expect(&self, inputs: &[InputKind], output: Option<&str>) -> Result<(), String> {
        let mut rejections =
            self.given.iter().filter_map(|flag| rejection(&self.command, flag, inputs, output));
        rejections.next().map_or(Ok(()), Err)
    }
}

/// The files that some arguments name.
fn files(command: &clap::Command, matches: &ArgMatches, ids: &[&str]) -> Vec<NamedFile> {
    let named =
        command.get_arguments().filter(|argument| ids.contains(&argument.get_id().as_str()));
    let of_argument = |argument: &clap::Arg| {
        let flag = argument.get_long().map(|flag| format!("--{flag}"));
        let values = matches.get_raw(argument.get_id().as_str()).into_iter().flatten();
        let file = |path| NamedFile { flag: flag.clone(), path: Path::new(path).to_owned() };
        values.map(file).collect::<Vec<_>>()
    };
    named.flat_map(of_argument).collect()
}

/// Adds what each flag applies to to its help. Flags take negative numbers, so that the message about one
/// that is out of range is that of the flag.
pub(crate) fn annotated(command: clap::Command) -> clap::Command {
    let name = command.get_name().to_owned();
    command.mut_subcommands(annotated).mut_args(|argument| {
        let flag = format!("--{}", argument.get_long().unwrap_or_default());
        let is_value = argument.get_long().is_some() && argument.get_action().takes_values();
        let argument = argument.allow_negative_numbers(is_value);
        let (Some(scope), Some(help)) = (scope(&name, &flag), argument.get_help().cloned()) else {
            return argument;
        };
        argument.help(format!("{help} [applies to: {scope}]"))
    })
}

/// The flags that do not apply everywhere, in Markdown.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "## Flags\n\nFlags that apply to some inputs or outputs only. Elsewhere they are usage errors; `irc check`\n\
         accepts them if they apply to one of the files.\n\n| command | flags | apply to |\n|---|---|---|\n",
    );
    for command in &COMMANDS {
        let mut scopes: Vec<(String, Vec<&str>)> = vec![];
        for flag in FLAGS.iter().flat_map(|row| row.flags) {
            let Some(scope) = scope(command.name, flag) else { continue };
            match scopes.iter_mut().find(|(known, _)| *known == scope) {
                Some((_, flags)) if flags.contains(flag) => {}
                Some((_, flags)) => flags.push(flag),
                None => scopes.push((scope, vec![flag])),
            }
        }
        for (scope, flags) in scopes {
            let flags = flags.join("`, `");
            let _ = writeln!(page, "| `{}` | `{flags}` | {scope} |", command.name);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_flags_of_its_commands() {
        let mut irc = crate::irc_command();
        irc.build();
        let translate = crate::translate_command();
        for row in FLAGS {
            for name in row.commands {
                let command = irc.find_subcommand(name).unwrap_or(&translate);
                for flag in row.flags {
                    let is_known = command.get_arguments().any(|argument| {
                        argument.get_long().is_some_and(|long| format!("--{long}") == **flag)
                    });
                    assert!(is_known, "{name} {flag}");
                }
            }
        }
    }

    #[test]
    fn a_flag_applies_where_one_of_its_rows_says_so() {
        let inputs = |kind, output| rejection("compile", "--inputs", &[kind], Some(output));
        assert_eq!(inputs(CommonIr, ".so"), None);
        assert_eq!(inputs(ArkModel, ".tar"), None);
        assert_eq!(
            inputs(ArkModel, ".so").as_deref(),
            Some(
                "--inputs has no effect on an ARK model: it applies to Common IR and ONNX files; .tar"
            )
        );
    }

    #[test]
    fn every_path_is_read_or_written_or_a_folder() {
        let mut irc = crate::irc_command();
        irc.build();
        let translate = crate::translate_command();
        for command in irc.get_subcommands().chain([&translate]) {
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                let is_path = argument.get_value_parser().type_id()
                    == clap::builder::ValueParser::path_buf().type_id();
                let is_known = READ.contains(&id)
                    || WRITTEN.contains(&id)
                    || ["library_path", "allow_fetch", "data_set"].contains(&id);
                assert!(is_known || !is_path, "{} {id}", command.get_name());
            }
        }
    }

    #[test]
    fn a_value_that_is_the_default_is_no_flag() {
        let parse = |flag| crate::parse_irc(&["irc", "run", "x.so", flag].map(str::to_owned));
        let flags = |flag| parse(flag).expect("valid").1;
        assert_eq!(flags("--backend=llvm").expect(&[Library], None), Ok(()));
        let error = flags("--backend=cranelift").expect(&[Program], None).expect_err("no effect");
        assert_eq!(error, "--backend has no effect on an NPU program: it is already compiled");
        assert!(flags("--explain-fusion").expect(&[Library], None).is_err());
    }

    #[test]
    fn one_of_several_files_is_enough() {
        let flags = crate::parse_irc(&["irc", "check", "--strict", "x"].map(str::to_owned));
        let (_, flags) = flags.expect("valid");
        assert_eq!(flags.expect(&[CommonIr, Plan], None), Ok(()));
        assert!(flags.expect(&[CommonIr], None).is_err());
    }

    #[test]
    fn help_says_what_a_flag_applies_to() {
        let mut irc = crate::irc_command();
        irc.build();
        let help = irc.find_subcommand_mut("compile").expect("a command").render_help();
        let help = help.to_string();
        assert!(help.contains("[applies to: .mlir]"), "{help}");
    }
}
