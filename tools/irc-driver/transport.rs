//! How the ranks of a world reach each other: in this process, or in processes of their own.
use crate::{console::Console, stop::Stop, world::World};
use irc_executor::{Memory, Options};
use std::path::{Path, PathBuf};

/// The ranks that this process runs, and how they reach the others.
pub enum Transport {
    /// All of them, here.
    InProcess,
    /// One, as `mpirun` says.
    #[cfg(feature = "mpi")]
    Mpi(Box<irc_executor::mpi::World>),
}

impl Transport {
    /// The transport that `--transport` names.
    pub fn open(which: irc_cli::Transport) -> Result<Self, Stop> {
        match which {
            irc_cli::Transport::Inprocess => Ok(Transport::InProcess),
            #[cfg(feature = "mpi")]
            irc_cli::Transport::Mpi => irc_executor::mpi::World::start()
                .map(|world| Transport::Mpi(Box::new(world)))
                .map_err(|error| Stop::problem(error.to_string())),
            #[cfg(not(feature = "mpi"))]
            irc_cli::Transport::Mpi => Err(Stop::Usage(
                "--transport mpi: this irc was built without MPI; with libopenmpi-dev and \
                 openmpi-bin installed, build it with cargo build --release -p irc-tools \
                 --features mpi"
                    .into(),
            )),
        }
    }

    /// The only rank that this process runs; `None` when it runs all.
    pub fn rank(&self) -> Option<i64> {
        match self {
            Transport::InProcess => None,
            #[cfg(feature = "mpi")]
            Transport::Mpi(world) => Some(world.rank()),
        }
    }

    /// The file that this process writes in place of `path`, so that ranks do not write the same:
    /// `y.rank0.npz` for `y.npz`.
    pub fn own(&self, path: &Path) -> PathBuf {
        match (self.rank(), path.extension()) {
            (Some(rank), Some(extension)) => {
                path.with_extension(format!("rank{rank}.{}", extension.to_string_lossy()))
            }
            _ => path.to_owned(),
        }
    }

    /// Runs the ranks that are here once.
    pub fn run(
        &self,
        world: &World,
        memories: Vec<Memory>,
        options: Options,
    ) -> Result<Vec<Memory>, Stop> {
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
                    return Err(Stop::Internal("a process has no rank".into()));
                };
                let ran = processes.run(rank, memory, options);
                ran.map(|(memory, _)| vec![memory])
                    .map_err(|error| Stop::problem(error.to_string()))
            }
        }
    }

    /// Ends the run: after a failure the other processes too, which might wait for this one.
    pub fn close(self, console: &Console, result: Result<(), Stop>) -> Result<(), Stop> {
        match (self, result) {
            #[cfg(feature = "mpi")]
            (Transport::Mpi(processes), Err(stop)) if !matches!(stop, Stop::Mismatch) => {
                let arguments: Vec<String> = std::env::args().collect();
                crate::crash::tell(console, &arguments, &stop);
                processes.abort(stop.code().into())
            }
            (_, result) => {
                let _ = console;
                result
            }
        }
    }
}
