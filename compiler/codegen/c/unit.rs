//! The C file of a module: the types, helpers and headers that its functions use.
use super::{
    super::layout::{Element, Shape},
    types::{self, Lane, declared, is_wide, padded},
};
use std::collections::{BTreeMap, BTreeSet};

/// The C signature of a function.
#[derive(Clone)]
pub struct Function {
    /// Its name in C.
    pub name: String,
    /// The types of its parameters.
    pub inputs: Vec<Shape>,
    /// The types of its results.
    pub results: Vec<Shape>,
}

/// The declarations in use.
#[derive(Default)]
pub struct Unit {
    /// Functions by symbol name.
    pub functions: BTreeMap<String, Function>,
    /// The C names of globals by symbol name.
    pub globals: BTreeMap<String, String>,
    headers: BTreeSet<&'static str>,
    vectors: BTreeSet<(Lane, u32)>,
    /// Vectors that are loaded and stored.
    in_memory: BTreeSet<(Lane, u32)>,
    tuples: Vec<Vec<String>>,
    records: Vec<String>,
    known: BTreeSet<String>,
    helpers: Vec<String>,
}

impl Unit {
    /// Includes a header of the C library.
    pub fn header(&mut self, name: &'static str) {
        self.headers.insert(name);
    }

    /// The vector type of so many lanes.
    pub fn vector(&mut self, lane: Lane, lanes: u32) -> String {
        self.vectors.insert((lane, padded(lanes)));
        format!("v{}{}", padded(lanes), lane.short())
    }

    /// The type for loads and stores of such a vector, at any alignment and with any aliasing.
    pub fn vector_in_memory(&mut self, lane: Lane, lanes: u32) -> String {
        self.in_memory.insert((lane, padded(lanes)));
        format!("{}_m", self.vector(lane, lanes))
    }

    /// The C type of a value.
    pub fn ty(&mut self, shape: Shape) -> String {
        match shape.lanes {
            None => types::scalar(shape.element),
            Some(lanes) => self.vector(Lane::of(shape.element), lanes),
        }
    }

    /// The C return type of a function.
    pub fn result_type(&mut self, results: &[Shape]) -> String {
        match results {
            [] => "void".to_owned(),
            [one] if !is_wide(*one) => self.ty(*one),
            several => {
                let fields: Vec<String> = several.iter().map(|shape| self.ty(*shape)).collect();
                let known = self.tuples.iter().position(|tuple| *tuple == fields);
                let index = known.unwrap_or_else(|| {
                    self.tuples.push(fields);
                    self.tuples.len() - 1
                });
                format!("c_tuple{index}")
            }
        }
    }

    /// The type of a global with these fields, packed.
    pub fn record(&mut self, fields: &str) -> String {
        self.records.push(fields.to_owned());
        format!("c_record{}", self.records.len() - 1)
    }

    /// A parameter's declaration: a pointer if its type is wide.
    pub fn parameter(&mut self, shape: Shape, name: &str) -> String {
        let ty = self.ty(shape);
        if is_wide(shape) { format!("const {ty} *{name}_p") } else { declared(&ty, name) }
    }

    /// The value of a parameter that is passed by address.
    pub fn unpacked(&mut self, shape: Shape, name: &str) -> Option<String> {
        let ty = self.ty(shape);
        is_wide(shape).then(|| format!("  const {ty} {name} = *{name}_p;\n"))
    }

    /// The address of a function or global.
    pub fn address(&self, symbol: &str) -> Option<String> {
        let function = self.functions.get(symbol).map(|function| &function.name);
        let name = function.map(|name| format!("(void *){name}"));
        name.or_else(|| Some(format!("(void *)&{}", self.globals.get(symbol)?)))
    }

    /// Adds a helper once, after the helpers that it uses.
    pub fn helper(&mut self, name: &str, text: impl FnOnce(&mut Self) -> String) {
        if self.known.insert(name.to_owned()) {
            let text = text(self);
            self.helpers.push(text);
        }
    }

    /// The head of a helper: its result, name and parameters, up to its first statement.
    pub fn head(&mut self, result: &str, name: &str, parameters: &[(Shape, &str)]) -> String {
        let list: Vec<String> =
            parameters.iter().map(|(shape, name)| self.parameter(*shape, name)).collect();
        let unpacked: String =
            parameters.iter().filter_map(|(shape, name)| self.unpacked(*shape, name)).collect();
        format!("C_INLINE {}({})\n{{\n{unpacked}", declared(result, name), list.join(", "))
    }

    /// A float from its bits, if it has no literal.
    pub fn float_of_bits(&mut self, element: Element, bits: &str) -> String {
        let (lane, bits_lane) = (Lane::of(element), Lane::Unsigned(element.lane_bits()));
        let name = format!("c_{}_of_bits", lane.short());
        self.header("string.h");
        self.helper(&name, |_| pun(&name, &lane.c(), &bits_lane.c()));
        format!("{name}({bits})")
    }

    /// The bits of a float.
    pub fn bits_of_float(&mut self, element: Element, value: &str) -> String {
        let (lane, bits_lane) = (Lane::of(element), Lane::Unsigned(element.lane_bits()));
        let name = format!("c_bits_of_{}", lane.short());
        self.header("string.h");
        self.helper(&name, |_| pun(&name, &bits_lane.c(), &lane.c()));
        format!("{name}({value})")
    }

    /// A scalar from its bits.
    pub fn literal(&mut self, element: Element, bits: u128) -> String {
        if element == Element::Pointer {
            self.header("stddef.h");
        }
        super::literals::plain(element, bits)
            .unwrap_or_else(|| self.float_of_bits(element, &super::literals::bits(element, bits)))
    }

    /// The includes, types and helpers.
    pub fn prologue(&self) -> String {
        let mut text = String::new();
        for header in self.headers.iter().chain(&["stdbool.h", "stdint.h"]) {
            text += &format!("#include <{header}>\n");
        }
        text += include_str!("prologue.h");
        for (lane, lanes) in &self.vectors {
            let (name, bytes) = (format!("v{lanes}{}", lane.short()), lanes * lane.bits() / 8);
            let ty = lane.c();
            text += &format!("typedef {ty} {name} __attribute__((vector_size({bytes})));\n");
            if self.in_memory.contains(&(*lane, *lanes)) {
                let how = "__attribute__((aligned(1), may_alias))";
                text += &format!("typedef {name} {name}_m {how};\n");
            }
        }
        for (index, fields) in self.tuples.iter().enumerate() {
            let fields = fields.iter().enumerate();
            let fields: Vec<String> =
                fields.map(|(at, ty)| declared(ty, &format!("f{at};"))).collect();
            text += &format!("typedef struct {{ {} }} c_tuple{index};\n", fields.join(" "));
        }
        for (index, fields) in self.records.iter().enumerate() {
            let packed = "struct __attribute__((packed))";
            text += &format!("typedef {packed} {{ {fields} }} c_record{index};\n");
        }
        for helper in &self.helpers {
            text.push('\n');
            text += helper;
        }
        text
    }
}

/// A helper that reinterprets the bytes of one type as another.
pub fn pun(name: &str, to: &str, from: &str) -> String {
    format!(
        "C_INLINE {}({})\n{{\n  {};\n  memcpy(&y, &x, sizeof y);\n  return y;\n}}\n",
        declared(to, name),
        declared(from, "x"),
        declared(to, "y")
    )
}
