//! ONNX test cases: folders with `model.onnx` and `test_data_set_N`, whose `input_N.pb` and
//! `output_N.pb` hold values.

use crate::{
    ImportOptions, Imported, NodeDiagnostic, NodeDiagnosticKind, Structure, import, tensor_of,
};
use irc_common_format::{FileSystem, Files, Options, model, open, read_data};
use irc_diag::Sink;
use irc_tensor::{Tensor, TensorType};
use irc_tl::Constant;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The official runner's relative tolerance.
const RELATIVE: f64 = 1e-3;
/// The official runner's absolute tolerance.
const ABSOLUTE: f64 = 1e-7;

/// The folders below `folder` that hold a model, in order of their paths.
pub fn find(folder: &Path) -> Vec<PathBuf> {
    let mut cases = vec![];
    collect(folder, &mut cases);
    cases.sort();
    cases
}

fn collect(folder: &Path, cases: &mut Vec<PathBuf>) {
    if folder.join("model.onnx").is_file() {
        cases.push(folder.to_owned());
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), cases);
        }
    }
}

/// A model with its test data.
pub struct Case {
    /// The model.
    pub module: model::Module,
    /// Inputs, and the expected outputs.
    pub sets: Vec<(Values, Values)>,
}

impl Case {
    /// Reads a folder.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let mut sink = Sink::new();
        let document = open(&folder.join("model.onnx"), &Options::default(), &mut sink);
        let messages = || {
            let diagnostics = sink.diagnostics().iter().filter(|diagnostic| diagnostic.is_error());
            diagnostics.map(|diagnostic| diagnostic.message.clone()).collect::<Vec<_>>().join("; ")
        };
        let document = document.ok_or_else(messages)?;
        let graph = document.module.graph.as_ref().ok_or("the file is a library")?;
        let folders = (0..).map(|set| folder.join(format!("test_data_set_{set}")));
        let mut sets = vec![];
        for set in folders.take_while(|set| set.is_dir()) {
            let read = |kind, ports| Values::read(&FileSystem, &set, kind, ports);
            sets.push((read("input", &graph.inputs)?, read("output", &graph.outputs)?));
        }
        Ok(Self { module: document.module, sets })
    }
}

/// Tensors by name; those of sequences and optionals by the names of their parts.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// The tensors.
    pub tensors: BTreeMap<String, Constant>,
    /// How values other than tensors are composed of tensors.
    pub structures: BTreeMap<String, Structure>,
}

impl Values {
    /// Reads the files `{kind}_{number}.pb` of a folder; absent files are skipped.
    ///
    /// # Errors
    /// A file that cannot be read, or does not hold a value of its port's type.
    pub fn read(
        files: &dyn Files,
        folder: &Path,
        kind: &str,
        ports: &[model::Value],
    ) -> Result<Self, String> {
        let mut values = Self::default();
        for (index, port) in ports.iter().enumerate() {
            let path = folder.join(format!("{kind}_{index}.pb"));
            let bytes = match files.read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{kind} {index} cannot be read: {error}")),
            };
            let ty = port.ty.clone().ok_or("an untyped value")?;
            let mut sink = Sink::new();
            let data = read_data(bytes, &ty, &mut sink);
            let data = data.ok_or_else(|| format!("{kind} {index} cannot be read"))?;
            let structure = take(port.name(), &data, &mut values.tensors)?;
            if !matches!(structure, Structure::Tensor(_)) {
                values.structures.insert(port.name().to_owned(), structure);
            }
        }
        Ok(values)
    }

    /// The structures, and those of the inputs of a module of which only the tensors are given, by name. If there
    /// are no tensors at all, nothing is known of them: an input without tensors may be empty or absent.
    fn structures_of(&self, module: &model::Module) -> BTreeMap<String, Structure> {
        let mut found = self.structures.clone();
        let inputs = module.graph.iter().flat_map(|graph| &graph.inputs);
        for input in inputs.filter(|_| !self.tensors.is_empty()) {
            if let Some(ty @ (model::Type::Sequence(_) | model::Type::Optional(_))) = &input.ty
                && !found.contains_key(input.name())
                && let Some(structure) = Structure::named(input.name(), ty, &self.tensors)
            {
                found.insert(input.name().to_owned(), structure);
            }
        }
        found
    }

    /// The tensors.
    ///
    /// # Errors
    /// A tensor whose elements do not match its type.
    pub fn to_tensors(&self) -> Result<BTreeMap<String, Tensor>, String> {
        let tensor = |(name, value): (&String, &Constant)| {
            let tensor = value.tensor().map_err(|error| format!("{name}: {error}"))?;
            Ok((name.clone(), tensor))
        };
        self.tensors.iter().map(tensor).collect()
    }

    /// Compares results with these values, as the official runner does: types are equal, and floats
    /// within 1e-3 relative and 1e-7 absolute.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(
        &self,
        found: &BTreeMap<String, Tensor>,
        structures: &BTreeMap<String, Structure>,
    ) -> Result<(), String> {
        for (name, expected) in &self.structures {
            let found = structures.get(name).ok_or_else(|| format!("'{name}' is a tensor"))?;
            if !alike(expected, found) {
                return Err(format!("{name}: expected {expected:?}, found {found:?}"));
            }
        }
        for (name, expected) in &self.tensors {
            let found = found.get(name).ok_or_else(|| format!("no output '{name}'"))?;
            compare(name, expected, found)?;
        }
        Ok(())
    }
}

/// Imports a module for these inputs: the program is specialised for the values and shapes of inputs that
/// its structure depends on; all other symbolic sizes stay symbolic.
///
/// # Errors
/// As [`import`].
pub fn import_for(
    module: &model::Module,
    inputs: &Values,
    options: ImportOptions,
) -> Result<Imported, Vec<NodeDiagnostic>> {
    let structures = inputs.structures_of(module);
    let mut options = ImportOptions { structures, ..options };
    loop {
        let diagnostics = match import(module, &options) {
            Ok(imported) if imported.size_inputs.is_empty() => return Ok(imported),
            Ok(imported) => sized(module, &imported.size_inputs),
            Err(diagnostics) => diagnostics,
        };
        if !give(&mut options, &diagnostics, inputs) {
            return Err(diagnostics);
        }
    }
}

/// Imports a module without knowing the sizes of inputs: the program computes for these inputs what it
/// computes for others of their ranks.
///
/// # Errors
/// As [`import`].
pub fn import_open(
    module: &model::Module,
    inputs: &Values,
) -> Result<Imported, Vec<NodeDiagnostic>> {
    let mut module = module.clone();
    let mut shapes = BTreeMap::new();
    for input in module.graph.iter_mut().flat_map(|graph| &mut graph.inputs) {
        if !forget_sizes(input)
            && let Some(value) = inputs.tensors.get(input.name())
        {
            shapes.insert(input.name().to_owned(), value.ty.shape.clone());
        }
    }
    import_for(&module, inputs, ImportOptions { shapes, ..ImportOptions::default() })
}

/// Reduces a value's shape to its rank; returns false if it has none.
fn forget_sizes(value: &mut model::Value) -> bool {
    let Some(model::Type::Tensor(tensor)) = &mut value.ty else { return false };
    let Some(shape) = tensor.shape.as_mut().or(value.shape.as_mut()) else { return false };
    shape.dims.iter_mut().for_each(|dim| *dim = model::Dim::Unknown);
    true
}

/// The diagnostics for inputs from whose values sizes are computed that must be known.
fn sized(module: &model::Module, names: &BTreeSet<String>) -> Vec<NodeDiagnostic> {
    let inputs = module.graph.iter().flat_map(|graph| &graph.inputs).enumerate();
    let places: BTreeMap<&str, usize> =
        inputs.map(|(index, input)| (input.name(), index)).collect();
    let diagnostic = |name: &String| {
        let graph = model::Path::GRAPH;
        let path = match places.get(&**name) {
            Some(index) => graph.index("input", *index).to_string(),
            None => graph.to_string(),
        };
        let message =
            "sizes are computed from its value, and must be known when the model is compiled";
        let kind = NodeDiagnosticKind::NeedsValue(vec![name.clone()]);
        NodeDiagnostic::new(path, format!("input '{name}'"), kind, message)
    };
    names.iter().map(diagnostic).collect()
}

/// Adds the values and shapes that diagnostics request; returns false if there are none left.
fn give(options: &mut ImportOptions, diagnostics: &[NodeDiagnostic], inputs: &Values) -> bool {
    let before = options.values.len() + options.shapes.len();
    for diagnostic in diagnostics {
        let (NodeDiagnosticKind::NeedsValue(names) | NodeDiagnosticKind::NeedsShape(names)) =
            &diagnostic.kind
        else {
            continue;
        };
        for name in names {
            let Some(value) = inputs.tensors.get(name) else { continue };
            if matches!(diagnostic.kind, NodeDiagnosticKind::NeedsValue(_)) {
                options.values.insert(name.clone(), value.clone());
            } else {
                options.shapes.insert(name.clone(), value.ty.shape.clone());
            }
        }
    }
    options.values.len() + options.shapes.len() > before
}

/// The structure of a value; its tensors are inserted under the names of its parts.
fn take(
    name: &str,
    data: &model::Data,
    tensors: &mut BTreeMap<String, Constant>,
) -> Result<Structure, String> {
    Ok(match data {
        model::Data::Tensor(tensor) => {
            let constant = tensor_of(tensor)?;
            let ty = constant.ty.clone().into();
            tensors.insert(name.to_owned(), constant);
            Structure::Tensor(ty)
        }
        model::Data::Sequence(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| take(&format!("{name}[{index}]"), item, tensors));
            Structure::Sequence(items.collect::<Result<_, _>>()?)
        }
        model::Data::Optional(item) => {
            let item = item.as_ref().map(|item| take(name, item, tensors)).transpose()?;
            Structure::Optional(item.map(Box::new))
        }
        _ => return Err(format!("{name}: values of this kind are not supported")),
    })
}

/// Whether two structures match; the content of an optional matches the optional.
fn alike(expected: &Structure, found: &Structure) -> bool {
    match (expected, found) {
        (Structure::Sequence(expected), Structure::Sequence(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| alike(expected, found))
        }
        (Structure::Optional(None), Structure::Optional(None)) => true,
        (Structure::Optional(Some(expected)), found) => alike(expected, found),
        (expected, Structure::Optional(Some(found))) => alike(expected, found),
        (Structure::Tensor(_), Structure::Tensor(_)) => true,
        _ => false,
    }
}

fn compare(name: &str, expected: &Constant, found: &Tensor) -> Result<(), String> {
    let expected = expected.tensor().map_err(|error| error.to_string())?;
    let (wanted, got): (&TensorType, &TensorType) = (expected.ty(), found.ty());
    if wanted != got {
        return Err(format!("{name}: expected {wanted}, found {got}"));
    }
    if !wanted.dtype.is_float() {
        let equal = expected == *found;
        let say = || format!("{name}: expected {:?}, found {:?}", head(&expected), head(found));
        return if equal { Ok(()) } else { Err(say()) };
    }
    for (index, (want, have)) in expected.to_f64().into_iter().zip(found.to_f64()).enumerate() {
        let close = want == have
            || want.is_nan() && have.is_nan()
            || (want - have).abs() <= ABSOLUTE + RELATIVE * want.abs();
        if !close {
            return Err(format!("{name}[{index}]: expected {want}, found {have}"));
        }
    }
    Ok(())
}

fn head(tensor: &Tensor) -> Vec<String> {
    const SHOWN: usize = 8;
    if let Some(texts) = tensor.to_strings() {
        let text = |text: &std::sync::Arc<[u8]>| String::from_utf8_lossy(text).into_owned();
        return texts.iter().take(SHOWN).map(text).collect();
    }
    tensor.to_f64().iter().take(SHOWN).map(f64::to_string).collect()
}
