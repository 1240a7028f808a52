//! Compiles the shim over MPI if the feature is enabled.

fn main() {
    println!("cargo:rerun-if-changed=src/mpi/shim.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    #[cfg(feature = "mpi")]
    mpi::build();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::process::Command;

    /// Compiles with MPI's own compiler driver, and links the libraries that it would link.
    pub fn build() {
        let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
        let flags = link_flags(&compiler);
        cc::Build::new().compiler(&compiler).file("src/mpi/shim.c").compile("irc_mpi_shim");
        for flag in flags.split_whitespace() {
            if let Some(folder) = flag.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={folder}");
            } else if let Some(library) = flag.strip_prefix("-l") {
                println!("cargo:rustc-link-lib={library}");
            }
        }
    }

    /// The link flags of the compiler driver: OpenMPI and MPICH have different options for this.
    fn link_flags(compiler: &str) -> String {
        let ask = |flag: &str| {
            let output = Command::new(compiler).arg(flag).output().ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            (output.status.success() && text.contains("-l")).then_some(text)
        };
        let flags = ask("--showme:link").or_else(|| ask("-show"));
        flags.unwrap_or_else(|| {
            panic!(
                "the feature `mpi` needs '{compiler}', MPI's compiler driver: install \
                 libopenmpi-dev, or name another in MPICC"
            )
        })
    }
}
