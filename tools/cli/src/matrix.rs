//! Which outputs can be made from which inputs: tables, read by the commands, their page and a test.

use crate::Kind;
use clap::ValueEnum;
use std::fmt::Write;

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// An ARK model.
    ArkModel,
    /// Common IR or ONNX, in any form.
    CommonIr,
    /// Layers of a network: a Gemini frontend file.
    Layers,
    /// MLIR after any stage.
    Mlir,
    /// An ARK plan.
    Plan,
    /// A Gemini schedule.
    Schedule,
    /// An NPU program.
    Program,
    /// A shared library.
    Library,
    /// A Model Library Format archive.
    Archive,
    /// PTX.
    Ptx,
}

/// Whether an output can be made from an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Yes,
    /// It does on this condition.
    If(&'static str),
    /// It does not, for this reason.
    No(&'static str),
}

impl InputKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::ArkModel,
        Self::CommonIr,
        Self::Layers,
        Self::Mlir,
        Self::Plan,
        Self::Schedule,
        Self::Program,
        Self::Library,
        Self::Archive,
        Self::Ptx,
    ];

    /// The kind in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ArkModel => "an ARK model",
            Self::CommonIr => "a Common IR or ONNX file",
            Self::Layers => "a Gemini frontend file",
            Self::Mlir => "MLIR",
            Self::Plan => "an ARK plan",
            Self::Schedule => "a Gemini schedule",
            Self::Program => "an NPU program",
            Self::Library => "a shared library",
            Self::Archive => "an archive",
            Self::Ptx => "PTX",
        }
    }

    /// Several of the kind in words.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ArkModel => "ARK models",
            Self::CommonIr => "Common IR and ONNX files",
            Self::Layers => "Gemini frontend files",
            Self::Mlir => "MLIR",
            Self::Plan => "ARK plans",
            Self::Schedule => "Gemini schedules",
            Self::Program => "NPU programs",
            Self::Library => "shared libraries",
            Self::Archive => "archives",
            Self::Ptx => "PTX",
        }
    }

    /// Whether `irc compile` can make an output from this input.
    pub const fn support(self, output: Kind) -> Support {
        use Kind::{Asm, Json, Mlir, Ptx as Gpu};
        use Support::{If, No, Yes};
        match (self, output) {
            (Self::Library | Self::Archive | Self::Ptx, _) => No("it is already compiled"),
            (Self::Program, _) => No(
                "it is already a program; irc simulate runs its schedule with it, and irc-translate reads it as MLIR",
            ),
            (Self::Schedule, Asm) => Yes,
            (Self::Schedule, _) => No(
                "a schedule states when and where the NPU computes; it is compiled to an NPU program (.asm), and \
                 irc-translate reads it as MLIR",
            ),
            (Self::Plan, Gpu) => If("the plans of all ranks are given"),
            (Self::Mlir, Kind::Tar) => {
                If("the module is at the tensor level, and the sizes are known")
            }
            (_, Gpu) => If("the sizes are known, and the GPU has the operations"),
            (Self::Plan, Asm) => No("a plan is for GPUs; NPU programs are made of its model"),
            (_, Asm) => If(
                "`--target npu:mesh=WxH` is given, the NPU has the operations, and the sizes are known",
            ),
            (Self::Plan, Mlir) => Yes,
            (Self::Plan, Json) => No("it is already a plan"),
            (Self::Plan, Kind::So | Kind::Tar | Kind::Ll) => {
                If("`--backend cuda` and the plans of all ranks are given")
            }
            (Self::Plan, _) => {
                No("the executor runs its tasks (irc run); a library is made from its model")
            }
            (Self::ArkModel, Json) => If(
                "the architecture has kernels for its ops; with `--target npu:mesh=WxH`, the NPU has its operations",
            ),
            (_, Json) => If(
                "ARK, or with `--target npu:mesh=WxH` the NPU, has the operations, and the sizes are known",
            ),
            (_, Kind::Tar) => If("the sizes are known"),
            (Self::Mlir, Mlir) => If("the stage is not before that of the module"),
            _ => Yes,
        }
    }
}

/// The kinds of file that have a program at the tensor level.
pub const MODELS: &[InputKind] =
    &[InputKind::ArkModel, InputKind::CommonIr, InputKind::Layers, InputKind::Mlir];

/// What `irc-translate` writes, from which inputs, and from what else it could be made; MLIR is written from
/// every input, and every output from MLIR.
pub static TRANSLATIONS: [(&str, &[InputKind], &str); 7] = [
    ("--emit-ark", &[InputKind::ArkModel, InputKind::CommonIr], OF_MODELS),
    ("--emit-plan", &[InputKind::ArkModel, InputKind::CommonIr], OF_MODELS),
    (
        "--emit-gemini",
        &[InputKind::ArkModel, InputKind::CommonIr, InputKind::Schedule],
        "Gemini schedules are made from models (--import-ark, --import-onnx, --import-common-ir) and from Gemini \
         schedules (--import-gemini)",
    ),
    (
        "--emit-npu",
        &[InputKind::ArkModel, InputKind::CommonIr, InputKind::Schedule, InputKind::Program],
        "NPU programs are made from models (--import-ark, --import-onnx, --import-common-ir), from Gemini schedules \
         (--import-gemini) and from NPU programs (--import-npu)",
    ),
    (
        "--emit-mlf",
        &[InputKind::ArkModel, InputKind::CommonIr],
        "archives are made from models (--import-ark, --import-onnx, --import-common-ir); `irc compile -o x.tar` \
         takes Gemini frontend files too",
    ),
    ("--emit-common-ir", &[InputKind::CommonIr], OF_GRAPHS),
    ("--emit-onnx", &[InputKind::CommonIr], OF_GRAPHS),
];

const OF_MODELS: &str =
    "ARK models and plans are made from models (--import-ark, --import-onnx, --import-common-ir)";
const OF_GRAPHS: &str = "Common IR and ONNX files are made from Common IR and ONNX files (--import-common-ir, --import-onnx)";

/// The page of the table, in Markdown.
pub fn matrix_page() -> String {
    let outputs: Vec<(Kind, String)> = Kind::value_variants()
        .iter()
        .filter_map(|kind| Some((*kind, kind.to_possible_value()?.get_name().to_owned())))
        .collect();
    let mut notes: Vec<&str> = vec![];
    let mut page = String::from(
        "# Inputs and outputs\n\n\
         The outputs that `irc compile` makes from each kind of input. A number refers to a note: the\n\
         condition after *if*, the reason after *no*. `irc run`, `irc bench` and `irc check` take models of\n\
         every format; plans, libraries and archives can be run and benchmarked too. This page is written\n\
         by `cargo xtask docs` from the table that the command reads, and a test tries each cell.\n\n| |",
    );
    for (_, name) in &outputs {
        let _ = write!(page, " .{name} |");
    }
    page += "\n|---|";
    page += &"---|".repeat(outputs.len());
    for input in InputKind::ALL {
        let _ = write!(page, "\n| {} |", input.words());
        for (output, _) in &outputs {
            let mut note = |text| match notes.iter().position(|known| *known == text) {
                Some(known) => known + 1,
                None => {
                    notes.push(text);
                    notes.len()
                }
            };
            let _ = match input.support(*output) {
                Support::Yes => write!(page, " yes |"),
                Support::If(text) => write!(page, " if {} |", note(text)),
                Support::No(text) => write!(page, " no {} |", note(text)),
            };
        }
    }
    page += "\n\n";
    for (number, note) in notes.iter().enumerate() {
        let _ = writeln!(page, "{}. {note}", number + 1);
    }
    page + "\n" + &crate::flags::page()
}
