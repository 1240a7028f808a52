//! Constants and inputs of a graph.

use super::Importer;
use super::scope::Scope;
use crate::data::{dense_of, dtype_of, tensor_of};
use crate::diagnostic::{NodeDiagnostic, NodeDiagnosticKind};
use crate::item::Structure;
use irc_common_format::model::{self, Path};
use irc_tl::{
    Binary, Combine, Comparison, Compute, Constant, DType, Dim, Relation, Scalar, TensorType, Type,
    ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Elements of an input for whose value a program may be specialised only because sizes are computed from it.
const MAX_SIZES: i64 = 64;

/// Symbols for names of sizes in a file, which may be any text, or the sizes themselves.
#[derive(Default)]
pub(super) struct Symbols {
    known: BTreeMap<String, i64>,
    of_name: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Symbols {
    /// Records the sizes that the shapes of inputs assign to names, and those of names that are no inputs.
    fn learn(&mut self, inputs: &[model::Value], shapes: &BTreeMap<String, Vec<i64>>) {
        let names: BTreeSet<&str> = inputs.iter().map(model::Value::name).collect();
        for (name, extents) in shapes.iter().filter(|(name, _)| !names.contains(name.as_str())) {
            if let [size] = extents[..] {
                self.known.insert(name.clone(), size);
            }
        }
        for input in inputs {
            let Some(given) = shapes.get(input.name()) else { continue };
            let dims = stated(input).map_or(&[][..], |shape| &shape.dims);
            for (dim, size) in dims.iter().zip(given) {
                if let model::Dim::Variable(name) = dim
                    && super::is_name(name)
                {
                    self.known.entry(name.clone()).or_insert(*size);
                }
            }
        }
    }

    /// The symbol of a name, distinct from those of other names.
    fn of(&mut self, name: &str) -> Dim {
        if let Some(size) = self.known.get(name) {
            return Dim::Known(*size);
        }
        if let Some(symbol) = self.of_name.get(name) {
            return Dim::symbol(symbol);
        }
        let plain = super::symbol_name(name);
        let mut symbol = plain.clone();
        let mut count = 0;
        while !self.taken.insert(symbol.clone()) {
            count += 1;
            symbol = format!("{plain}_{count}");
        }
        self.of_name.insert(name.to_owned(), symbol.clone());
        Dim::symbol(&symbol)
    }
}

impl Importer<'_> {
    /// Defines the constants; returns those that are inputs as well.
    pub(super) fn define_initializers(
        &mut self,
        graph: &model::Graph,
        scope: &mut Scope<'_>,
    ) -> BTreeMap<String, Constant> {
        let mut defaults = BTreeMap::new();
        let inputs: BTreeSet<&str> = graph.inputs.iter().map(model::Value::name).collect();
        let dense = graph.initializers.iter().enumerate().map(|(index, tensor)| {
            (Path::GRAPH.index("initializer", index), tensor.name.as_deref(), tensor_of(tensor))
        });
        let sparse = graph.sparse_initializers.iter().enumerate().map(|(index, tensor)| {
            let name = tensor.values.as_ref().and_then(|values| values.name.as_deref());
            (Path::GRAPH.index("sparse_initializer", index), name, dense_of(tensor))
        });
        for (path, name, constant) in dense.chain(sparse) {
            let name = name.unwrap_or_default();
            match constant {
                Ok(constant) => {
                    // An initializer that is an input as well is a default, which callers rarely
                    // replace; the program is specialised for it.
                    if inputs.contains(name) {
                        defaults.insert(name.to_owned(), constant.clone());
                    }
                    let value = self.builder.constant(constant);
                    scope.define(name, value);
                }
                Err(message) => {
                    scope.fail(name);
                    let node = format!("initializer '{name}'");
                    let kind = NodeDiagnosticKind::Unsupported;
                    self.diagnostics.push(NodeDiagnostic::new(
                        path.to_string(),
                        node,
                        kind,
                        message,
                    ));
                }
            }
        }
        defaults
    }

    /// Defines the inputs that have no default.
    pub(super) fn define_inputs(
        &mut self,
        graph: &model::Graph,
        scope: &mut Scope<'_>,
        defaults: &BTreeMap<String, Constant>,
    ) {
        self.symbols.learn(&graph.inputs, &self.options.shapes);
        // Those of known value come last: their checks define symbols.
        let known = |input: &&model::Value| self.options.values.contains_key(input.name());
        let (known, open): (Vec<_>, Vec<_>) =
            graph.inputs.iter().enumerate().partition(|(_, input)| known(input));
        let mut failed = vec![];
        for (index, input) in open.into_iter().chain(known) {
            if defaults.contains_key(input.name()) || scope.is_failed(input.name()) {
                continue;
            }
            if let Err(message) = self.define_input(input, scope) {
                scope.fail(input.name());
                failed.push((index, input.name(), message));
            }
        }
        failed.sort_unstable_by_key(|(index, ..)| *index);
        for (index, name, message) in failed {
            let path = Path::GRAPH.index("input", index).to_string();
            let node = format!("input '{name}'");
            let (kind, message) = match message {
                Open::Shape(message) => {
                    (NodeDiagnosticKind::NeedsShape(vec![name.to_owned()]), message)
                }
                Open::GivenShape(message) => (NodeDiagnosticKind::GivenShape, message),
                Open::Other(message) => (NodeDiagnosticKind::Unsupported, message),
            };
            self.diagnostics.push(NodeDiagnostic::new(path, node, kind, message));
        }
    }

    fn define_input(&mut self, input: &model::Value, scope: &mut Scope<'_>) -> Result<(), Open> {
        if !matches!(input.ty, Some(model::Type::Tensor(_) | model::Type::Sparse(_)) | None) {
            return self.define_structure(input, scope);
        }
        let ty = self.input_type(input)?;
        let value = self.define_tensor(input.name(), ty)?;
        scope.define(input.name(), value);
        Ok(())
    }

    /// Defines an input that is a sequence or an optional: its tensors are the inputs.
    fn define_structure(
        &mut self,
        input: &model::Value,
        scope: &mut Scope<'_>,
    ) -> Result<(), Open> {
        let name = input.name();
        let ty = input.ty.as_ref().map_or("nothing".to_owned(), model::Type::to_string);
        let structure = match self.options.structures.get(name) {
            Some(structure) => structure.clone(),
            None => self.map(input)?.ok_or_else(|| match &input.ty {
                Some(model::Type::Sequence(_) | model::Type::Optional(_)) => {
                    Open::Shape(format!("{ty}: its number of values and their types must be given"))
                }
                _ => Open::Other(format!("{ty}: inputs of this type are not supported")),
            })?,
        };
        let mut values = vec![];
        for (name, ty) in structure.flatten(name) {
            values.push(self.define_tensor(&name, ty)?);
        }
        let mut values = values.into_iter();
        let mut next = || values.next().expect("one value per tensor");
        scope.define_item(name, structure.build(&mut next));
        self.structures.insert(name.to_owned(), structure);
        Ok(())
    }

    /// The structure of an input that is a map of any size.
    fn map(&mut self, input: &model::Value) -> Result<Option<Structure>, String> {
        let Some(model::Type::Map { key, value }) = &input.ty else { return Ok(None) };
        let Some(model::Type::Tensor(value)) = value.as_deref() else { return Ok(None) };
        let count = self.symbols.of(&format!("{}_keys", input.name()));
        let of = |element| match dtype_of(element) {
            Some(dtype) => Ok(Type::new(dtype, [count.clone()])),
            None => Err(format!("elements of type {element} are not supported")),
        };
        Ok(Some(Structure::Map { keys: of(*key)?, values: of(value.element)? }))
    }

    /// Short inputs from whose values sizes are computed.
    pub(super) fn size_inputs(&self) -> BTreeSet<String> {
        let found = self.builder.dependencies_of_types().values;
        let is_short = |name: &String| self.short.contains(name);
        found.into_iter().filter(is_short).collect()
    }

    fn define_tensor(&mut self, name: &str, mut ty: Type) -> Result<ValueId, String> {
        let given = self.options.values.get(name);
        if let Some(constant) = given {
            let found = Type::from(constant.ty.clone());
            if found.dtype != ty.dtype || found.rank() != ty.rank() {
                return Err(format!("expected a value of {ty}, found {found}"));
            }
            ty = found;
        }
        ty.expect_size().map_err(|error| error.to_string())?;
        let elements = ty.elements().known();
        if ty.rank() <= 1 && elements.is_some_and(|elements| elements <= MAX_SIZES) {
            self.short.insert(name.to_owned());
        }
        let value = self.builder.input(name, ty);
        match given {
            None => Ok(value),
            Some(constant) => self.specialise(name, value, constant),
        }
    }

    /// Specialises for the value of an input, and adds a run-time check of it.
    fn specialise(
        &mut self,
        name: &str,
        value: ValueId,
        constant: &Constant,
    ) -> Result<ValueId, String> {
        let known = self.builder.constant(constant.clone());
        let ty = self.builder.ty(value).clone();
        let at = || -> Vec<Scalar> { (0..ty.rank()).map(Scalar::Loop).collect() };
        let (found, expected) = (Scalar::load(0, at()), Scalar::load(1, at()));
        let mut differs = found.clone().compare(Comparison::Ne, expected.clone());
        if ty.dtype.is_float() {
            // All NaNs are equal.
            let number = |scalar: Scalar| scalar.clone().equals(scalar);
            differs = differs.and(number(found).binary(Binary::Or, number(expected)));
        }
        let count = Compute::reduce([], Combine::Sum, ty.dims.clone(), differs.cast(DType::I64));
        let written = self.builder.compute(count, &[value, known]).and_then(|count| {
            let differing = self.builder.elements_or_symbols(count)?;
            let message = format!("input '{name}' is not what the model was compiled for");
            self.builder.require(&differing[0], Relation::Equal, &Dim::Known(0), &message)
        });
        written.map_err(|error| error.to_string())?;
        Ok(known)
    }

    fn input_type(&mut self, input: &model::Value) -> Result<Type, Open> {
        let name = input.name();
        let given = self.options.shapes.get(name);
        let tensor = match &input.ty {
            Some(model::Type::Tensor(tensor) | model::Type::Sparse(tensor)) => tensor,
            Some(other) => return Err(format!("expected a tensor, found {other}").into()),
            None => return self.untyped(name),
        };
        let dtype = dtype_of(tensor.element)
            .ok_or_else(|| format!("elements of type {} are not supported", tensor.element))?;
        if let Some(given) = given {
            if stated(input).is_some_and(|stated| !fits(given, stated)) {
                let found = TensorType::new(dtype, given.clone());
                let message =
                    format!("the model declares {tensor}, but the given shape is that of {found}");
                return Err(Open::GivenShape(message));
            }
            if let Some((size, value, axis)) = self.contradiction(input, given) {
                let found = TensorType::new(dtype, given.clone());
                let message = format!(
                    "'{size}' is stated to be {value}, but the given shape, that of {found}, has {} in dimension {axis}",
                    given[axis]
                );
                return Err(Open::GivenShape(message));
            }
            return Ok(TensorType::new(dtype, given.clone()).into());
        }
        let Some(shape) = stated(input) else {
            return Err(Open::shape("unknown rank; the shape of the input must be given"));
        };
        let mut dims = vec![];
        for (axis, dim) in shape.dims.iter().enumerate() {
            dims.push(match dim {
                model::Dim::Size(size) if *size >= 0 => Dim::Known(*size),
                model::Dim::Wildcard(_) => {
                    return Err(Open::shape("unknown rank; the shape of the input must be given"));
                }
                _ => self.symbols.of(&size_name(name, axis, dim)),
            });
        }
        Ok(Type::new(dtype, dims))
    }

    /// An open size of an input that has another value than in a given shape: its name and value, and the dimension.
    fn contradiction(&self, input: &model::Value, given: &[i64]) -> Option<(String, i64, usize)> {
        let dims = stated(input).map_or(&[][..], |shape| &shape.dims);
        dims.iter().zip(given).enumerate().find_map(|(axis, (dim, extent))| {
            let model::Dim::Variable(name) = dim else { return None };
            match self.options.shapes.get(name).map(Vec::as_slice) {
                Some([value]) if value != extent && name != input.name() => {
                    Some((name.clone(), *value, axis))
                }
                _ => None,
            }
        })
    }

    /// The type of an input that the file does not declare, as in the oldest files: that of its
    /// value, or floats of its shape.
    fn untyped(&self, name: &str) -> Result<Type, Open> {
        if let Some(constant) = self.options.values.get(name) {
            return Ok(constant.ty.clone().into());
        }
        let shape = self.options.shapes.get(name);
        let open = || Open::shape("unknown type; the shape of the input must be given");
        let shape = shape.ok_or_else(open)?;
        Ok(TensorType::new(DType::F32, shape.clone()).into())
    }
}

/// Names of the sizes of inputs that a module leaves open: its own, or those of an input and an axis.
pub fn open_sizes(module: &model::Module) -> BTreeSet<String> {
    let mut sizes = BTreeSet::new();
    for input in module.graph.iter().flat_map(|graph| &graph.inputs) {
        for (axis, dim) in stated(input).iter().flat_map(|shape| &shape.dims).enumerate() {
            match dim {
                model::Dim::Size(0..) | model::Dim::Wildcard(_) => {}
                _ => drop(sizes.insert(size_name(input.name(), axis, dim))),
            }
        }
    }
    sizes
}

/// The name of an open size: its own, or that of an input and an axis.
fn size_name(input: &str, axis: usize, dim: &model::Dim) -> String {
    match dim {
        model::Dim::Variable(name) if super::is_name(name) => name.clone(),
        _ => format!("{input}_{axis}"),
    }
}

/// The shape that the model declares for an input that is a tensor.
fn stated(input: &model::Value) -> Option<&model::Shape> {
    let (model::Type::Tensor(tensor) | model::Type::Sparse(tensor)) = input.ty.as_ref()? else {
        return None;
    };
    tensor.shape.as_ref().or(input.shape.as_ref())
}

/// Whether the model allows a shape.
fn fits(given: &[i64], stated: &model::Shape) -> bool {
    if stated.dims.iter().any(|dim| matches!(dim, model::Dim::Wildcard(_))) {
        return true;
    }
    let fits = |(given, stated): (&i64, &model::Dim)| match stated {
        model::Dim::Size(size) if *size >= 0 => size == given,
        _ => true,
    };
    given.len() == stated.dims.len() && given.iter().zip(&stated.dims).all(fits)
}

/// Reasons why an input cannot be defined.
enum Open {
    /// Its shape must be given.
    Shape(String),
    /// The model declares another one than the given one.
    GivenShape(String),
    /// Any other reason.
    Other(String),
}

impl Open {
    fn shape(message: &str) -> Self {
        Self::Shape(message.to_owned())
    }
}

impl From<String> for Open {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}
