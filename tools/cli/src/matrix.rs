//! Which output becomes of which input: tables, read by the commands, their page and a test.

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
    /// Layers of a network: a frontend file of Gemini.
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
}

/// Whether an input becomes an output.
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
    pub const ALL: [Self; 9] = [
        Self::ArkModel,
        Self::CommonIr,
        Self::Layers,
        Self::Mlir,
        Self::Plan,
        Self::Schedule,
        Self::Program,
        Self::Library,
        Self::Archive,
    ];

    /// The kind in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ArkModel => "an ARK model",
            Self::CommonIr => "a Common IR or ONNX file",
            Self::Layers => "a frontend file of Gemini",
            Self::Mlir => "MLIR",
            Self::Plan => "an ARK plan",
            Self::Schedule => "a Gemini schedule",
            Self::Program => "an NPU program",
            Self::Library => "a shared library",
            Self::Archive => "an archive",
        }
    }

    /// Several of the kind in words.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ArkModel => "ARK models",
            Self::CommonIr => "Common IR and ONNX files",
            Self::Layers => "frontend files of Gemini",
            Self::Mlir => "MLIR",
            Self::Plan => "ARK plans",
            Self::Schedule => "Gemini schedules",
            Self::Program => "NPU programs",
            Self::Library => "shared libraries",
            Self::Archive => "archives",
        }
    }

    /// Whether `irc compile` makes an output of this input.
    pub const fn support(self, output: Kind) -> Support {
        use Kind::{Asm, Json, Mlir, Ptx};
        use Support::{If, No, Yes};
        match (self, output) {
            (Self::Library | Self::Archive, _) => No("it is compiled already"),
            (Self::Program, _) => No(
                "it is a program already; irc simulate runs its schedule with it, and irc-translate reads it as MLIR",
            ),
            (Self::Schedule, Asm) => Yes,
            (Self::Schedule, _) => No(
                "a schedule states when and where the NPU computes; it becomes an NPU program (.asm), and \
                 irc-translate reads it as MLIR",
            ),
            (_, Ptx) => No("PTX is not implemented yet"),
            (_, Asm) => No("scheduling models for the NPU is not implemented yet"),
            (Self::Plan, Mlir) => Yes,
            (Self::Plan, Json) => No("it is a plan already"),
            (Self::Plan, _) => {
                No("the executor runs its tasks (irc run); a library is made of its model")
            }
            (Self::ArkModel, Json) => If("the architecture has kernels for its ops"),
            (_, Json) => If("ARK has the ops, and the sizes are known"),
            (Self::Mlir, Kind::Tar) => {
                If("the module is at the tensor level, and the sizes are known")
            }
            (_, Kind::Tar) => If("the sizes are known"),
            (Self::Mlir, Mlir) => If("the stage is not before that of the module"),
            _ => Yes,
        }
    }
}

/// The kinds of file that have a program at the tensor level.
pub const MODELS: &[InputKind] =
    &[InputKind::ArkModel, InputKind::CommonIr, InputKind::Layers, InputKind::Mlir];

/// What `irc-translate` writes, of which inputs, and what else it could be made of; MLIR is written of
/// every input, and becomes every output.
pub static TRANSLATIONS: [(&str, &[InputKind], &str); 6] = [
    ("--emit-ark", &[InputKind::ArkModel, InputKind::CommonIr], OF_MODELS),
    ("--emit-plan", &[InputKind::ArkModel, InputKind::CommonIr], OF_MODELS),
    (
        "--emit-gemini",
        &[InputKind::Schedule],
        "Gemini schedules are made of Gemini schedules (--import-gemini)",
    ),
    (
        "--emit-npu",
        &[InputKind::Schedule, InputKind::Program],
        "NPU programs are made of Gemini schedules (--import-gemini) and of NPU programs (--import-npu)",
    ),
    ("--emit-common-ir", &[InputKind::CommonIr], OF_GRAPHS),
    ("--emit-onnx", &[InputKind::CommonIr], OF_GRAPHS),
];

const OF_MODELS: &str =
    "ARK models and plans are made of models (--import-ark, --import-onnx, --import-common-ir)";
const OF_GRAPHS: &str =
    "Common IR and ONNX files are made of each other (--import-common-ir, --import-onnx)";

/// The page of the table, in Markdown.
pub fn matrix_page() -> String {
    let outputs: Vec<(Kind, String)> = Kind::value_variants()
        .iter()
        .filter_map(|kind| Some((*kind, kind.to_possible_value()?.get_name().to_owned())))
        .collect();
    let mut notes: Vec<&str> = vec![];
    let mut page = String::from(
        "# Inputs and outputs\n\n\
         What `irc compile` makes of each kind of input. A number is a note: a condition where it stands\n\
         behind *if*, a reason where it stands behind *no*. `irc run`, `irc bench` and `irc check` take\n\
         models of every format; plans, libraries and archives run and are measured too. This page is\n\
         written by `cargo xtask docs` from the table that the command reads, and a test tries each cell.\n\n| |",
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
