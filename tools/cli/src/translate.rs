//! `irc-translate`: from a file format to MLIR and back.
use crate::{Console, Dialect, EXIT_CODES, Graphs, Npu, Planner, common::whole};
use clap::{ArgGroup, Args, CommandFactory, Parser, ValueEnum};
use std::path::PathBuf;

/// Translate between file formats and MLIR; one command may import and emit
#[derive(Parser, Clone, Debug)]
#[command(
    name = "irc-translate",
    version,
    group = ArgGroup::new("direction").multiple(true).required(true),
    after_help = format!(
        "Examples:\n  \
         irc-translate --import-ark model.json -o model.mlir\n  \
         irc-translate --emit-ark model.mlir -o model.json\n  \
         irc-translate --import-ark --emit-plan --arch CUDA_80 model.json -o plan.json\n  \
         irc-translate --import-ark < model.json | irc-opt --compile-to=fuse\n  \
         irc-translate --import-onnx model.onnx | irc-opt --common-ir-to-tl\n  \
         irc-translate --import-onnx --emit-onnx model.onnx -o model.pbtxt\n  \
         irc-translate --import-gemini schedule.json --frontend layers.json --emit-npu -o net.asm\n  \
         irc-translate --import-npu net.npu --emit-npu -o net.asm\n  \
         irc-translate --import-onnx --emit-gemini --target npu:mesh=2x2 model.onnx -o schedule.json\n  \
         irc-translate --import-common-ir --bundle --emit-common-ir model.pb -o whole.pb\n\n{EXIT_CODES}"
    )
)]
pub struct Translate {
    /// Input file; - for standard input
    #[arg(default_value = "-", value_name = "IN")]
    pub input: String,
    /// Output file, compressed if it ends in .gz; - for standard output
    #[arg(short, long, default_value = "-", value_name = "OUT")]
    pub output: PathBuf,
    /// The input format.
    #[command(flatten)]
    pub import: Import,
    /// The output format.
    #[command(flatten)]
    pub emit: Emit,
    /// Treat unknown keys as errors
    #[arg(long)]
    pub strict: bool,
    /// Device of a plan: ANY, CUDA, CUDA_80, ROCM_942, … [default: CUDA_80]
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
    /// Number of processors that a plan may use [default: all of the device]
    #[arg(long, value_name = "N", value_parser = whole(1_u32..))]
    pub processors: Option<u32>,
    /// Planner of a plan: irc optimises, ark reproduces ARK's own planner
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub planner: Planner,
    /// JSON file that fixes configs of ops in a plan; see docs/config-rules.md
    #[arg(long, value_name = "FILE")]
    pub config_rules: Option<PathBuf>,
    /// Frontend file of a Gemini schedule
    #[arg(long, value_name = "F")]
    pub frontend: Option<PathBuf>,
    /// Dialect of the schedule of a model
    #[arg(long, value_enum, value_name = "DIALECT", ignore_case = true)]
    pub dialect: Option<Dialect>,
    /// The NPU.
    #[command(flatten)]
    pub npu: Npu,
    /// Options for reading Common IR and ONNX files.
    #[command(flatten)]
    pub graphs: Graphs,
    /// Options for writing Common IR and ONNX files.
    #[command(flatten)]
    pub writing: Writing,
    /// How messages are printed.
    #[command(flatten)]
    pub console: Console,
}

/// Options for writing Common IR and ONNX files.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Common IR and ONNX")]
pub struct Writing {
    /// Copy imported libraries into the module, so that it has no imports
    #[arg(long)]
    pub bundle: bool,
    /// Encoding [default: from the suffix: .json, .pbtxt or .textproto, else binary]
    #[arg(long, value_enum, value_name = "ENCODING")]
    pub encoding: Option<TextOrBinary>,
    /// Write features that only Common IR has to additional fields of the ONNX model
    #[arg(long)]
    pub common_ir_fields: bool,
    /// Write external data into the ONNX model
    #[arg(long)]
    pub inline: bool,
}

/// An encoding of Protobuf messages.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOrBinary {
    /// Protobuf's wire format.
    Binary,
    /// Protobuf's text format.
    Text,
    /// Protobuf's JSON mapping.
    Json,
}

macro_rules! formats {
    ($(#[$doc:meta])* $name:ident $group:literal $heading:literal: $($(#[$flag_doc:meta])* $flag:ident)*) => {
        $(#[$doc])*
        #[derive(Args, Clone, Debug)]
        #[command(next_help_heading = $heading, group = ArgGroup::new($group).multiple(false))]
        pub struct $name {
            $($(#[$flag_doc])* #[arg(long, groups = [$group, "direction"])] pub $flag: bool,)*
        }

        impl $name {
            /// The flag that was given, as written on the command line.
            pub fn flag(&self) -> Option<String> {
                let given = [$((stringify!($flag), self.$flag)),*];
                let (name, _) = given.into_iter().find(|(_, given)| *given)?;
                Some(format!("--{}", name.replace('_', "-")))
            }
        }
    };
}

formats! {
    /// The input format; without a flag it is MLIR.
    Import "import" "Input format (default: MLIR)":
    /// Read an ARK model file
    import_ark
    /// Read a Common IR graph or library
    import_common_ir
    /// Read an ONNX model
    import_onnx
    /// Read a Gemini schedule
    import_gemini
    /// Read an NPU program: a listing, a trace, or the binary form
    import_npu
}

formats! {
    /// The output format; without a flag it is MLIR.
    Emit "emit" "Output format (default: MLIR)":
    /// Write an ARK model file
    emit_ark
    /// Write an ARK execution plan
    emit_plan
    /// Write an NPU program: a listing, or the binary form if OUT ends in .npu
    emit_npu
    /// Write a Gemini schedule
    emit_gemini
    /// Write a Model Library Format archive for this machine, as irc compile -o x.tar does
    emit_mlf
    /// Write a Common IR graph or library
    emit_common_ir
    /// Write an ONNX model
    emit_onnx
}

/// Rewrites long flags with one dash, which LLVM's tools accept too, to two dashes.
pub fn double_dashes(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let command = Translate::command();
    let known: Vec<&str> = command.get_arguments().filter_map(|flag| flag.get_long()).collect();
    let rewrite = |argument: String| {
        let name = argument.strip_prefix('-').map(|rest| rest.split('=').next().unwrap_or(rest));
        match name {
            Some(name) if known.contains(&name) => format!("-{argument}"),
            _ => argument,
        }
    };
    arguments.into_iter().map(rewrite).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Translate::command().debug_assert();
    }

    #[test]
    fn a_direction_is_required_and_each_is_given_once() {
        let parse = |flags: &[&str]| {
            Translate::try_parse_from(["irc-translate"].iter().chain(flags)).map(|_| ())
        };
        assert!(parse(&["--import-ark"]).is_ok());
        assert!(parse(&["--import-ark", "--emit-plan"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["--import-ark", "--import-onnx"]).is_err());
        assert!(parse(&["--emit-ark", "--emit-plan"]).is_err());
    }

    #[test]
    fn one_dash_is_accepted_like_two() {
        let given = ["irc-translate", "-import-ark", "-o", "-", "-arch=CUDA_80", "--strict"];
        let rewritten = double_dashes(given.map(str::to_owned));
        let expected = ["irc-translate", "--import-ark", "-o", "-", "--arch=CUDA_80", "--strict"];
        assert_eq!(rewritten, expected);
    }
}
