//! The ops' definitions in ODS, for mlir-tblgen.

use super::names::{attr_name, mnemonic};
use irc_ark_format::model::{ArgKind, Argument, OpKind, Row};

/// The definitions of all node ops: the file `dialects/ark/ops.td`, which the dialect's `ark.td`
/// includes after its dependencies.
fn ods() -> String {
    let header = "// Written by `cargo xtask docs` from the rows of the crate `irc-ark-format`; edit those \
                  instead.\n";
    let rows = OpKind::ALL.iter().map(|kind| definition(kind.row()));
    header.to_owned() + &rows.collect::<String>()
}

fn definition(row: &Row) -> String {
    let mnemonic = mnemonic(row.kind);
    let arguments: Vec<String> = row.args.iter().map(argument).collect();
    let arguments = match arguments.is_empty() {
        true => String::new(),
        false => format!(", (ins {})", arguments.join(", ")),
    };
    let kind = if row.kind.is_virtual() { " (virtual)" } else { "" };
    format!(
        "\ndef Ark_{}Op\n    : Ark_Node<\"{mnemonic}\", \"{}{kind}: {}\"{arguments}>;\n",
        camel_case(&mnemonic),
        row.name,
        row.summary
    )
}

fn camel_case(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    };
    name.split('_').map(word).collect()
}

fn argument(argument: &Argument) -> String {
    let kind = match argument.kind {
        ArgKind::Int | ArgKind::Int64 | ArgKind::Uint32 | ArgKind::Uint64 => "I64Attr",
        ArgKind::Bool => "BoolAttr",
        ArgKind::Float => "F32Attr",
        ArgKind::Dims => "DenseI64ArrayAttr",
        ArgKind::Tensor | ArgKind::Offset => "DictionaryAttr",
    };
    format!("{kind}:${}", attr_name(argument.name))
}

#[test]
fn the_definitions_are_those_of_the_rows() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("ark/ops.td");
    let expected = ods();
    if std::env::var_os("IRC_BLESS").is_some() {
        std::fs::write(&path, &expected).expect("the file can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "dialects/ark/ops.td is out of date: run cargo xtask docs");
}
