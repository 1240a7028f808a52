//! Globals, with their initial values as C initialisers.
use super::{
    super::{
        constant::{self, Constant},
        inst::ElementPointer,
        layout::{self, Element, Shape},
    },
    function::{Op, Result, no_translation, unsupported},
    lanes::parts_at,
    literals,
    types::{self, declared},
    unit::Unit,
};
use irc_mlir::{
    BlockLike, OperationLike, RegionLike, Value,
    llvm::{self, Data, Type},
    ops::llvm as names,
    read::{self, identity},
};
use std::collections::HashMap;
use std::fmt::Write;

/// A global in C.
pub struct Global {
    /// Its declaration, without initialiser and semicolon.
    pub declaration: String,
    /// Its initial value; `None` for a global that is only declared.
    pub initial: Option<String>,
    /// Whether its initial value refers to other symbols.
    pub refers: bool,
}

/// One scalar of an initial value.
#[derive(Clone)]
enum Leaf {
    Bits(u128),
    /// The address of a symbol, and an offset from it in bytes.
    Address(String, i64),
}

/// The initial value of a global.
enum Initial {
    Zero,
    Data(Data),
    /// Its scalars, in order.
    Leaves(Vec<Leaf>),
}

/// Maximum number of scalars of an initial value that is computed scalar by scalar.
const MAX_LEAVES: u64 = 1 << 16;

/// Numbers per row.
const PER_ROW: usize = 12;

/// A global as C declares it.
///
/// # Errors
/// A type or an initial value without a translation; a diagnostic at the op has been emitted.
pub fn global(unit: &mut Unit, op: Op<'_, '_>, symbol: &str) -> Result<Global> {
    let odd = || unsupported(&op, "a global of this type");
    let ty = llvm::type_attribute(&op, "global_type").ok_or_else(odd)?;
    if read::attribute(&op, "section").is_some() || read::attribute(&op, "thread_local_").is_some()
    {
        return Err(unsupported(&op, "a section or a variable of a thread"));
    }
    let initial = initial(&op, &ty)?;
    let name = unit.globals[symbol].clone();
    let storage = storage(&op, initial.is_some())?;
    let constant = if read::attribute(&op, "constant").is_some() { "const " } else { "" };
    let Some(initial) = initial else {
        let declaration = format!("extern {constant}char {name}[]{storage}{}", suffix(symbol));
        return Ok(Global { declaration, initial: None, refers: false });
    };
    let wanted = read::integer(&op, "alignment").and_then(|bytes| u64::try_from(bytes).ok());
    let align = wanted.unwrap_or(0).max(layout::align(&ty).ok_or_else(odd)?);
    let refers = matches!(&initial, Initial::Leaves(leaves) if leaves.iter().any(is_address));
    let (ty, dimension, value) = written(unit, &ty, initial).ok_or_else(odd)?;
    let space = if is_static(&op) { "static " } else { "" };
    let variable = declared(&ty, &name);
    let variable = if ty.ends_with('*') && !constant.is_empty() {
        format!("void *const {name}")
    } else {
        format!("{constant}{variable}")
    };
    let declaration = format!(
        "{space}{variable}{dimension} __attribute__((aligned({align}))){storage}{}",
        if is_static(&op) { String::new() } else { suffix(symbol) }
    );
    Ok(Global { declaration, initial: Some(value), refers })
}

fn suffix(symbol: &str) -> String {
    super::names::label(symbol).map(|label| format!(" {label}")).unwrap_or_default()
}

fn is_address(leaf: &Leaf) -> bool {
    matches!(leaf, Leaf::Address(..))
}

/// Whether a symbol is visible only in its file.
pub fn is_static(op: &Op<'_, '_>) -> bool {
    matches!(llvm::linkage(op).as_str(), "internal" | "private")
}

/// Linkage and visibility in C, as written before and after a declaration.
///
/// # Errors
/// A linkage that C does not have.
pub fn storage(op: &Op<'_, '_>, defined: bool) -> Result<String> {
    let mut text = String::new();
    match llvm::linkage(op).as_str() {
        "external" | "internal" | "private" => {}
        "weak" | "weak_odr" => text += " __attribute__((weak))",
        "extern_weak" if !defined => text += " __attribute__((weak))",
        other => return Err(unsupported(op, &format!("the linkage {other}"))),
    }
    match read::integer(op, "visibility_") {
        Some(1) => text += " __attribute__((visibility(\"hidden\")))",
        Some(2) => text += " __attribute__((visibility(\"protected\")))",
        _ => {}
    }
    Ok(text)
}

/// The type, the dimension after the name, and the initialiser.
fn written(unit: &mut Unit, ty: &Type, initial: Initial) -> Option<(String, String, String)> {
    let size = layout::size(ty)?;
    if let Initial::Leaves(leaves) = initial {
        return structure(unit, ty, &leaves);
    }
    let (element, scalars) = scalars_of(ty, size)?;
    let dimension = if is_scalar(ty) { String::new() } else { format!("[{scalars}]") };
    let c = types::scalar(element);
    // C has no arrays without elements.
    if scalars == 0 {
        return Some((c, "[1]".to_owned(), "{0}".to_owned()));
    }
    let data = match initial {
        Initial::Data(data) => data,
        _ if dimension.is_empty() => {
            let zero = unit.literal(element, 0);
            return Some((c, dimension, zero));
        }
        _ => return Some((c, dimension, "{0}".to_owned())),
    };
    let bytes = element.bytes() as usize;
    Some(match data {
        Data::Splat(one) if one.len() == bytes => {
            let value = number(element, constant::bits(&one));
            let (c, value) = value.map_or_else(|| as_bits(element, &one), |value| (c, value));
            let all = format!("{{[0 ... {}] = {value}}}", scalars.max(1) - 1);
            (c, dimension.clone(), if dimension.is_empty() { value } else { all })
        }
        Data::Elements(all) if all.len() as u64 == size => match text(element, &all) {
            Some(text) => ("char".to_owned(), dimension, text),
            None if element == Element::Int(8) && all.len() > MANY_BYTES => words(&all),
            None => {
                let (c, numbers) = numbers(element, &all);
                (c, dimension, rows(&numbers))
            }
        },
        _ => return None,
    })
}

/// More bytes than these are written as words.
const MANY_BYTES: usize = 4096;

/// Many bytes, as the constants of a model, in words of 8 in little-endian order, the last padded with zeros: less
/// than half of the text that single bytes are.
fn words(bytes: &[u8]) -> (String, String, String) {
    let count = bytes.len().div_ceil(8);
    let mut text = String::with_capacity(23 * count);
    for (place, chunk) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        text.push_str(if place == 0 { "{\n  " } else { "," });
        if place > 0 && place % 6 == 0 {
            text.push_str("\n  ");
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{:#x}", u64::from_le_bytes(word));
    }
    text.push_str("\n}");
    ("uint64_t".to_owned(), format!("[{count}]"), text)
}

fn is_scalar(ty: &Type) -> bool {
    !matches!(ty, Type::Array(..) | Type::Vector(..) | Type::Struct { .. })
}

/// The scalar type of an array, and the number of scalars; bytes for a struct.
fn scalars_of(ty: &Type, size: u64) -> Option<(Element, u64)> {
    match ty {
        Type::Array(element, _) => scalars_of(element, size),
        Type::Struct { .. } => Some((Element::Int(8), size.max(1))),
        Type::Vector(..) => match Shape::of_type(ty)?.element {
            Element::Int(1) => None,
            element => Some((element, size / u64::from(element.bytes()))),
        },
        _ => {
            let element = Shape::of_type(ty)?.element;
            Some((element, size / u64::from(element.bytes())))
        }
    }
}

fn number(element: Element, bits: u128) -> Option<String> {
    literals::plain(element, bits)
}

fn as_bits(element: Element, bytes: &[u8]) -> (String, String) {
    let c = types::Lane::Unsigned(element.bytes() * 8).c();
    (c, literals::bits(element, constant::bits(bytes)))
}

/// Numbers of an element's type, or their bits if one of them has no literal.
fn numbers(element: Element, bytes: &[u8]) -> (String, Vec<String>) {
    let chunks = || bytes.chunks(element.bytes() as usize);
    let plain: Option<Vec<String>> =
        chunks().map(|chunk| number(element, constant::bits(chunk))).collect();
    match plain {
        Some(numbers) => (types::scalar(element), numbers),
        None => {
            let c = types::Lane::Unsigned(element.bytes() * 8).c();
            (c, chunks().map(|chunk| as_bits(element, chunk).1).collect())
        }
    }
}

fn rows(numbers: &[String]) -> String {
    if numbers.is_empty() {
        return "{0}".to_owned();
    }
    let rows: Vec<String> = numbers.chunks(PER_ROW).map(|row| row.join(", ")).collect();
    match rows.as_slice() {
        [one] => format!("{{{one}}}"),
        several => format!("{{\n  {}\n}}", several.join(",\n  ")),
    }
}

/// Zero-terminated bytes that are text, as a string.
fn text(element: Element, bytes: &[u8]) -> Option<String> {
    match (element, bytes) {
        (Element::Int(8), [text @ .., 0]) => literals::string(text),
        _ => None,
    }
}

/// A struct with a field for each scalar, and padding fields for the gaps between them.
fn structure(unit: &mut Unit, ty: &Type, leaves: &[Leaf]) -> Option<(String, String, String)> {
    let places = places(ty)?;
    let (mut fields, mut values) = (Vec::new(), Vec::new());
    let mut at = 0;
    let skip = |to: u64, at: &mut u64, fields: &mut Vec<String>, values: &mut Vec<String>| {
        if to > *at {
            fields.push(format!("char skip{}[{}];", fields.len(), to - *at));
            values.push("{0}".to_owned());
        }
        *at = to;
    };
    for ((element, offset), leaf) in places.iter().zip(leaves) {
        skip(*offset, &mut at, &mut fields, &mut values);
        let (c, value) = match leaf {
            Leaf::Bits(bits) => match number(*element, *bits) {
                Some(value) => (types::scalar(*element), value),
                None => as_bits(*element, &bits.to_le_bytes()),
            },
            Leaf::Address(symbol, distance) => {
                let address = unit.address(symbol)?;
                let far = if *distance == 0 {
                    address
                } else {
                    format!("(char *){address} + {distance}")
                };
                match element {
                    Element::Pointer => ("void *".to_owned(), far),
                    _ => ("uint64_t".to_owned(), format!("(uint64_t)({far})")),
                }
            }
        };
        fields.push(declared(&c, &format!("f{};", fields.len())));
        values.push(value);
        at += u64::from(element.bytes());
    }
    skip(layout::size(ty)?, &mut at, &mut fields, &mut values);
    unit.header("stddef.h");
    let pointers =
        !places.is_empty() && places.iter().all(|(element, _)| *element == Element::Pointer);
    if pointers && !is_scalar(ty) {
        return Some(("void *".to_owned(), format!("[{}]", values.len()), rows(&values)));
    }
    if is_scalar(ty) {
        return Some((
            fields[0].trim_end_matches("f0;").trim_end().to_owned(),
            String::new(),
            values.remove(0),
        ));
    }
    Some((unit.record(&fields.join(" ")), String::new(), rows(&values)))
}

/// The scalars of a type with their offsets; each lane of a vector is one.
fn places(ty: &Type) -> Option<Vec<(Element, u64)>> {
    let mut places = Vec::new();
    for (shape, offset) in layout::leaves(ty)? {
        if shape.element == Element::Int(1) && shape.lanes.is_some() {
            return None;
        }
        let size = u64::from(shape.element.bytes());
        let lanes = u64::from(shape.lanes.unwrap_or(1));
        places.extend((0..lanes).map(|lane| (shape.element, offset + lane * size)));
    }
    Some(places)
}

/// The initial value of a global; `None` for one that is only declared.
fn initial(op: &Op<'_, '_>, ty: &Type) -> Result<Option<Initial>> {
    let odd = || unsupported(op, "this initial value");
    if let Some(value) = read::attribute(op, "value") {
        return Ok(Some(Initial::Data(llvm::data(value).ok_or_else(odd)?)));
    }
    let block = op.region(0).ok().and_then(|region| region.first_block());
    let Some(block) = block else { return Ok(None) };
    let returned = block.terminator().and_then(|end| end.operand(0).ok()).ok_or_else(odd)?;
    let source = read::defining_op(returned).ok_or_else(odd)?;
    match Constant::of(source) {
        Some(Constant::Data(data)) if read::op_name(&source) == names::MLIR_CONSTANT => {
            return Ok(Some(Initial::Data(data)));
        }
        Some(Constant::Zero) if is_nothing(&read::op_name(&source)) => {
            return Ok(Some(Initial::Zero));
        }
        _ => {}
    }
    if layout::size(ty).is_none_or(|size| size > MAX_LEAVES) {
        return Err(odd());
    }
    let mut values = HashMap::new();
    let mut next = block.first_operation();
    while let Some(inner) = next {
        if read::op_name(&inner) == names::RETURN {
            break;
        }
        let leaves = evaluate(&inner, &values)?;
        let result = inner.result(0).map_err(|_| odd())?;
        values.insert(identity(result.into()), leaves);
        next = inner.next_in_block();
    }
    values.remove(&identity(returned)).map(|leaves| Some(Initial::Leaves(leaves))).ok_or_else(odd)
}

fn is_nothing(name: &str) -> bool {
    matches!(name, names::MLIR_ZERO | names::MLIR_UNDEF | names::MLIR_POISON)
}

/// The scalars of the result of an op of an initialiser.
fn evaluate(op: &Op<'_, '_>, values: &HashMap<usize, Vec<Leaf>>) -> Result<Vec<Leaf>> {
    let odd = || no_translation(op);
    let operand = |index: usize| -> Result<Vec<Leaf>> {
        let value = op.operand(index).map_err(|_| odd())?;
        values.get(&identity(value)).cloned().ok_or_else(odd)
    };
    let type_of =
        |value: Value<'_, '_>| llvm::type_of(irc_mlir::ValueLike::r#type(&value)).ok_or_else(odd);
    let result = op.result(0).map_err(|_| odd())?;
    let name = read::op_name(op);
    match name.as_str() {
        names::MLIR_ADDRESSOF => {
            Ok(vec![Leaf::Address(read::symbol(op, "global_name").ok_or_else(odd)?, 0)])
        }
        names::PTRTOINT | names::INTTOPTR => operand(0),
        names::INSERTVALUE => {
            let position = llvm::numbers(op, "position").ok_or_else(odd)?;
            let ty = type_of(op.operand(0).map_err(|_| odd())?)?;
            let range = parts_at(&ty, &position).ok_or_else(odd)?;
            // Positions count vectors, but scalars here are lanes.
            if places(&ty).map(|places| places.len()) != layout::leaves(&ty).map(|all| all.len()) {
                return Err(odd());
            }
            let mut all = operand(0)?;
            all.splice(range, operand(1)?);
            Ok(all)
        }
        names::GETELEMENTPTR => {
            let pointer = ElementPointer::of(op).map_err(|_| odd())?;
            match operand(0)?.as_slice() {
                [Leaf::Address(symbol, from)] if pointer.strides.is_empty() => {
                    Ok(vec![Leaf::Address(symbol.clone(), from + pointer.offset)])
                }
                _ => Err(odd()),
            }
        }
        names::MLIR_CONSTANT | names::MLIR_ZERO | names::MLIR_UNDEF | names::MLIR_POISON => {
            let constant = Constant::of(*op).ok_or_else(odd)?;
            let places = places(&type_of(result.into())?).ok_or_else(odd)?;
            let bits = |(at, (element, _)): (usize, &(Element, u64))| constant.bits(at, *element);
            let bits: Option<Vec<u128>> = places.iter().enumerate().map(bits).collect();
            Ok(bits.ok_or_else(odd)?.into_iter().map(Leaf::Bits).collect())
        }
        _ => Err(odd()),
    }
}
