//! Models of every format: imports them with the options of the flags, and shows their warnings.
use crate::{
    console::Console,
    error::Error,
    input::{Content, Input},
    values::{self, Buffers, Given, Shapes, is_stored_as},
};
use irc::{
    Accumulate, Calibration, CompileOptions, ImportOptions, Model, Results, Session,
    import::{Bounds, FrontEnd, Libraries, read},
    quantise::{Granularity, Scope},
};
use irc_cli::{Explain, Functions, Graphs, Quantise, QuantisedResults, Scales};
use irc_common_format::{
    FileSystem, Format,
    library::Fetch,
    model::{self, Dim},
};
use irc_diag::{Diagnostic, Severity};
use irc_onnx_ops::{Calls, cases::Values, dtype_of, is_part, open_sizes};
use irc_tensor::TensorType;
use irc_tl::{Constant, Dim as Size};
use std::{cell::OnceCell, collections::BTreeMap, ops::RangeInclusive, path::Path};

/// The encoding that a flag names.
fn format(flags: &Graphs) -> Result<Format, Error> {
    let Some(name) = &flags.format else { return Ok(Format::default()) };
    Format::from_name(name).ok_or_else(|| {
        let names = Format::names().join(", ");
        Error::Usage(format!("--format: expected one of {names}, found '{name}'"))
    })
}

/// The import options of the flags.
pub fn options(flags: &Graphs) -> Result<ImportOptions, Error> {
    let (mut shapes, mut bounds) = (BTreeMap::new(), Bounds::new());
    for flag in &flags.shape {
        match shape(flag)? {
            Shape::Of(name, extents) => {
                if shapes.insert(name.clone(), extents).is_some() {
                    return Err(Error::Usage(format!("--shape: two shapes of '{name}'")));
                }
            }
            Shape::Bound(name, range) => {
                if bounds.insert(name.clone(), range).is_some() {
                    return Err(Error::Usage(format!("--shape: two bounds of '{name}'")));
                }
            }
        }
    }
    if let Some(name) = bounds.keys().find(|name| shapes.contains_key(*name)) {
        return Err(Error::Usage(format!("--shape: both a value and bounds of '{name}'")));
    }
    Ok(ImportOptions {
        format: format(flags)?,
        library_paths: flags.library_path.clone(),
        fetch: flags.allow_fetch.clone().map(Fetch::into_folder),
        implicit_std: flags.implicit_std,
        calls: match flags.functions {
            Functions::Inline => Calls::Inlined,
            Functions::Outline => Calls::Outlined,
        },
        ignore_control_inputs: flags.ignore_control_inputs,
        assume_stated_shapes: flags.assume_stated_shapes,
        shapes,
        bounds,
        cache: flags.cache.as_deref().map(capacity).transpose()?,
        ..ImportOptions::default()
    })
}

/// The shapes that the flags state of inputs of what is already compiled.
pub fn shapes(flags: &Graphs) -> Result<Shapes, Error> {
    let ImportOptions { shapes, bounds, .. } = options(flags)?;
    match bounds.first_key_value() {
        None => Ok(shapes),
        Some((name, range)) => Err(Error::Usage(format!(
            "--shape {name}={}..{}: bounds apply when a model is compiled; give one size",
            range.start(),
            range.end()
        ))),
    }
}

/// The room of caches that a flag states: a number of tokens, or a name of it.
fn capacity(text: &str) -> Result<Size, Error> {
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|own| own.is_ascii_alphanumeric() || own == '_');
    match text.parse() {
        Ok(tokens) if tokens > 0 => Ok(Size::Known(tokens)),
        _ if is_name => Ok(Size::symbol(text)),
        _ => {
            let message = format!("--cache: expected a number of tokens or a name, found '{text}'");
            Err(Error::Usage(message))
        }
    }
}

/// As [`options`], with the values that the program returns and the accumulation mode.
pub fn program_options(
    flags: &Graphs,
    compile: &irc_cli::Compile,
    default: Results,
) -> Result<ImportOptions, Error> {
    let results = match &compile.results {
        Some(text) => text.parse().map_err(|error| Error::Usage(format!("--results: {error}")))?,
        None => default,
    };
    Ok(ImportOptions {
        results,
        accumulate: accumulate(compile.machine.ark_accumulate),
        ..options(flags)?
    })
}

/// The values that `irc run` returns by default for a kind of model.
pub fn run_results(content: Content) -> Results {
    FrontEnd::of(content).map_or(Results::Outputs, |front_end| front_end.run_results.clone())
}

/// The accumulation mode of the flag.
pub fn accumulate(ark: bool) -> Accumulate {
    if ark { Accumulate::Ark } else { Accumulate::Wide }
}

/// What a flag `--shape` states.
enum Shape {
    /// The shape of an input, or the value of an open size.
    Of(String, Vec<i64>),
    /// The least and the largest value of a dimension.
    Bound(String, RangeInclusive<i64>),
}

fn shape(flag: &str) -> Result<Shape, Error> {
    let wrong =
        |expected: &str| Error::Usage(format!("--shape: expected {expected}, found '{flag}'"));
    let form = "INPUT=SHAPE, as in data=1x3x224x224, SIZE=N, as in batch=8, or SIZE=MIN..MAX, as in batch=1..64";
    let (name, shape) = flag.rsplit_once('=').ok_or_else(|| wrong(form))?;
    let extent = |text: &str| text.parse().ok().filter(|extent: &i64| *extent >= 0);
    // Numbers of digits and a sign are meant as sizes.
    let is_number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut numbers = shape.split("..").flat_map(|part| part.split('x'));
    if let Some(number) = numbers.find(|number| is_number(number) && extent(number).is_none()) {
        return Err(wrong(&format!("sizes from 0 to {}, not {number}", i64::MAX)));
    }
    if name.ends_with("..") {
        return Err(wrong(form));
    }
    if let Some((least, most)) = shape.split_once("..") {
        let ends = extent(least).zip(extent(most));
        let (least, most) = ends.ok_or_else(|| wrong("SIZE=MIN..MAX, as in batch=1..64"))?;
        if least > most {
            return Err(wrong("a minimum of at most the maximum"));
        }
        return Ok(Shape::Bound(name.to_owned(), least..=most));
    }
    let extents = shape.split('x').filter(|_| !shape.is_empty()).map(extent);
    let extents: Vec<i64> = extents.collect::<Option<_>>().ok_or_else(|| wrong(form))?;
    Ok(Shape::Of(name.to_owned(), extents))
}

/// Imports a model. The first warnings are shown on the console; `irc check` shows all.
pub fn open<'s>(
    console: &Console,
    session: &'s Session,
    input: &Input,
    options: &ImportOptions,
) -> Result<Model<'s>, Error> {
    let model = session.import_bytes(input.shown(), input.bytes.clone(), options)?;
    let source = model.source();
    let warnings = model.warnings();
    let shown = if input.content == Content::Graph { briefly(warnings) } else { warnings };
    console.diagnostics(&source, &shown);
    Ok(model)
}

/// As [`open`], quantised if the flags say so.
pub fn open_quantised<'s>(
    console: &Console,
    session: &'s Session,
    input: &Input,
    options: &ImportOptions,
    quantising: &Quantising<'_>,
) -> Result<Model<'s>, Error> {
    let model = open(console, session, input, options)?;
    let Some(path) = &quantising.flags.calibrate else { return Ok(model) };
    let calibration = quantising.calibration()?;
    console.diagnostics(&model.source(), &model.unquantised(calibration.scope)?);
    let samples = quantising.samples(path)?;
    values::note_zeros(console, samples);
    let step = console.step("calibrating");
    let named = |found: Diagnostic| match found.code {
        "quantise-samples" => {
            found.with_note(format!("the samples are those of {}", path.display()))
        }
        _ => found,
    };
    let quantisation = model.calibrate(samples, calibration).map_err(|error| irc::Error {
        diagnostics: error.diagnostics.into_iter().map(named).collect(),
        ..error
    })?;
    drop(step);
    let options = ImportOptions { quantisation: Some(quantisation.into()), ..options.clone() };
    Ok(session.import_bytes(input.shown(), input.bytes.clone(), &options)?)
}

/// How flags quantise a model. The samples are read once, when they are needed.
pub struct Quantising<'f> {
    flags: &'f Quantise,
    scope: Scope,
    samples: OnceCell<Buffers>,
}

impl<'f> Quantising<'f> {
    /// By flags. `scope` is what becomes bytes by default.
    pub fn of(flags: &'f Quantise, scope: Scope) -> Self {
        Self { flags, scope, samples: OnceCell::new() }
    }

    fn calibration(&self) -> Result<Calibration, Error> {
        let method = self.flags.calibrate_method.as_deref().map(str::parse).transpose();
        let method =
            method.map_err(|message| Error::Usage(format!("--calibrate-method: {message}")))?;
        Ok(Calibration {
            method: method.unwrap_or_default(),
            granularity: match self.flags.quantize.unwrap_or_default() {
                Scales::PerChannel => Granularity::Channel,
                Scales::PerTensor => Granularity::Tensor,
            },
            scope: match self.flags.quantize_results {
                None => self.scope,
                Some(QuantisedResults::Read) => Scope::WhereRead,
                Some(QuantisedResults::All) => Scope::Everywhere,
            },
        })
    }

    fn samples(&self, path: &Path) -> Result<&Buffers, Error> {
        if let Some(samples) = self.samples.get() {
            return Ok(samples);
        }
        let samples = Given::open(Some(path))?.read(|_, _| Ok(()))?;
        Ok(self.samples.get_or_init(|| samples))
    }

    /// What programs state of how their models were quantised: method, scales, results, a hash of the samples; `None`
    /// if the flags quantise nothing.
    pub fn text(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.flags.calibrate else { return Ok(None) };
        let Calibration { method, granularity, scope } = self.calibration()?;
        let scales = match granularity {
            Granularity::Channel => "per-channel",
            Granularity::Tensor => "per-tensor",
        };
        let results = match scope {
            Scope::WhereRead => "read",
            Scope::Everywhere => "all",
        };
        let hash = irc::npu::hash_of_samples(self.samples(path)?);
        Ok(Some(format!("{method},{scales},{results},{hash:016x}")))
    }
}

/// The shapes of inputs in a file for those that a model leaves open, unless its options state them.
pub fn with_given_shapes(
    input: &Input,
    options: ImportOptions,
    given: &Given,
) -> Result<ImportOptions, Error> {
    let types = given.types();
    if input.content != Content::Graph || types.is_empty() {
        return Ok(options);
    }
    let read = read(&input.file(&options), Libraries::Unread);
    let Some(document) = read.document else {
        return Err(Error::Diagnostics(read.source, read.diagnostics));
    };
    let mut shapes = options.shapes.clone();
    for port in document.module.graph.iter().flat_map(|graph| &graph.inputs) {
        let Some(model::Type::Tensor(model::TensorType { shape: Some(declared), .. })) = &port.ty
        else {
            continue;
        };
        let is_open = declared.dims.iter().any(|dim| !matches!(dim, Dim::Size(0..)));
        let name = port.name();
        if let Some(found) = types.get(name)
            && found.shape.len() == declared.dims.len()
            && is_open
        {
            shapes.entry(name.to_owned()).or_insert_with(|| found.shape.to_vec());
        }
    }
    Ok(ImportOptions { shapes, ..options })
}

/// The first warnings, and the number of the others.
pub fn briefly(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    const MAX_SHOWN: usize = 5;
    diagnostics.retain(|diagnostic| diagnostic.severity != Severity::Note);
    let more = diagnostics.len().saturating_sub(MAX_SHOWN);
    if more > 0 {
        diagnostics.truncate(MAX_SHOWN);
        let last = diagnostics.pop().map(|last| last.help(format!("irc check shows {more} more")));
        diagnostics.extend(last);
    }
    diagnostics
}

/// Prints how the ops were fused, if requested.
pub fn explain(
    console: &Console,
    model: &Model<'_>,
    options: &CompileOptions,
    format: Option<Explain>,
) -> Result<(), Error> {
    let Some(format) = format else { return Ok(()) };
    let report = model.explain_fusion(options)?;
    let text = match format {
        Explain::Text => report.to_string(),
        Explain::Json => {
            let json = serde_json::to_string_pretty(&report);
            json.map_err(|error| Error::Internal(error.to_string()))? + "\n"
        }
    };
    console.text(&text);
    Ok(())
}

/// Inputs by name, as values for which a program may be specialised.
pub fn values(inputs: &Buffers) -> Values {
    let constants = inputs.iter().map(|(name, tensor)| (name.clone(), Constant::of(tensor)));
    Values { tensors: constants.collect(), ..Values::default() }
}

/// The inputs and the expected outputs of an ONNX data set.
pub fn data_set(
    input: &Input,
    options: &ImportOptions,
    folder: &Path,
) -> Result<(Values, Values), Error> {
    let read = read(&input.file(options), Libraries::Unread);
    let Some(document) = read.document else {
        return Err(Error::Diagnostics(read.source, read.diagnostics));
    };
    let graph = document.module.graph.as_ref();
    let graph = graph.ok_or_else(|| Error::problem("the file is a library: it has no graph"))?;
    let wrong =
        |message: &str| Error::problem(format!("--data-set: {}: {message}", folder.display()));
    let values = |kind: &str, ports: &[irc_common_format::model::Value]| {
        let values =
            Values::read(&FileSystem, folder, kind, ports).map_err(|message| wrong(&message))?;
        if values.tensors.is_empty() && !ports.is_empty() {
            let message = match folder.is_dir() {
                true => format!("expected {kind}_0.pb and so on, found none"),
                false => "there is no such folder".to_owned(),
            };
            return Err(wrong(&message));
        }
        Ok(values)
    };
    Ok((values("input", &graph.inputs)?, values("output", &graph.outputs)?))
}

/// The inputs in a file, each with the type that an ONNX or Common IR file declares.
pub fn given(input: &Input, options: &ImportOptions, given: Given) -> Result<Buffers, Error> {
    if given.types().is_empty() {
        return Ok(Buffers::new());
    }
    let read = read(&input.file(options), Libraries::Unread);
    let Some(document) = read.document else {
        return Err(Error::Diagnostics(read.source, read.diagnostics));
    };
    let sizes = open_sizes(&document.module);
    let ports: Vec<&model::Value> =
        document.module.graph.iter().flat_map(|graph| &graph.inputs).collect();
    given.read(|name, found| {
        let of_tensor =
            |port: &model::Value| matches!(port.ty, Some(model::Type::Tensor(_)) | None);
        let is_given = |port: &model::Value| match of_tensor(port) {
            true => port.name() == name,
            false => is_part(name, port.name()),
        };
        // The number of past tokens, which becomes an input.
        if options.cache.is_some() && sizes.contains(name) {
            return Ok(());
        }
        let Some(port) = ports.iter().find(|port| is_given(port)) else {
            let known = ports.iter().map(|port| port.name()).collect::<Vec<_>>().join(", ");
            let message = format!("no input is named '{name}'; the inputs are {known}");
            return Err(Error::problem(message));
        };
        let Some(expected) = mismatch(port, found) else { return Ok(()) };
        Err(Error::problem(format!("input '{name}': expected {expected}, found {found}")))
    })
}

/// The type of the tensors of a sequence or an optional.
fn of_tensors(ty: &model::Type) -> Option<&model::TensorType> {
    match ty {
        model::Type::Tensor(tensor) | model::Type::Sparse(tensor) => Some(tensor),
        model::Type::Sequence(inner) | model::Type::Optional(inner) => of_tensors(inner.as_ref()?),
        _ => None,
    }
}

/// The declared type, if a tensor of type `found` does not match it.
fn mismatch(port: &model::Value, found: &TensorType) -> Option<String> {
    let declared = of_tensors(port.ty.as_ref()?)?;
    let (dtype, dims) = (dtype_of(declared.element)?, &declared.shape.as_ref()?.dims);
    let is_open = dims.iter().any(|dim| matches!(dim, Dim::Wildcard(_)));
    let fits = |(dim, extent): (&Dim, &i64)| match dim {
        Dim::Size(size) => size < &0 || size == extent,
        _ => true,
    };
    let has_shape =
        is_open || dims.len() == found.shape.len() && dims.iter().zip(&found.shape).all(fits);
    if has_shape && is_stored_as(dtype, found.dtype) {
        return None;
    }
    let dims: Vec<_> = dims.iter().map(ToString::to_string).collect();
    Some(format!("{dtype}[{}]", dims.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::kind;
    use irc::import::InputFile;
    use irc_cli::{Command, parse_irc, rejection};

    /// Flags that set an option of the import, each with a value.
    const FLAGS: [&[&str]; 9] = [
        &["--library-path", "libraries"],
        &["--allow-fetch", "cache"],
        &["--shape", "x=1"],
        &["--cache", "2048"],
        &["--implicit-std"],
        &["--functions", "outline"],
        &["--ignore-control-inputs"],
        &["--assume-stated-shapes"],
        &["--ark-accumulate"],
    ];

    /// The table of options of the library and the table of flags reject the same.
    #[test]
    fn an_option_applies_to_the_formats_that_its_flag_applies_to() {
        let formats = [
            (Content::Model, r#"{"Rank": 0, "WorldSize": 1, "Nodes": []}"#),
            (Content::Graph, r#"ir_version: 8 opset_import { version: 17 } graph { name: "g" }"#),
            (Content::Mlir, "func.func @main() { return }"),
            (Content::Frontend, "[]"),
        ];
        for flag in FLAGS {
            for (content, text) in formats {
                let arguments =
                    ["irc", "compile", "model"].iter().chain(flag).chain(&["-o", "m.so"]);
                let arguments: Vec<String> = arguments.map(|&text| text.to_owned()).collect();
                let (command, _) = parse_irc(&arguments).expect("a command line");
                let Command::Compile(compile) = command.command else {
                    unreachable!("it compiles")
                };
                let options = program_options(&compile.graphs, &compile.compile, Results::Outputs);
                let options = options.expect("options");
                let file = InputFile::new("model", text.into(), &options);
                let parsed = FrontEnd::of(content).expect("a front end").read(&file);
                let is_rejected = parsed.diagnostics.iter().any(|own| own.code == "import-option");
                let reason = rejection("compile", flag[0], kind(content).as_slice(), Some(".so"));
                assert_eq!(is_rejected, reason.is_some(), "{flag:?} of {content:?}: {reason:?}");
            }
        }
    }
}
