//! The ops' definitions in ODS, for mlir-tblgen.

use super::{Attribute, AttributeKind, Op, Operands, Presence, Row};
use std::fmt::Write;

/// The definitions of all ops, in the order of [`Op::rows`]: the file `dialects/tl/ops.td`, which the
/// dialect's `tl.td` includes after its dependencies.
pub fn ods() -> String {
    let mut text = String::from(
        "// Written by `cargo xtask docs` from the rows of the crate `irc-tl`; edit those instead.\n",
    );
    for row in Op::rows() {
        text.push('\n');
        text += &definition(row);
    }
    text
}

fn definition(row: &Row) -> String {
    let traits = if row.keeps_type { ", [SameOperandsAndResultType]" } else { "" };
    let mut text =
        format!("def Tl_{}Op : Tl_Pure<\"{}\"{traits}> {{\n", camel_case(row.name), row.name);
    let mut field = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  let {name} = {value};");
    };
    field("summary", quoted(row.summary));
    if !row.description.is_empty() {
        let indented = row.description.replace('\n', "\n    ").replace("\n    \n", "\n\n");
        field("description", format!("[{{\n    {indented}\n  }}]"));
    }
    let operands = match row.operands {
        Operands::Named(names) => {
            names.iter().map(|name| format!("AnyRankedTensor:${name}")).collect()
        }
        Operands::Variadic(name) => vec![format!("Variadic<AnyRankedTensor>:${name}")],
    };
    let arguments: Vec<String> =
        operands.into_iter().chain(row.attributes.iter().map(argument)).collect();
    field("arguments", format!("(ins {})", arguments.join(", ")));
    field("results", "(outs AnyRankedTensor:$result)".into());
    field("assemblyFormat", quoted(&syntax(row)));
    text + "}\n"
}

fn argument(attribute: &Attribute) -> String {
    let kind = match attribute.kind {
        AttributeKind::I64s | AttributeKind::Indices => "DenseI64ArrayAttr",
        AttributeKind::I64 | AttributeKind::Index => "I64Attr",
        AttributeKind::Bool => "BoolAttr",
        AttributeKind::F64 => "F64Attr",
        AttributeKind::Text | AttributeKind::Word(_) => "StrAttr",
        AttributeKind::Texts => "StrArrayAttr",
    };
    let kind = match attribute.presence {
        Presence::Required => kind.to_owned(),
        Presence::FalseByDefault => format!("DefaultValuedAttr<{kind}, \"false\">"),
        Presence::Optional => format!("OptionalAttr<{kind}>"),
    };
    format!("{kind}:${}", attribute.name)
}

fn syntax(row: &Row) -> String {
    let names = match row.operands {
        Operands::Named(names) => names,
        Operands::Variadic(_) => &[],
    };
    let operands: Vec<String> = names.iter().map(|name| format!("${name}")).collect();
    let start = row.syntax.map_or_else(|| operands.join(" `,` "), str::to_owned);
    let alone = row.keeps_type || row.operands == Operands::Named(&[]);
    let types = if alone { "type($result)" } else { "functional-type(operands, $result)" };
    format!("{start} attr-dict `:` {types}").trim_start().to_owned()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn camel_case(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    };
    name.split('_').map(word).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    #[test]
    fn the_definitions_are_those_of_the_rows() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops.td");
        let expected = super::ods();
        if env::var_os("IRC_BLESS").is_some() {
            fs::write(&path, &expected).expect("the file can be written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "dialects/tl/ops.td is out of date: run cargo xtask docs");
    }
}
