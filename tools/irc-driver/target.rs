//! `--target-cpu`.
use crate::error::Error;
use irc::{Backend, Target, codegen::Output};
use irc_cli::{CUDA, GENERATORS};
use irc_runtime::processor::{features_of, processors};

/// The target of a name.
pub fn named(cpu: &str) -> Result<Target, Error> {
    // For an unknown name, LLVM prints an error of its own and generates generic code.
    let target = Target::from_name(cpu);
    let known = !target.triple.starts_with("x86_64") || features_of(cpu).is_some();
    if cpu == "native" || known {
        return Ok(target);
    }
    let mut similar: Vec<&str> = processors().filter(|name| alike(name, cpu)).collect();
    similar.sort_unstable();
    let names = match similar.is_empty() {
        true => {
            "x86-64, x86-64-v2, x86-64-v3, x86-64-v4, haswell, skylake-avx512, znver4".to_owned()
        }
        false => similar.join(", "),
    };
    Err(Error::Usage(format!(
        "--target-cpu: expected native or a processor that LLVM knows, such as {names}; found '{cpu}'"
    )))
}

/// The architecture of a GPU if none is named.
pub const GPU: &str = "CUDA_80";

/// The NVIDIA GPU of an architecture, as ARK names it.
pub fn gpu(arch: &str) -> Result<Target, String> {
    match arch {
        "CUDA_80" => Ok(Target::gpu(80)),
        "CUDA_90" => Ok(Target::gpu(90)),
        _ => Err(format!("--arch: PTX is for CUDA_80 or CUDA_90, not '{arch}'")),
    }
}

/// The code generator of a name; the default if the name is an engine without code generation.
pub fn backend(name: &str) -> Backend {
    Backend::named(name).unwrap_or_default()
}

/// The code generator of a value of `irc compile --backend`.
pub fn generator(name: &str) -> Backend {
    if name == CUDA { Backend::NVPTX } else { backend(name) }
}

/// The value of `irc compile --backend` for the code generator that writes an output.
pub fn writing(output: Output) -> Option<&'static str> {
    let names = GENERATORS.iter().map(|(name, _)| *name).chain([CUDA]);
    names.into_iter().find(|name| generator(name).writes(output))
}

/// The same processor with another code generator, which must support it.
pub fn with_backend(target: Target, backend: Backend) -> Result<Target, Error> {
    let target = target.with_backend(backend);
    let known = (backend.expect)(&target);
    known.map_err(|error| Error::Usage(format!("--target-cpu: {error}")))?;
    Ok(target)
}

fn alike(name: &str, other: &str) -> bool {
    let start = |name: &str| name.chars().take(3).collect::<String>();
    start(name) == start(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_processors_are_rejected_with_suggestions() {
        assert_eq!(named("native").expect("known"), Target::host());
        assert!(named("znver4").is_ok());
        let Err(Error::Usage(message)) = named("znver99") else { panic!("not rejected") };
        assert!(message.contains("znver1, znver2"), "{message}");
        let Err(Error::Usage(message)) = named("foo") else { panic!("not rejected") };
        assert!(message.contains("x86-64-v4"), "{message}");
        assert!(
            "x86-64 x86-64-v2 x86-64-v4 haswell skylake-avx512"
                .split(' ')
                .all(|name| named(name).is_ok())
        );
        assert!(named("").is_err());
    }

    #[test]
    fn the_command_line_has_the_code_generators_that_write_objects() {
        let names: Vec<_> = GENERATORS.iter().map(|(name, _)| *name).collect();
        let all: Vec<_> = Backend::writing(Output::Object).map(|backend| backend.name).collect();
        assert_eq!(names, all);
        assert_eq!(Backend::named(names[0]), Some(Backend::default()));
    }
}
