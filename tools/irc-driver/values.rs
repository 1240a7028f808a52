//! Input and output buffers: `.npz` files, random values, summaries, comparison.
use crate::{
    console::Console,
    output::{self, Content},
    stop::Stop,
};
use irc_runtime::Port;
use irc_tensor::{
    DType, Tensor, TensorType, Tolerance, compare, read_npz_file, seed_for, write_npz,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Cursor,
    path::Path,
};

/// Buffers by name.
pub type Buffers = BTreeMap<String, Tensor>;

/// Reads an archive.
pub fn read(path: &Path) -> Result<Buffers, Stop> {
    read_npz_file(path).map_err(|error| {
        let text = error.to_string();
        let name = path.display().to_string();
        let text = if text.contains(&name) { text } else { format!("{name}: {text}") };
        Stop::problem(text).help("expected an archive that numpy.savez wrote")
    })
}

/// Writes an archive.
pub fn write(path: &Path, buffers: &Buffers) -> Result<(), Stop> {
    let mut bytes = Cursor::new(Vec::new());
    write_npz(&mut bytes, buffers).map_err(|error| Stop::problem(error.to_string()))?;
    output::write(path, &bytes.into_inner(), Content::Binary)
}

/// Gives every input that is read and not given yet random values; a size that nothing given tells is 1.
pub fn fill(given: &mut Buffers, inputs: &[Port], seed: u64) -> Result<(), Stop> {
    let mut sizes = BTreeMap::new();
    for port in inputs {
        let extents = given.get(&port.name).map_or(&[][..], Tensor::shape);
        sizes.extend(port.sizes.iter().zip(extents.iter().copied()));
    }
    for port in inputs.iter().filter(|port| !port.preserved) {
        if given.contains_key(&port.name) {
            continue;
        }
        let Some(dtype) = port.element_type() else { continue };
        let extent = |(axis, extent): (usize, &i64)| match port.sizes.get(axis) {
            Some(size) if *extent < 0 => sizes.get(size).copied().unwrap_or(1),
            _ => (*extent).max(0),
        };
        let shape: Vec<i64> = port.shape.iter().enumerate().map(extent).collect();
        let ty = TensorType::new(dtype, shape);
        let random = Tensor::random(ty, seed_for(seed, &port.name))
            .map_err(|error| Stop::problem(format!("input {}: {error}", port.name)))?;
        given.insert(port.name.clone(), random);
    }
    Ok(())
}

/// One line for each buffer: name, type, least, mean and greatest value.
pub fn summary(buffers: &Buffers) -> String {
    let width = buffers.keys().map(String::len).max().unwrap_or(0);
    buffers.iter().map(|(name, tensor)| line(name, width, tensor)).collect()
}

fn line(name: &str, width: usize, tensor: &Tensor) -> String {
    let values = tensor.to_f64();
    let ty = tensor.ty().to_string();
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

/// Sets aside what is expected of buffers that plans do not have, and says so: what a model keeps
/// in buffers of its own, a plan may hold in shared ones, or not at all.
pub fn set_aside(
    console: &Console,
    expected: &mut Buffers,
    outputs: &Buffers,
    buffers: &BTreeSet<String>,
) -> Result<(), Stop> {
    let is_here = |name: &String| buffers.contains(name);
    let missing: Vec<_> = expected.keys().filter(|name| !is_here(name)).cloned().collect();
    if missing.is_empty() {
        return Ok(());
    }
    if missing.len() == expected.len() {
        let problem = Stop::problem("--expected and the plan have no buffer in common");
        return Err(problem.help(listing(outputs)));
    }
    expected.retain(|name, _| is_here(name));
    let (left, names) = (missing.len(), missing.join(", "));
    let all = left + expected.len();
    console.note(&format!(
        "{left} of {all} expected buffers are not in the plan and are left out: {names}"
    ));
    Ok(())
}

/// Compares with what is expected; every difference is on the console.
///
/// Only numbers that differ are a [`Stop::Mismatch`]: buffers that cannot be compared are a fault
/// of the file.
pub fn check(
    console: &Console,
    expected: Buffers,
    actual: &Buffers,
    tolerance: Option<f64>,
) -> Result<(), Stop> {
    if expected.is_empty() {
        return Err(Stop::problem("--expected holds no buffer").help(listing(actual)));
    }
    let pairs = pair(console, expected, actual)?;
    let mut differs = false;
    for (name, expected, actual) in &pairs {
        if let Err(message) = check_one(expected, actual, tolerance) {
            differs = true;
            console.error(&format!("{name}: {message}"), None);
        }
    }
    if differs { Err(Stop::Mismatch) } else { Ok(()) }
}

/// What is expected beside what came out; every buffer that has no match is on the console.
fn pair<'a>(
    console: &Console,
    expected: Buffers,
    actual: &'a Buffers,
) -> Result<Vec<(String, Tensor, &'a Tensor)>, Stop> {
    let (mut pairs, mut fits) = (Vec::new(), true);
    for (name, expected) in expected {
        match pair_one(expected, actual.get(&name)) {
            Ok((expected, actual)) => pairs.push((name, expected, actual)),
            Err(message) => {
                fits = false;
                console.error(&format!("{name}: {message}"), None);
            }
        }
    }
    if fits {
        return Ok(pairs);
    }
    Err(Stop::problem("--expected does not fit the outputs").help(listing(actual)))
}

fn pair_one(expected: Tensor, actual: Option<&Tensor>) -> Result<(Tensor, &Tensor), String> {
    let actual = actual.ok_or("expected, but not an output")?;
    // Archives hold bfloat16 as its bits.
    let expected = match (expected.dtype(), actual.dtype()) {
        (DType::U16, DType::BF16) => {
            expected.reinterpret(DType::BF16).map_err(|error| error.to_string())?
        }
        _ => expected,
    };
    if expected.ty() != actual.ty() {
        return Err(format!("expected {}, but the output is {}", expected.ty(), actual.ty()));
    }
    Ok((expected, actual))
}

/// What can be expected: all outputs with their types.
fn listing(outputs: &Buffers) -> String {
    let outputs: Vec<_> =
        outputs.iter().map(|(name, tensor)| format!("{name} {}", tensor.ty())).collect();
    format!("outputs: {}", outputs.join(", "))
}

fn check_one(expected: &Tensor, actual: &Tensor, tolerance: Option<f64>) -> Result<(), String> {
    let bound = tolerance.map(|bound| Tolerance { abs: 0.0, rel: bound, rms: bound });
    let found = compare(expected, actual, bound.unwrap_or(Tolerance::of(actual.dtype())))?;
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
        let mut expected = outputs.clone();
        expected.insert("buffer_1".into(), outputs["buffer_0"].clone());
        let here = |name: &str| BTreeSet::from([name.to_owned()]);
        assert!(set_aside(&console, &mut expected, &outputs, &here("buffer_2")).is_err());
        set_aside(&console, &mut expected, &outputs, &here("buffer_0")).expect("one in common");
        assert_eq!(expected.keys().collect::<Vec<_>>(), ["buffer_0"]);
    }

    #[test]
    fn an_output_that_is_missing_or_off_is_said() {
        let one = |values: &[f32]| buffers(values).remove("buffer_0").expect("one buffer");
        let (expected, short) = (one(&[1.0, 2.0]), one(&[1.0]));
        assert_eq!(check_one(&expected, &one(&[1.0, 2.00001]), None), Ok(()));
        assert!(check_one(&expected, &one(&[1.0, 2.1]), None).is_err());
        assert!(pair_one(expected.clone(), Some(&expected)).is_ok());
        assert!(pair_one(expected.clone(), Some(&short)).is_err());
        assert!(pair_one(expected, None).is_err());
        assert_eq!(listing(&buffers(&[1.0, 2.0])), "outputs: buffer_0 f32[2]");
    }
}
