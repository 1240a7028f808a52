//! The transport between the ranks of a world: in this process, or between processes.
use crate::{console::Console, error::Error, world::World};
use irc_executor::{Memory, Options};
use std::path::{Path, PathBuf};

/// The ranks that this process runs, and their connection to the others.
pub enum Transport {
    /// All ranks, in this process.
    InProcess,
    /// One rank, assigned by `mpirun`.
    #[cfg(feature = "mpi")]
    Mpi(Box<irc_executor::mpi::World>),
}

impl Transport {
    /// The transport that `--transport` names.
    pub fn open(which: irc_cli::Transport) -> Result<Self, Error> {
        match which {
            irc_cli::Transport::Inprocess => Ok(Transport::InProcess),
            #[cfg(feature = "mpi")]
            irc_cli::Transport::Mpi => irc_executor::mpi::World::start()
                .map(|world| Transport::Mpi(Box::new(world)))
                .map_err(|error| Error::problem(error.to_string())),
            #[cfg(not(feature = "mpi"))]
            irc_cli::Transport::Mpi => Err(Error::Usage(
                "--transport mpi: this irc was built without MPI; with libopenmpi-dev and \
                 openmpi-bin installed, build it with cargo build --release -p irc-tools \
                 --features mpi"
                    .into(),
            )),
        }
    }

    /// The only rank that this process runs; `None` if it runs all.
    pub fn rank(&self) -> Option<i64> {
        match self {
            Transport::InProcess => None,
            #[cfg(feature = "mpi")]
            Transport::Mpi(world) => Some(world.rank()),
        }
    }

    /// The path that this process writes instead of `path`, so that ranks write different files:
    /// `y.rank0.npz` for `y.npz`.
    pub fn own(&self, path: &Path) -> PathBuf {
        match (self.rank(), path.extension()) {
            (Some(rank), Some(extension)) => {
                path.with_extension(format!("rank{rank}.{}", extension.to_string_lossy()))
            }
            _ => path.to_owned(),
        }
    }

    /// Runs the ranks of this process once.
    pub fn run(
        &self,
        world: &World,
        memories: Vec<Memory>,
        options: Options,
    ) -> Result<Vec<Memory>, Error> {
        match self {
            Transport::InProcess => {
                let mut memories = memories;
                world.run(&mut memories, options)?;
                Ok(memories)
            }
            #[cfg(feature = "mpi")]
            Transport::Mpi(processes) => {
                let pair = world.ranks.first().zip(memories.into_iter().next());
                let Some((rank, memory)) = pair else {
                    return Err(Error::Internal("a process has no rank".into()));
                };
                let ran = processes.run(rank, memory, options);
                ran.map(|(memory, _)| vec![memory])
                    .map_err(|error| Error::problem(error.to_string()))
            }
        }
    }

    /// Ends the run: after an error also the other processes, which might wait for this one.
    pub fn close(self, console: &Console, result: Result<(), Error>) -> Result<(), Error> {
        match (self, result) {
            #[cfg(feature = "mpi")]
            (Transport::Mpi(processes), Err(error)) if !matches!(error, Error::Mismatch) => {
                let arguments: Vec<String> = std::env::args().collect();
                crate::crash::report(console, &arguments, &error);
                processes.abort(error.code().into())
            }
            (_, result) => {
                let _ = console;
                result
            }
        }
    }
}
