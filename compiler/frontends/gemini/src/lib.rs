//! Imports Gemini frontend files as graphs of the tensor level.
//!
//! Plain Rust, no MLIR. [`import`] writes the layers as an [`irc_tl::Graph`] whose results have the
//! bytes that the functional simulator of the NPU computes (`runtime/npu/src/functional`). Weights and
//! constants of output channels are inputs, named as in the simulator:
//! `LAYER.weight`, `LAYER.scale` and `LAYER.bias`.

mod layer;
mod product;
mod vector;

use irc_diag::Diagnostic;
use irc_gemini_format::frontend::{Frontend, FrontendLayer, layer_path};
use irc_tl::{Builder, DType, Graph, Results, TensorType, ValueId};
use layer::{Place, activations, type_of};
use std::collections::{BTreeMap, BTreeSet};

/// Options of the import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Which results of layers are outputs: those that no layer reads, in the order of the layers, or
    /// all.
    pub results: Results,
}

/// The graph of a valid frontend file. The origin of each
/// node is the path of its layer, `$["Conv_1"]`.
///
/// # Errors
/// Every layer that cannot be imported, with paths in the file.
pub fn import(frontend: &Frontend, options: &ImportOptions) -> Result<Graph, Vec<Diagnostic>> {
    let mut layers: Vec<&FrontendLayer> = frontend.layers.iter().map(|(_, layer)| layer).collect();
    layers.sort_by_key(|layer| layer.layer_index);
    let names = layers.iter().map(|layer| layer.name.as_str()).collect();
    let mut importer =
        Importer { b: Builder::new(), names, values: BTreeMap::new(), found: vec![] };
    layers.iter().for_each(|layer| importer.inputs(layer));
    for layer in &layers {
        importer.b.set_origin(Some(layer_path(&layer.name).into()));
        importer.layer(layer);
    }
    if !importer.found.is_empty() {
        return Err(importer.found);
    }
    importer.outputs(&layers, &options.results)?;
    Ok(importer.b.finish())
}

struct Importer<'f> {
    b: Builder,
    /// The names of all layers.
    names: BTreeSet<&'f str>,
    /// Inputs of the network, and results of the layers so far.
    values: BTreeMap<&'f str, ValueId>,
    found: Vec<Diagnostic>,
}

impl<'f> Importer<'f> {
    /// Names that layers read but no layer computes.
    fn inputs(&mut self, layer: &'f FrontendLayer) {
        for (index, name) in activations(layer).iter().enumerate() {
            if self.names.contains(name.as_str()) || self.values.contains_key(name.as_str()) {
                continue;
            }
            match type_of(layer, Place::Input(index)) {
                Ok(ty) => {
                    let value = self.b.input(name.clone(), ty.into());
                    self.values.insert(name, value);
                }
                Err(diagnostic) => self.found.push(diagnostic),
            }
        }
    }

    /// Declares the requested results as outputs.
    fn outputs(
        &mut self,
        layers: &[&'f FrontendLayer],
        results: &Results,
    ) -> Result<(), Vec<Diagnostic>> {
        let read: BTreeSet<&str> =
            layers.iter().flat_map(|layer| activations(layer)).map(String::as_str).collect();
        let all = layers.iter().map(|layer| layer.name.as_str());
        let names: Vec<&str> = match results {
            Results::All => all.collect(),
            Results::Outputs => all.filter(|name| !read.contains(name)).collect(),
            Results::Named(names) => names.iter().map(String::as_str).collect(),
        };
        let mut found = vec![];
        for name in names {
            match self.values.get(name).filter(|_| self.names.contains(name)) {
                Some(value) => self.b.output(name, *value),
                None => {
                    let message = format!("there is no layer `{name}`");
                    found.push(Diagnostic::error("gemini-results", message));
                }
            }
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// Imports a layer. A layer that cannot be imported is replaced by a value of its type, so that errors
    /// of later layers are reported too.
    fn layer(&mut self, layer: &'f FrontendLayer) {
        let stated = type_of(layer, Place::Output);
        let result = self.result(layer).and_then(|value| {
            let stated = stated.clone()?;
            self.stated(layer, value, &stated)
        });
        let value = match (result, stated) {
            (Ok(value), _) => value,
            (Err(diagnostic), Ok(ty)) => {
                self.found.push(diagnostic);
                self.b.input(layer.name.clone(), ty.into())
            }
            (Err(diagnostic), Err(_)) => {
                self.found.push(diagnostic);
                return;
            }
        };
        self.values.insert(&layer.name, value);
    }

    fn result(&mut self, layer: &'f FrontendLayer) -> Result<ValueId, Diagnostic> {
        let mut operands = vec![];
        for (index, name) in activations(layer).iter().enumerate() {
            let Some(value) = self.values.get(name.as_str()).copied() else {
                let message = format!("it reads `{name}`, which is not an earlier layer");
                let key = format!("previous_layer[{index}]");
                return Err(layer::error(layer, "gemini-order", &key, message));
            };
            let expected = type_of(layer, Place::Input(index))?;
            let found = self.b.ty(value).clone();
            if found != expected.clone().into() {
                let message = format!("expected {expected} of `{name}`, found {found}");
                let key = format!("input_shape[{index}]");
                return Err(layer::error(layer, "gemini-shape", &key, message));
            }
            operands.push(value);
        }
        let Some(first) = operands.first().copied() else {
            let message = "it has no operand";
            return Err(layer::error(layer, "gemini-field", "previous_layer", message));
        };
        match layer.operation.as_str() {
            "conv2d" | "dense" => product::write(&mut self.b, layer, first),
            "quantize" | "element_wise_add" | "max_pool2d" | "avg_pool2d" => {
                vector::write(&mut self.b, layer, &operands)
            }
            // Every result has the stated shape.
            "reshape" => Ok(first),
            other => {
                let message = format!("unsupported operation `{other}`");
                Err(layer::error(layer, "gemini-operation", "operation", message))
            }
        }
    }

    /// A result in its stated shape, which may omit trailing extents of 1.
    fn stated(
        &mut self,
        layer: &FrontendLayer,
        value: ValueId,
        stated: &TensorType,
    ) -> Result<ValueId, Diagnostic> {
        let dims: Vec<_> = stated.shape.iter().map(|extent| (*extent).into()).collect();
        let found = self.b.ty(value).clone();
        let wrong = |why: String| {
            let message = format!("the result is {found}, not {stated}{why}");
            layer::error(layer, "gemini-shape", "output_shape", message)
        };
        if found.dtype != stated.dtype {
            return Err(wrong(String::new()));
        }
        self.b.reshape(value, &dims).map_err(|error| wrong(format!(": {error}")))
    }
}

/// A number as the NPU holds it, in single precision.
fn single(b: &mut Builder, value: f32) -> irc_tl::Built {
    b.scalar(f64::from(value), DType::F32)
}

/// `x k + z` of a value in single precision, rounded to that at the end: the product is exact in double precision.
fn multiply_add(b: &mut Builder, x: ValueId, k: f32, z: ValueId) -> irc_tl::Built {
    let (x, z) = (b.cast(x, DType::F64)?, b.cast(z, DType::F64)?);
    let k = b.scalar(f64::from(k), DType::F64)?;
    let product = b.binary(irc_tl::Binary::Mul, x, k)?;
    let sum = b.binary(irc_tl::Binary::Add, product, z)?;
    b.cast(sum, DType::F32)
}

/// A value in single precision in its own type: `round(x k) + zero` saturated to `i8`, or `x k + zero` as `f16`.
fn quantised(b: &mut Builder, x: ValueId, (k, zero): (f32, f32), to: DType) -> irc_tl::Built {
    let (k, zero) = (single(b, k)?, single(b, zero)?);
    let mut value = b.binary(irc_tl::Binary::Mul, x, k)?;
    if to == DType::I8 {
        value = b.unary(irc_tl::Unary::Round, value)?;
    }
    let value = b.binary(irc_tl::Binary::Add, value, zero)?;
    match to {
        DType::I8 => to_i8(b, value),
        _ => b.cast(value, to),
    }
}

/// The larger of a float and 0; 0 for NaN.
fn relu(b: &mut Builder, x: ValueId) -> irc_tl::Built {
    let zero = single(b, 0.0)?;
    let positive = b.compare(irc_tl::Comparison::Gt, x, zero)?;
    b.select(positive, x, zero)
}

/// The nearest integer of a float, ties to even, saturated to `i8`; 0 for NaN.
fn to_i8(b: &mut Builder, x: ValueId) -> irc_tl::Built {
    let rounding = irc_tl::Rounding::NearestEven;
    b.op(irc_tl::Op::Cast { to: DType::I8, rounding }, &[x])
}

#[cfg(test)]
mod tests {
    use irc_diag::codes;
    use std::path::Path;

    #[test]
    fn every_code_is_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
        let prefixes = [concat!("gemini", "-")];
        let used = codes::in_sources(&root.join("src"), &prefixes).expect("source files");
        assert!(!used.is_empty());
        assert_eq!(used, codes::in_page(&readme, &prefixes));
    }
}
