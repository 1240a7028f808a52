//! Transport of messages between ranks.

use std::collections::BTreeMap;

use super::manifest::Manifest;
use super::message::Message;
use crate::Error;

/// The ranks that run in this process.
pub(crate) trait LocalRanks {
    /// Applies a message.
    fn deliver(&self, message: Message) -> Result<(), Error>;
}

/// The state of the ranks in this process, as seen by the thread that polls for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// A task runs or can run.
    Busy,
    /// All tasks wait; the text lists what they wait for.
    Waiting(String),
    /// All tasks are done.
    Finished,
}

/// The state of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobalState {
    /// Messages may still come.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "no message comes from elsewhere"))]
    Running,
    /// Every rank is done, and every message has arrived.
    Over,
}

/// A transport of messages between ranks.
pub(crate) trait Transport: Sync {
    /// Exchanges the manifests of the local ranks for those of all ranks of the world.
    fn exchange(&self, own: BTreeMap<i64, Manifest>) -> Result<BTreeMap<i64, Manifest>, Error>;

    /// Sends a message. Messages from one thread to one rank arrive in order.
    fn post(&self, message: Message, here: &dyn LocalRanks) -> Result<(), Error>;

    /// Whether some ranks run in other processes, so that [`Transport::poll`] must be called.
    fn is_distributed(&self) -> bool;

    /// Sends and receives pending messages. It is called only by the thread that started the run.
    ///
    /// # Errors
    /// Also if every rank of the world waits.
    fn poll(&self, here: &dyn LocalRanks, activity: Activity) -> Result<GlobalState, Error>;
}

/// All ranks are in this process: the sender delivers its messages.
pub(crate) struct InProcess;

impl Transport for InProcess {
    fn exchange(&self, own: BTreeMap<i64, Manifest>) -> Result<BTreeMap<i64, Manifest>, Error> {
        Ok(own)
    }

    fn post(&self, message: Message, here: &dyn LocalRanks) -> Result<(), Error> {
        here.deliver(message)
    }

    fn is_distributed(&self) -> bool {
        false
    }

    fn poll(&self, _: &dyn LocalRanks, _: Activity) -> Result<GlobalState, Error> {
        Ok(GlobalState::Over)
    }
}
