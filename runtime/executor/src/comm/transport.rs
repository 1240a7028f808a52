//! Transport of messages between ranks.

use std::collections::BTreeMap;

use super::manifest::Manifest;
use super::message::Message;
use crate::Error;

/// The ranks that run in this process.
pub(crate) trait LocalRanks {
    /// Does what a message says.
    fn deliver(&self, message: Message) -> Result<(), Error>;
}

/// What the ranks in this process are doing, as seen by the thread that watches for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Something runs or can run.
    Busy,
    /// Everything waits, for this.
    Waiting(String),
    /// Everything is done.
    Finished,
}

/// What all ranks together have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobalState {
    /// Messages may still come.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "no message comes from elsewhere"))]
    Running,
    /// Every rank is done, and every message has arrived.
    Over,
}

/// A way between ranks.
pub(crate) trait Transport: Sync {
    /// What every rank of the world sends and receives, from what those here do.
    fn exchange(&self, own: BTreeMap<i64, Manifest>) -> Result<BTreeMap<i64, Manifest>, Error>;

    /// Sends a message. Those to one rank from one thread arrive in order.
    fn post(&self, message: Message, here: &dyn LocalRanks) -> Result<(), Error>;

    /// Whether ranks run elsewhere, so that [`Transport::poll`] must be called.
    fn is_distributed(&self) -> bool;

    /// Sends and receives what is due. One thread calls it, the one that started the run.
    ///
    /// # Errors
    /// Also when every rank of the world waits.
    fn poll(&self, here: &dyn LocalRanks, activity: Activity) -> Result<GlobalState, Error>;
}

/// All ranks in this process: a message is delivered by who sends it.
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
