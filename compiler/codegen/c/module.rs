//! Translates a module to a file: its functions and globals are declared, then each is defined.
use super::{
    super::layout::{Element, Shape},
    function::{Body, Op, Result, no_translation, shapes, unsupported},
    globals::{self, Global, is_static},
    header, names,
    types::{declared, is_wide},
    unit::{Function, Unit},
};
use irc_mlir::{Module, OperationLike, RegionLike, llvm, ops, read};
use std::fmt::Write;

/// Prints a module.
///
/// # Errors
/// At the first op without a translation; a diagnostic at it has been emitted.
pub fn translate(unit: &mut Unit, module: &Module<'_>) -> Result<String> {
    let ops = read::body_ops(module.as_operation());
    for (index, op) in ops.iter().enumerate() {
        match read::op_name(op).as_str() {
            ops::llvm::FUNC => declare(unit, *op, index)?,
            ops::llvm::MLIR_GLOBAL => {
                let symbol = name_of(op)?;
                let name = c_name(&symbol, index);
                unit.globals.insert(symbol, name);
            }
            _ => return Err(no_translation(op)),
        }
    }
    let mut file = File::default();
    for op in ops {
        match read::op_name(&op).as_str() {
            ops::llvm::FUNC => file.function(unit, op)?,
            _ => file.global(unit, op)?,
        }
    }
    Ok(file.text(unit))
}

/// The parts of a file below its prologue.
#[derive(Default)]
struct File {
    exported: Vec<String>,
    interfaces: Vec<(String, String)>,
    prototypes: String,
    globals: Vec<Global>,
    functions: String,
}

impl File {
    fn function(&mut self, unit: &mut Unit, op: Op<'_, '_>) -> Result<()> {
        let symbol = name_of(&op)?;
        let function = unit.functions[&symbol].clone();
        let head = head(unit, &function);
        if !has_body(&op) {
            if !is_library(unit, &symbol, &function) {
                let storage = globals::storage(&op, false)?;
                let label = label(&symbol);
                let _ = writeln!(self.prototypes, "extern {head}{storage}{label};");
            }
            return Ok(());
        }
        let (own, storage) = (is_static(&op), globals::storage(&op, true)?);
        let (start, label) = if own { ("static ", String::new()) } else { ("", label(&symbol)) };
        let _ = writeln!(self.prototypes, "{start}{head}{storage}{label};");
        let mut body = Body::new(unit);
        body.translate(op, &function)?;
        let (text, fused) = (body.text(), body.multiplies_and_adds);
        let who = if own { "of this file" } else { "for others" };
        let called = symbol.replace("*/", "* /").replace("/*", "/ *");
        let _ = write!(self.functions, "\n/* @{called}: {who}. */\n");
        self.functions += &match fused {
            true => by_processor(unit, &function, &format!("{start}{head}"), &text),
            false => format!("{start}{head}\n{{\n{text}}}\n"),
        };
        if !own {
            self.exported.push(head);
        }
        Ok(())
    }

    fn global(&mut self, unit: &mut Unit, op: Op<'_, '_>) -> Result<()> {
        let symbol = name_of(&op)?;
        if symbol.starts_with("irc_metadata")
            && let Some(json) = read::string(&op, "value")
        {
            self.interfaces.push((symbol.clone(), json.trim_end_matches('\0').to_owned()));
        }
        self.globals.push(globals::global(unit, op, &symbol)?);
        Ok(())
    }

    fn text(self, unit: &Unit) -> String {
        let mut text = header::comment(&self.exported, &self.interfaces);
        text += &unit.prologue();
        text.push('\n');
        text += &self.prototypes;
        text.push('\n');
        if self.globals.iter().any(|global| global.refers) {
            // A global may refer to a later one.
            for global in self.globals.iter().filter(|global| global.initial.is_some()) {
                let declaration = &global.declaration;
                let external = if declaration.starts_with("static ") { "" } else { "extern " };
                let _ = writeln!(text, "{external}{declaration};");
            }
        }
        for Global { declaration, initial, .. } in &self.globals {
            let initial = initial.as_ref().map(|initial| format!(" = {initial}"));
            let _ = writeln!(text, "{declaration}{};", initial.unwrap_or_default());
        }
        text + &self.functions
    }
}

fn declare(unit: &mut Unit, op: Op<'_, '_>, index: usize) -> Result<()> {
    let symbol = name_of(&op)?;
    let odd = || unsupported(&op, "this signature");
    let (inputs, result) = llvm::function_type(&op, "function_type").ok_or_else(odd)?;
    let inputs: Option<Vec<_>> = inputs.iter().map(shapes).collect();
    let inputs = inputs.ok_or_else(odd)?.concat();
    let results = shapes(&result).ok_or_else(odd)?;
    let outside = !has_body(&op) || !is_static(&op);
    if outside && inputs.iter().chain(&results).any(|shape| shape.lanes.is_some()) {
        return Err(unsupported(&op, "a vector that another file gives or takes"));
    }
    let library = library_header(&symbol, &inputs, &results).filter(|_| !has_body(&op));
    let name = if library.is_some() { symbol.clone() } else { c_name(&symbol, index) };
    unit.functions.insert(symbol, Function { name, inputs, results });
    Ok(())
}

fn is_library(unit: &mut Unit, symbol: &str, function: &Function) -> bool {
    let header = library_header(symbol, &function.inputs, &function.results);
    if let Some(header) = header {
        unit.header(header);
    }
    header.is_some()
}

/// A function's declaration without storage class.
fn head(unit: &mut Unit, function: &Function) -> String {
    let inputs = function.inputs.iter().enumerate();
    let inputs: Vec<String> =
        inputs.map(|(at, shape)| unit.parameter(*shape, &format!("a{at}"))).collect();
    let inputs = if inputs.is_empty() { "void".to_owned() } else { inputs.join(", ") };
    let result = unit.result_type(&function.results);
    format!("{}({inputs})", declared(&result, &function.name))
}

/// The parameter of a function that tells whether the processor has a fused multiply-add.
pub const FUSED: &str = "fused";

/// A function that is compiled twice, with and without fused multiply-add, and that selects one at run
/// time.
fn by_processor(unit: &mut Unit, function: &Function, head: &str, body: &str) -> String {
    let result = unit.result_type(&function.results);
    let (mut parameters, mut names) = (Vec::new(), Vec::new());
    for (at, shape) in function.inputs.iter().enumerate() {
        let name = format!("a{at}");
        parameters.push(unit.parameter(*shape, &name));
        names.push(if is_wide(*shape) { format!("{name}_p") } else { name });
    }
    let (name, names) = (function.name.trim_start_matches("c_"), names.join(", "));
    let (either, fast) = (format!("c_either_{name}"), format!("c_fast_{name}"));
    let call = |name: &str, first: &str| {
        let comma = if first.is_empty() || names.is_empty() { "" } else { ", " };
        let call = format!("{name}({first}{comma}{names})");
        if result == "void" { format!("{{ {call}; return; }}") } else { format!("return {call};") }
    };
    let list = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    parameters.insert(0, format!("const bool {FUSED}"));
    format!(
        "C_INLINE {}({})\n{{\n{body}}}\n\nC_FMA static {}({list})\n{{\n  {}\n}}\n\n\
         {head}\n{{\n  if (C_HAS_FMA) {}\n  {}\n}}\n",
        declared(&result, &either),
        parameters.join(", "),
        declared(&result, &fast),
        call(&either, "true"),
        call(&fast, ""),
        call(&either, "false"),
    )
}

fn has_body(op: &Op<'_, '_>) -> bool {
    op.region(0).ok().and_then(|region| region.first_block()).is_some()
}

fn name_of(op: &Op<'_, '_>) -> Result<String> {
    read::string(op, "sym_name").ok_or_else(|| unsupported(op, "a symbol without a name"))
}

/// The name of the `index`th symbol.
fn c_name(symbol: &str, index: usize) -> String {
    match names::is_plain(symbol) {
        true => symbol.to_owned(),
        false => names::substitute(symbol, index),
    }
}

fn label(symbol: &str) -> String {
    names::label(symbol).map(|label| format!(" {label}")).unwrap_or_default()
}

/// Functions of `math.h` for doubles, with their numbers of arguments; those for floats end in `f`.
const MATH: [(&str, usize); 33] = [
    ("acos", 1),
    ("acosh", 1),
    ("asin", 1),
    ("asinh", 1),
    ("atan", 1),
    ("atan2", 2),
    ("atanh", 1),
    ("cbrt", 1),
    ("ceil", 1),
    ("copysign", 2),
    ("cos", 1),
    ("cosh", 1),
    ("erf", 1),
    ("erfc", 1),
    ("exp", 1),
    ("exp2", 1),
    ("expm1", 1),
    ("fabs", 1),
    ("floor", 1),
    ("fma", 3),
    ("fmod", 2),
    ("log", 1),
    ("log10", 1),
    ("log1p", 1),
    ("log2", 1),
    ("pow", 2),
    ("round", 1),
    ("sin", 1),
    ("sinh", 1),
    ("sqrt", 1),
    ("tan", 1),
    ("tanh", 1),
    ("trunc", 1),
];

/// The header that declares a function with exactly this signature.
fn library_header(symbol: &str, inputs: &[Shape], results: &[Shape]) -> Option<&'static str> {
    let [pointer, size] = [Element::Pointer, Element::Int(64)].map(Shape::scalar);
    match (symbol, inputs, results) {
        ("malloc", [a], [r]) if *a == size && *r == pointer => return Some("stdlib.h"),
        ("aligned_alloc", [a, b], [r]) if [*a, *b] == [size; 2] && *r == pointer => {
            return Some("stdlib.h");
        }
        ("free", [a], []) if *a == pointer => return Some("stdlib.h"),
        ("abort", [], []) => return Some("stdlib.h"),
        _ => {}
    }
    let of = |element, name: &str| {
        let known = MATH.iter().find(|(known, _)| *known == name);
        let floats = inputs.iter().chain(results).all(|shape| *shape == Shape::scalar(element));
        known.is_some_and(|(_, count)| *count == inputs.len()) && results.len() == 1 && floats
    };
    let single = symbol.strip_suffix('f').is_some_and(|name| of(Element::Float, name));
    (single || of(Element::Double, symbol)).then_some("math.h")
}
