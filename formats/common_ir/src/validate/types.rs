//! Syntax of types and shapes.

use std::collections::BTreeSet;

use super::{Checker, Rule};
use crate::model::{Dim, ElementType, Path, Shape, TensorType, Type, Value, is_identifier};

impl Checker<'_> {
    /// Checks type and shape of a value.
    pub(super) fn value(&mut self, value: &Value, at: &Path<'_>) {
        self.doc(value.doc.as_deref(), at);
        if let Some(ty) = &value.ty {
            self.ty(ty, at);
        }
        let Some(shape) = &value.shape else { return };
        if let Some(ty) = value.ty.as_ref().filter(|ty| ty.as_tensor().is_none()) {
            let name = value.name();
            self.report(Rule::R94, at, format_args!("`{name}` of type {ty} has the shape {shape}"));
        }
        self.shape(shape, at);
    }

    /// Checks a type and its components.
    pub(super) fn ty(&mut self, ty: &Type, at: &Path<'_>) {
        match ty {
            Type::Tensor(TensorType { element, shape })
            | Type::Sparse(TensorType { element, shape }) => {
                self.element(*element, at);
                shape.iter().for_each(|shape| self.shape(shape, at));
            }
            Type::Sequence(None) => {
                self.report(Rule::R82, at, "the list has no type of its elements");
            }
            Type::Sequence(Some(of)) => self.ty(of, at),
            Type::Optional(of) => of.iter().for_each(|of| self.ty(of, at)),
            Type::Tuple(types) => types.iter().for_each(|of| self.ty(of, at)),
            Type::Map { key, value } => self.map(*key, value.as_deref(), at),
            Type::Handle | Type::Opaque { .. } => {}
        }
    }

    fn map(&mut self, key: ElementType, value: Option<&Type>, at: &Path<'_>) {
        use ElementType as E;
        let is_key = matches!(
            key,
            E::Int8
                | E::Int16
                | E::Int32
                | E::Int64
                | E::Uint8
                | E::Uint16
                | E::Uint32
                | E::Uint64
                | E::String
        );
        if !is_key {
            let message =
                format_args!("the keys of the map are {key}, expected integers or strings");
            self.report(Rule::R81, at, message);
        }
        let is_plain = |tensor: &TensorType| tensor.shape.is_none() || self.is_onnx();
        match value {
            Some(Type::Tensor(tensor)) if is_plain(tensor) => self.element(tensor.element, at),
            // ONNX's maps may hold sequences and maps.
            Some(ty) if self.is_onnx() => self.ty(ty, at),
            Some(ty) => {
                self.report(
                    Rule::R81,
                    at,
                    format_args!("the values of the map are {ty}, a collection"),
                );
            }
            None => self.report(Rule::R81, at, "the map has no type of its values"),
        }
    }

    /// Checks an element type.
    pub(super) fn element(&mut self, element: ElementType, at: &Path<'_>) {
        match element {
            ElementType::Undefined => self.report(Rule::R80, at, "the element type is missing"),
            ElementType::Other(_) => {
                self.report(Rule::R80, at, format_args!("unknown {element}"));
            }
            ElementType::Uint32 | ElementType::Uint64 if !self.is_onnx() => {
                let message = format_args!(
                    "{element} is not among the types of Common IR, though files can contain it"
                );
                self.warn(Rule::R80, at, message);
            }
            newer if newer.number() > ElementType::Complex128.number() && !self.is_onnx() => {
                self.report(
                    Rule::R80,
                    at,
                    format_args!("{element} is not among the types of Common IR"),
                );
            }
            _ => {}
        }
    }

    /// Checks the extents of a shape, each by itself.
    pub(super) fn shape(&mut self, shape: &Shape, at: &Path<'_>) {
        for (index, dim) in shape.dims.iter().enumerate() {
            let inner = at.field("shape");
            let at = inner.index("dim", index);
            match dim {
                Dim::Size(size) if *size < 0 => {
                    self.report(
                        Rule::R90,
                        &at,
                        format_args!("the size {size} of {shape} is negative"),
                    );
                }
                Dim::Variable(name) if !is_identifier(name) => {
                    let message = format_args!(
                        "`{name}` in {shape} is neither a number, nor an identifier or wildcard"
                    );
                    self.report(Rule::R91, &at, message);
                }
                _ => {}
            }
        }
    }

    /// Checks that each shape of a declaration determines its wildcards.
    pub(super) fn wildcards(&mut self, inputs: &[Value], outputs: &[Value], at: &Path<'_>) {
        if !inputs.iter().chain(outputs).any(|value| wild(value) > 1) {
            return;
        }
        let known = determined(inputs);
        let lists = [("input", inputs), ("output", outputs)];
        for (list, values) in lists {
            for (index, value) in values.iter().enumerate().filter(|(_, value)| wild(value) > 1) {
                let Some(shape) = value.tensor_shape() else { continue };
                if open(shape, &known) > 1 {
                    let name = value.name();
                    let message = format_args!(
                        "the wildcards of {shape} of `{name}` match in more than one way"
                    );
                    self.report(Rule::R100, &at.index(list, index), message);
                }
            }
        }
    }
}

impl Value {
    /// The shape of a tensor, in the type or beside it.
    pub(crate) fn tensor_shape(&self) -> Option<&Shape> {
        let inner = self.ty.as_ref().and_then(Type::as_tensor).and_then(|ty| ty.shape.as_ref());
        inner.or(self.shape.as_ref())
    }

    /// Whether it is a tensor, dense or sparse.
    pub(crate) fn is_tensor(&self) -> bool {
        self.ty.as_ref().is_some_and(|ty| ty.as_tensor().is_some())
    }
}

/// Number of wildcards of a shape.
fn wild(value: &Value) -> usize {
    let dims = value.tensor_shape().map(|shape| &shape.dims[..]).unwrap_or_default();
    dims.iter().filter(|dim| matches!(dim, Dim::Wildcard(_))).count()
}

/// Number of unknown wildcards.
fn open(shape: &Shape, known: &BTreeSet<&str>) -> usize {
    let is_open = |dim: &&Dim| match dim {
        Dim::Wildcard(Some(name)) => !known.contains(name.as_str()),
        Dim::Wildcard(None) => true,
        _ => false,
    };
    shape.dims.iter().filter(is_open).count()
}

/// Named wildcards that inputs determine: those that are the only unknown ones in some shape.
fn determined(inputs: &[Value]) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    let mut pending: Vec<&Shape> = inputs.iter().filter_map(Value::tensor_shape).collect();
    for _ in 0..MAX_ROUNDS {
        let before = pending.len();
        pending.retain(|shape| {
            let is_closed = open(shape, &known) <= 1;
            if is_closed {
                known.extend(shape.dims.iter().filter_map(|dim| match dim {
                    Dim::Wildcard(Some(name)) => Some(name.as_str()),
                    _ => None,
                }));
            }
            !is_closed
        });
        if pending.len() == before || pending.is_empty() {
            break;
        }
    }
    known
}

/// A chain of shapes of which each determines the next.
const MAX_ROUNDS: usize = 64;
