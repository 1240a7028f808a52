//! Input and output buffers: `.npz` files, random values, summaries, comparison.
use crate::{
    console::Console,
    error::Error,
    output::{self, Content},
};
use irc::import::{Bounds, Imported};
use irc_runtime::{Interface, Port, RunError};
use irc_tensor::{
    DType, Npz, NpzError, Tensor, TensorType, Tolerance, compare, seed_for, write_npz,
};
use irc_tl::Dim;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{BufReader, Cursor},
    path::{Path, PathBuf},
};

/// Buffers by name.
pub type Buffers = BTreeMap<String, Tensor>;

/// Shapes of inputs, and values of open sizes, by name.
pub type Shapes = BTreeMap<String, Vec<i64>>;

/// Buffers in an `.npz` file, of which only names and types have been read: data are decompressed only
/// after these have been checked, so that a small file cannot exhaust the memory.
#[derive(Default)]
pub struct Given(Option<(PathBuf, Npz<BufReader<File>>)>);

impl Given {
    /// Opens a file; `None` has no buffers.
    pub fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else { return Ok(Self(None)) };
        let about = std::fs::metadata(path).and_then(|about| match about.is_dir() {
            true => Err(std::io::ErrorKind::IsADirectory.into()),
            false => Ok(about),
        });
        let about = about.map_err(|error| {
            let why = output::plain(&error);
            Error::problem(format!("cannot read {}: {why}", path.display()))
        })?;
        if about.is_file() && about.len() == 0 {
            let problem = Error::problem(format!("{} is an empty file", path.display()));
            return Err(problem.help(NPZ));
        }
        let npz = Npz::open(path).map_err(|error| unreadable(path, &error))?;
        Ok(Self(Some((path.to_owned(), npz))))
    }

    /// Removes the buffers whose names do not satisfy a predicate.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        if let Some((_, npz)) = &mut self.0 {
            npz.retain(|name, _| keep(name));
        }
    }

    /// The names and types, in order.
    pub fn types(&self) -> BTreeMap<String, TensorType> {
        let npz = self.0.iter().flat_map(|(_, npz)| npz.types());
        npz.map(|(name, ty)| (name.to_owned(), ty.clone())).collect()
    }

    /// All buffers, unless `expect` rejects the name or type of one.
    pub fn read(
        self,
        mut expect: impl FnMut(&str, &TensorType) -> Result<(), Error>,
    ) -> Result<Buffers, Error> {
        let Some((path, npz)) = self.0 else { return Ok(Buffers::new()) };
        npz.types()
            .try_for_each(|(name, ty)| expect(name, ty))
            .map_err(|error| error.in_file(&path))?;
        npz.read_all().map_err(|error| unreadable(&path, &error))
    }

    /// All buffers, which must be inputs or outputs of a program.
    pub fn read_for(self, interface: &Interface) -> Result<Buffers, Error> {
        self.read(|name, ty| {
            let ports = || interface.inputs.iter().chain(&interface.outputs);
            let error = match ports().find(|port| port.name == name) {
                Some(port) if is_stored_for(port, ty) => return Ok(()),
                Some(port) => RunError::Input {
                    name: name.to_owned(),
                    expected: port.type_text(),
                    found: ty.to_string(),
                },
                None => {
                    let inputs = interface.inputs.iter().filter(|port| port.weight.is_none());
                    let known: Vec<_> = inputs.map(|port| port.name.as_str()).collect();
                    RunError::UnknownInput { name: name.to_owned(), known: known.join(", ") }
                }
            };
            Err(error.into())
        })
    }

    /// All inputs of a compiled program: those of the file, and others.
    pub fn complete(
        self,
        console: &Console,
        interface: &Interface,
        missing: &Missing,
    ) -> Result<Buffers, Error> {
        let mut given = self.read_for(interface)?;
        missing.complete(console, &mut given, &interface.inputs)?;
        Ok(given)
    }
}

/// What files of buffers are.
const NPZ: &str = "expected an archive written by numpy.savez";

fn unreadable(path: &Path, error: &NpzError) -> Error {
    let (text, name) = (error.to_string(), path.display().to_string());
    let text = if text.contains(&name) { text } else { format!("{name}: {text}") };
    let error_of_file = Error::problem(text);
    match error {
        NpzError::Array { .. } => error_of_file,
        _ => error_of_file.help(NPZ),
    }
}

/// Notes inputs of a quantised model that have NaN: its bytes have none, so that results do not show it.
pub fn note_nan(console: &Console, given: &Buffers) {
    for (name, tensor) in given.iter().filter(|(_, tensor)| tensor.dtype().is_float()) {
        let count = (0..tensor.elements()).filter(|at| tensor.get_f64(*at).is_nan()).count();
        if count > 0 {
            console.note(&format!(
                "input '{name}' has {count} NaN: in a quantised model they become some byte, and results do not show \
                 them"
            ));
        }
    }
}

/// Notes inputs of which all samples are 0: their range is empty.
pub fn note_zeros(console: &Console, samples: &Buffers) {
    for (name, tensor) in samples.iter().filter(|(_, tensor)| tensor.dtype().is_float()) {
        if tensor.elements() > 0 && (0..tensor.elements()).all(|at| tensor.get_f64(at) == 0.0) {
            console.note(&format!(
                "all samples of input '{name}' are 0: its range is empty, and its scale is 1"
            ));
        }
    }
}

/// Whether a port accepts a file's tensor of this type.
pub fn is_stored_for(port: &Port, stored: &TensorType) -> bool {
    let Some(dtype) = port.element_type() else { return false };
    is_stored_as(dtype, stored.dtype) && port.takes(&TensorType { dtype, ..stored.clone() })
}

/// Whether files may store elements of a type as another type: the bits of `bf16` and of small types.
pub fn is_stored_as(dtype: DType, stored: DType) -> bool {
    let is_bits = stored == DType::U16 && dtype.size() == stored.size();
    is_bits || dtype.npy_descr() == stored.npy_descr()
}

/// Writes an archive.
pub fn write(path: &Path, buffers: &Buffers) -> Result<(), Error> {
    stage(path, buffers)?.finish()
}

/// As [`write()`], for a file that appears only when it is finished.
pub fn stage(path: &Path, buffers: &Buffers) -> Result<output::Stream, Error> {
    let mut bytes = Cursor::new(Vec::new());
    write_npz(&mut bytes, buffers).map_err(|error| Error::problem(error.to_string()))?;
    output::stage(path, &bytes.into_inner(), Content::Binary)
}

/// What inputs are that are not given.
#[derive(Default)]
pub struct Missing {
    seed: Option<u64>,
    bounds: Bounds,
    /// Inputs that are numbers of past tokens: 0, as any other may exceed the room of caches.
    token_counts: BTreeSet<String>,
    /// What is stated of their shapes.
    shapes: Shapes,
}

impl Missing {
    /// Of a compiled program: random with a seed, otherwise zero.
    pub fn of(interface: &Interface, seed: Option<u64>) -> Self {
        // Only the import knows them; in a program with caches, every other single integer may be 0 as well.
        let has_caches = interface.outputs.iter().any(|port| port.updates.is_some());
        let is_count =
            |port: &&Port| has_caches && port.dtype == DType::I64.name() && port.shape.is_empty();
        let counts = interface.inputs.iter().filter(is_count).map(|port| port.name.clone());
        Self { seed, token_counts: counts.collect(), ..Self::default() }
    }

    /// Of a model.
    pub fn of_model(imported: &Imported, seed: Option<u64>) -> Self {
        let (bounds, token_counts) = (imported.bounds.clone(), imported.token_counts());
        Self { seed, bounds, token_counts, shapes: Shapes::new() }
    }

    /// The same, with what is stated of their shapes.
    pub fn with_shapes(self, shapes: Shapes) -> Self {
        Self { shapes, ..self }
    }

    /// Random values, whatever the program.
    pub fn random(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::default() }
    }

    /// Sets every missing input, and notes which have no value and are zero.
    ///
    /// # Errors
    /// Inputs of open sizes without a seed.
    pub fn complete(
        &self,
        console: &Console,
        given: &mut Buffers,
        inputs: &[Port],
    ) -> Result<(), Error> {
        let is_missing = |port: &&Port| {
            !port.preserved && port.weight.is_none() && !given.contains_key(&port.name)
        };
        let missing: Vec<&Port> = inputs.iter().filter(is_missing).collect();
        let names = |ports: &[&Port]| {
            ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        if self.seed.is_some() {
            let counts = missing.into_iter().filter(|port| self.token_counts.contains(&port.name));
            let counts = names(&counts.collect::<Vec<_>>());
            if !counts.is_empty() {
                console.note(&format!(
                    "these numbers of past tokens have no value and are zero: {counts}; see --inputs"
                ));
            }
            return self.fill(given, inputs);
        }
        let sizes = self.sizes(&shapes_of(given), inputs)?;
        let (zero, open): (Vec<_>, Vec<_>) = missing
            .into_iter()
            .partition(|port| port.tensor_type().is_some() || !is_open(port, &sizes));
        if !open.is_empty() {
            let types: Vec<String> =
                open.iter().map(|port| format!("{} {}", port.name, port.type_text())).collect();
            let what = if open.len() == 1 {
                "this input of an open size has"
            } else {
                "these inputs of open sizes have"
            };
            let problem = Error::problem(format!("{what} no value: {}", types.join(", ")));
            return Err(problem.help(
                "--inputs X.npz gives values; --seed N makes random ones, with 1 for each open size that --shape does not state",
            ));
        }
        if zero.iter().any(|port| port.tensor_type().is_none()) {
            self.fill(given, inputs)?;
        }
        if !zero.is_empty() {
            console.note(&format!(
                "these inputs have no value and are zero: {}; see --inputs and --seed",
                names(&zero)
            ));
        }
        Ok(())
    }

    /// The inputs with a size that inputs of given shapes, and what is stated, do not determine.
    ///
    /// # Errors
    /// A shape of no input and no size, or one that its input does not take.
    pub fn open<'p>(&self, given: &Shapes, inputs: &'p [Port]) -> Result<Vec<&'p Port>, Error> {
        let sizes = self.sizes(given, inputs)?;
        let is_missing = |port: &&Port| !given.contains_key(&port.name);
        Ok(inputs.iter().filter(is_missing).filter(|port| is_open(port, &sizes)).collect())
    }

    /// The values of open sizes that inputs of given shapes, and what is stated, determine.
    fn sizes(&self, given: &Shapes, inputs: &[Port]) -> Result<BTreeMap<String, i64>, Error> {
        // With what determines each.
        let mut sizes: BTreeMap<String, (i64, String)> = BTreeMap::new();
        for port in inputs {
            let extents = given.get(&port.name).map_or(&[][..], Vec::as_slice);
            for (axis, (size, extent)) in port.sizes.iter().zip(extents).enumerate() {
                let why = format!("dimension {axis} of the given input '{}'", port.name);
                sizes.insert(size.clone(), (*extent, why));
            }
        }
        let symbols = symbols(inputs);
        for (name, extents) in &self.shapes {
            let stated = extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
            let flag = format!("--shape {name}={stated}");
            let wrong = |what: String| Err(Error::Usage(format!("{flag}: {what}")));
            let port = inputs.iter().find(|port| port.name == *name && port.weight.is_none());
            let added: Vec<(String, i64)> = match (port, &extents[..]) {
                (Some(port), _) => {
                    let dtype = port.element_type();
                    let ty = dtype.map(|dtype| TensorType::new(dtype, extents.clone()));
                    if !ty.is_some_and(|ty| port.takes(&ty)) {
                        return wrong(format!("expected a shape of {}", port.type_text()));
                    }
                    port.sizes.iter().cloned().zip(extents.iter().copied()).collect()
                }
                (None, [extent]) if symbols.contains(name) => vec![(name.clone(), *extent)],
                (None, _) if symbols.contains(name) => {
                    return wrong(format!("'{name}' is an open size: expected one number"));
                }
                (None, _) => {
                    let ports = inputs.iter().filter(|port| port.weight.is_none());
                    let names: Vec<&str> = ports.map(|port| port.name.as_str()).collect();
                    let open: Vec<&str> = symbols.iter().map(String::as_str).collect();
                    let open = match &open[..] {
                        [] => "all sizes are fixed".to_owned(),
                        open => format!("the open sizes are {}", open.join(", ")),
                    };
                    return wrong(format!(
                        "no input or open size is named '{name}'; the inputs are {}; {open}",
                        names.join(", ")
                    ));
                }
            };
            for (size, extent) in added {
                if let Some((other, why)) = sizes.insert(size.clone(), (extent, flag.clone()))
                    && other != extent
                    && size.parse::<i64>().is_err()
                {
                    return wrong(format!("contradicts {why}, where '{size}' is {other}"));
                }
            }
        }
        Ok(sizes.into_iter().map(|(size, (extent, _))| (size, extent)).collect())
    }

    /// Sets every missing input that the program reads to random values, without a seed to zero; a symbolic size that no given
    /// input or shape determines is 1, or the number next to it within its bounds.
    pub fn fill(&self, given: &mut Buffers, inputs: &[Port]) -> Result<(), Error> {
        let stated = self.sizes(&shapes_of(given), inputs)?;
        let bounds = self.bounds.iter();
        let bounded =
            bounds.map(|(name, range)| (name.clone(), 1.clamp(*range.start(), *range.end())));
        let mut sizes: BTreeMap<String, i64> = bounded.collect();
        sizes.extend(stated);
        for port in inputs.iter().filter(|port| !port.preserved && port.weight.is_none()) {
            if given.contains_key(&port.name) {
                continue;
            }
            let Some(dtype) = port.element_type() else { continue };
            let extent = |(axis, extent): (usize, &i64)| match port.sizes.get(axis) {
                Some(size) if *extent < 0 => value(size, &sizes).unwrap_or(1),
                _ => (*extent).max(0),
            };
            let shape: Vec<i64> = port.shape.iter().enumerate().map(extent).collect();
            let ty = TensorType::new(dtype, shape);
            let made = match self.seed {
                Some(seed) if !self.token_counts.contains(&port.name) => {
                    Tensor::random(ty, seed_for(seed, &port.name))
                }
                _ => Tensor::zeros(ty),
            };
            let made =
                made.map_err(|error| Error::problem(format!("input {}: {error}", port.name)))?;
            given.insert(port.name.clone(), made);
        }
        Ok(())
    }
}

/// The shapes of buffers.
pub fn shapes_of(buffers: &Buffers) -> Shapes {
    buffers.iter().map(|(name, tensor)| (name.clone(), tensor.shape().to_vec())).collect()
}

/// Whether an input has a size that these do not determine.
fn is_open(port: &Port, sizes: &BTreeMap<String, i64>) -> bool {
    let mut own = port.shape.iter().zip(&port.sizes);
    own.any(|(extent, size)| *extent < 0 && value(size, sizes).is_none())
}

/// The value of a size of an input, as symbols determine it.
fn value(size: &str, sizes: &BTreeMap<String, i64>) -> Option<i64> {
    let known = |name: &str| sizes.get(name).copied();
    known(size).or_else(|| size.parse::<Dim>().ok()?.eval(&known))
}

/// The names of the open sizes of inputs.
fn symbols(inputs: &[Port]) -> BTreeSet<String> {
    let sizes = inputs.iter().flat_map(|port| &port.sizes);
    let sizes = sizes.filter_map(|size| size.parse::<Dim>().ok());
    sizes.flat_map(|size| size.symbols()).map(|symbol| symbol.to_string()).collect()
}

/// One line per buffer: name, type, minimum, mean and maximum; of strings, how many are distinct, the length of
/// the longest, and the first.
pub fn summary(buffers: &Buffers) -> String {
    let width = buffers.keys().map(String::len).max().unwrap_or(0);
    buffers.iter().map(|(name, tensor)| line(name, width, tensor)).collect()
}

fn line(name: &str, width: usize, tensor: &Tensor) -> String {
    let ty = tensor.ty().to_string();
    if let Some(texts) = tensor.to_strings().filter(|texts| !texts.is_empty()) {
        let distinct: BTreeSet<_> = texts.iter().collect();
        let longest = distinct.iter().map(|text| text.len()).max().unwrap_or(0);
        let (first, count) = (String::from_utf8_lossy(&texts[0]), distinct.len());
        let first: String = first.chars().take(40).collect();
        return format!(
            "{name:width$}  {ty}  {count} distinct  longest {longest} bytes  first {first:?}\n"
        );
    }
    let values = tensor.to_f64();
    if values.is_empty() {
        return format!("{name:width$}  {ty}  empty\n");
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mut text =
        format!("{name:width$}  {ty}  min {least:.6}  mean {mean:.6}  max {greatest:.6}");
    let odd = values.iter().filter(|value| !value.is_finite()).count();
    if odd > 0 {
        text += &format!("  {odd} not finite");
    }
    text + "\n"
}

/// Removes expected values of buffers that plans do not have, with a note: a plan may share buffers that
/// are separate in a model, or omit them.
pub fn set_aside(
    console: &Console,
    expected: &mut Given,
    outputs: &Buffers,
    buffers: &BTreeSet<String>,
) -> Result<(), Error> {
    let (here, missing): (Vec<_>, Vec<_>) =
        expected.types().into_keys().partition(|name| buffers.contains(name));
    if missing.is_empty() {
        return Ok(());
    }
    if here.is_empty() {
        let problem = Error::problem("--expected and the plan have no buffer in common");
        return Err(problem.help(listing(outputs)));
    }
    expected.retain(|name| buffers.contains(name));
    let (left, names) = (missing.len(), missing.join(", "));
    let all = left + here.len();
    console.note(&format!(
        "{left} of {all} expected buffers are not in the plan and are ignored: {names}"
    ));
    Ok(())
}

/// Compares with expected values; all differences are shown on the console.
///
/// Only different numbers are a [`Error::Mismatch`]: buffers that cannot be compared are an error in the
/// file.
pub fn check(
    console: &Console,
    expected: Given,
    actual: &Buffers,
    tolerance: Option<f64>,
) -> Result<(), Error> {
    let types = expected.types();
    if types.is_empty() {
        return Err(Error::problem("--expected contains no buffer").help(listing(actual)));
    }
    let mut fits = true;
    for (name, stored) in &types {
        if let Err(message) = expect(stored, actual.get(name)) {
            fits = false;
            console.error(&format!("{name}: {message}"), None);
        }
    }
    if !fits {
        return Err(Error::problem("--expected does not match the outputs").help(listing(actual)));
    }
    check_buffers(console, expected.read(|_, _| Ok(()))?, actual, tolerance)?;
    output::print(&format!("{0} of {0} expected buffers agree\n", types.len()))
}

/// As [`check`], for buffers with matching types.
pub fn check_buffers(
    console: &Console,
    expected: Buffers,
    actual: &Buffers,
    tolerance: Option<f64>,
) -> Result<(), Error> {
    let mut differs = false;
    for (name, expected) in expected {
        let Some(actual) = actual.get(&name) else { continue };
        if let Err(message) = check_one(expected, actual, tolerance) {
            differs = true;
            console.error(&format!("{name}: {message}"), None);
        }
    }
    if differs { Err(Error::Mismatch) } else { Ok(()) }
}

/// Checks that the expected type is that of the output; archives store bfloat16 as its bits.
fn expect(stored: &TensorType, actual: Option<&Tensor>) -> Result<(), String> {
    let actual = actual.ok_or("expected, but not an output")?.ty();
    let is_bits = stored.dtype == DType::U16 && actual.dtype == DType::BF16;
    if actual.shape == stored.shape && (is_bits || actual.dtype == stored.dtype) {
        return Ok(());
    }
    Err(format!("expected {stored}, but the output is {actual}"))
}

/// The names and types of all outputs.
fn listing(outputs: &Buffers) -> String {
    let outputs: Vec<_> =
        outputs.iter().map(|(name, tensor)| format!("{name} {}", tensor.ty())).collect();
    format!("outputs: {}", outputs.join(", "))
}

fn check_one(expected: Tensor, actual: &Tensor, tolerance: Option<f64>) -> Result<(), String> {
    let expected = match expected.dtype() == actual.dtype() {
        true => expected,
        false => expected.reinterpret(actual.dtype()).map_err(|error| error.to_string())?,
    };
    let bound = tolerance.map(|bound| Tolerance { abs: 0.0, rel: bound, rms: bound });
    let found = compare(&expected, actual, bound.unwrap_or(Tolerance::of(actual.dtype())))?;
    if found.is_match() { Ok(()) } else { Err(found.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers(values: &[f32]) -> Buffers {
        let tensor = Tensor::from_values([values.len() as i64], values).expect("a tensor");
        BTreeMap::from([("buffer_0".to_owned(), tensor)])
    }

    #[test]
    fn a_summary_counts_what_is_not_finite() {
        let text = summary(&buffers(&[1.0, 3.0]));
        assert!(text.contains("min 1.000000  mean 2.000000  max 3.000000"), "{text}");
        assert!(summary(&buffers(&[f32::NAN, 3.0])).contains("1 not finite"));
    }

    #[test]
    fn buffers_that_plans_lack_are_set_aside_unless_all_are() {
        let console = Console::new(
            "irc",
            &irc_cli::Console {
                diagnostics: Default::default(),
                color: Default::default(),
                progress: Default::default(),
            },
        );
        let outputs = buffers(&[1.0]);
        let mut all = outputs.clone();
        all.insert("buffer_1".into(), outputs["buffer_0"].clone());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.npz");
        write(&path, &all).expect("writable");
        let mut expected = Given::open(Some(&path)).expect("readable");
        let here = |name: &str| BTreeSet::from([name.to_owned()]);
        assert!(set_aside(&console, &mut expected, &outputs, &here("buffer_2")).is_err());
        set_aside(&console, &mut expected, &outputs, &here("buffer_0")).expect("one in common");
        assert_eq!(expected.types().into_keys().collect::<Vec<_>>(), ["buffer_0"]);
    }

    #[test]
    fn an_output_that_is_missing_or_off_is_said() {
        let one = |values: &[f32]| buffers(values).remove("buffer_0").expect("one buffer");
        let (expected, short) = (one(&[1.0, 2.0]), one(&[1.0]));
        assert_eq!(check_one(expected.clone(), &one(&[1.0, 2.00001]), None), Ok(()));
        assert!(check_one(expected.clone(), &one(&[1.0, 2.1]), None).is_err());
        assert!(expect(expected.ty(), Some(&expected)).is_ok());
        assert!(expect(expected.ty(), Some(&short)).is_err());
        assert!(expect(expected.ty(), None).is_err());
        assert_eq!(listing(&buffers(&[1.0, 2.0])), "outputs: buffer_0 f32[2]");
    }
}
