//! Ranks in separate processes, over MPI.
//!
//! Only the thread that started MPI sends and receives, between running processors. A rank that cannot
//! continue by itself reports to rank 0 how many messages it has sent to each rank and received from
//! each. When every rank has reported, and the two numbers of every pair agree, no message is in
//! flight: then either all ranks are done, or there is a deadlock.

mod ffi;
mod wire;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::comm::manifest::Manifest;
use crate::comm::message::Message;
use crate::comm::transport::{Activity, GlobalState, LocalRanks, Transport};
use crate::machine::{Options, Report, run_over};
use crate::{Error, Memory, Rank};
use ffi::SendRequest;
use wire::{Status, WireMessage};

/// The processes that `mpirun` started, including this one.
///
/// Ends MPI when dropped. After a failed run, it terminates the other processes instead, so that none
/// waits for this one: print the error before dropping it.
pub struct World {
    post: Mailbox,
    has_failed: Cell<bool>,
    // MPI must be used by the thread that started it.
    _thread: PhantomData<*mut ()>,
}

impl World {
    /// Starts MPI, once in a process.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn start() -> Result<Self, Error> {
        let (rank, size) = ffi::start()?;
        let post = Mailbox { rank, size, outbox: Mutex::default(), desk: Mutex::default() };
        Ok(Self { post, has_failed: Cell::new(false), _thread: PhantomData })
    }

    /// The rank of this process: that of the plan to run.
    pub fn rank(&self) -> i64 {
        self.post.rank
    }

    /// Number of processes.
    pub fn size(&self) -> i64 {
        self.post.size
    }

    /// Runs this process' rank, while the other processes run theirs.
    ///
    /// # Errors
    /// As [`crate::run`]; [`Error::Transport`].
    pub fn run(
        &self,
        rank: &Rank,
        memory: Memory,
        options: Options,
    ) -> Result<(Memory, Report), Error> {
        let mut memories = [memory];
        let result =
            self.check(rank).and_then(|()| run_over(&self.post, &[rank], &mut memories, options));
        self.has_failed.set(self.has_failed.get() || result.is_err());
        let [memory] = memories;
        result.map(|report| (memory, report))
    }

    fn check(&self, rank: &Rank) -> Result<(), Error> {
        let (plan, size) = (rank.plan(), self.size());
        if plan.world_size != size {
            return Err(Error::World(format!(
                "the plan of rank {} is for a world of {}, and mpirun started {size} processes",
                plan.rank, plan.world_size
            )));
        }
        if plan.rank != self.rank() {
            return Err(Error::World(format!(
                "the plan of rank {} was given to process {}",
                plan.rank,
                self.rank()
            )));
        }
        Ok(())
    }

    /// Terminates every process of the world with this exit code.
    pub fn abort(&self, code: i32) -> ! {
        ffi::abort(code)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.has_failed.get() || std::thread::panicking() {
            ffi::abort(1);
        }
        ffi::end();
    }
}

/// Sends and receives messages of one rank.
struct Mailbox {
    rank: i64,
    size: i64,
    outbox: Mutex<Outbox>,
    desk: Mutex<MailboxState>,
}

/// Messages to send.
#[derive(Default)]
struct Outbox {
    parcels: VecDeque<(i64, Vec<u8>)>,
    /// Number of messages queued for each rank since the start.
    sent: BTreeMap<i64, u64>,
}

/// State that only the MPI thread uses.
#[derive(Default)]
struct MailboxState {
    sending: Vec<SendRequest>,
    received: BTreeMap<i64, u64>,
    /// The last status reported.
    reported: Option<Status>,
    /// On rank 0, the last status of each rank.
    statuses: BTreeMap<i64, Status>,
    /// The verdict of rank 0.
    end: Option<Option<String>>,
}

impl Mailbox {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts sending all queued messages.
    fn send(&self, desk: &mut MailboxState) -> Result<(), Error> {
        let parcels = std::mem::take(&mut self.outbox().parcels);
        for (to, bytes) in parcels {
            desk.sending.push(SendRequest::start(bytes, to)?);
        }
        let mut left = vec![];
        for sending in desk.sending.drain(..) {
            if !sending.is_done()? {
                left.push(sending);
            }
        }
        desk.sending = left;
        Ok(())
    }

    /// Receives all messages that have arrived; returns whether there were any.
    fn receive(&self, desk: &mut MailboxState, here: &dyn LocalRanks) -> Result<bool, Error> {
        let mut has_arrived = false;
        while let Some((from, bytes)) = ffi::receive()? {
            match WireMessage::decode(&bytes, from, self.rank).map_err(Error::Transport)? {
                WireMessage::Message(message) => {
                    has_arrived = true;
                    *desk.received.entry(from).or_default() += 1;
                    here.deliver(message)?;
                }
                WireMessage::Status(status) => {
                    desk.statuses.insert(from, status);
                }
                WireMessage::End(waits) => desk.end = Some(waits),
            }
        }
        Ok(has_arrived)
    }

    /// Reports the status of this rank to rank 0.
    fn report_status(&self, desk: &mut MailboxState, waits: Option<String>) -> Result<(), Error> {
        let all = |counts: &BTreeMap<i64, u64>| {
            (0..self.size).map(|rank| counts.get(&rank).copied().unwrap_or_default()).collect()
        };
        let outbox = self.outbox();
        let status = Status { waits, sent: all(&outbox.sent), received: all(&desk.received) };
        drop(outbox);
        if desk.reported.as_ref() == Some(&status) {
            return Ok(());
        }
        desk.reported = Some(status.clone());
        if self.rank == 0 {
            desk.statuses.insert(0, status);
            return Ok(());
        }
        desk.sending.push(SendRequest::start(WireMessage::Status(status).encode(), 0)?);
        Ok(())
    }

    /// On rank 0: determines whether the run is over, and notifies the others.
    fn judge(&self, desk: &mut MailboxState) -> Result<(), Error> {
        let Some(end) = verdict(&desk.statuses, self.size) else { return Ok(()) };
        let bytes = WireMessage::End(end.clone()).encode();
        for to in 1..self.size {
            desk.sending.push(SendRequest::start(bytes.clone(), to)?);
        }
        while !desk.sending.is_empty() {
            self.send(desk)?;
        }
        desk.end = Some(end);
        Ok(())
    }
}

/// The state of all ranks if no message is in flight: a text if some wait.
fn verdict(statuses: &BTreeMap<i64, Status>, size: i64) -> Option<Option<String>> {
    let all: Vec<&Status> = (0..size).filter_map(|rank| statuses.get(&rank)).collect();
    if all.len() as i64 != size {
        return None;
    }
    let arrived = (0..all.len())
        .all(|from| (0..all.len()).all(|to| all[from].sent.get(to) == all[to].received.get(from)));
    let waits: Vec<_> = all.iter().filter_map(|status| status.waits.as_deref()).collect();
    arrived.then(|| (!waits.is_empty()).then(|| waits.join("\n")))
}

impl Transport for Mailbox {
    fn exchange(&self, own: BTreeMap<i64, Manifest>) -> Result<BTreeMap<i64, Manifest>, Error> {
        let text = own.get(&self.rank).map(|manifest| serde_json::json!(manifest).to_string());
        let all = ffi::gather(text.unwrap_or_default().as_bytes(), self.size as usize)?;
        let mut found = BTreeMap::new();
        for (rank, text) in all.iter().enumerate() {
            let manifest: Manifest = serde_json::from_slice(text).map_err(|error| {
                Error::Transport(format!("the status of rank {rank} cannot be read: {error}"))
            })?;
            found.insert(manifest.rank, manifest);
        }
        Ok(found)
    }

    fn post(&self, message: Message, here: &dyn LocalRanks) -> Result<(), Error> {
        if message.to == self.rank {
            return here.deliver(message);
        }
        let to = message.to;
        let bytes = WireMessage::Message(message).encode();
        let mut outbox = self.outbox();
        *outbox.sent.entry(to).or_default() += 1;
        outbox.parcels.push_back((to, bytes));
        Ok(())
    }

    fn is_distributed(&self) -> bool {
        true
    }

    fn poll(&self, here: &dyn LocalRanks, activity: Activity) -> Result<GlobalState, Error> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        self.send(&mut desk)?;
        let has_arrived = self.receive(&mut desk, here)?;
        if !has_arrived {
            match activity {
                Activity::Busy => {}
                Activity::Waiting(waits) => self.report_status(&mut desk, Some(waits))?,
                Activity::Finished => self.report_status(&mut desk, None)?,
            }
        }
        if self.rank == 0 && desk.end.is_none() {
            self.judge(&mut desk)?;
        }
        match desk.end.take() {
            None => Ok(GlobalState::Running),
            Some(None) => {
                // The next run starts with a fresh state.
                *desk = MailboxState::default();
                *self.outbox() = Outbox::default();
                Ok(GlobalState::Over)
            }
            Some(Some(waits)) => Err(Error::Deadlock { waits }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(waits: Option<&str>, sent: [u64; 2], received: [u64; 2]) -> Status {
        Status { waits: waits.map(str::to_owned), sent: sent.into(), received: received.into() }
    }

    #[test]
    fn nothing_is_over_while_a_message_is_on_its_way() {
        let of = |first, second| verdict(&BTreeMap::from([(0, first), (1, second)]), 2);
        let done = of(status(None, [0, 3], [0, 1]), status(None, [1, 0], [3, 0]));
        assert_eq!(done, Some(None));
        let waits = of(status(Some("a"), [0, 3], [0, 1]), status(None, [1, 0], [3, 0]));
        assert_eq!(waits, Some(Some("a".into())));
        // The totals agree, although each status is older than the other's message.
        let stale = of(status(Some("a"), [0, 0], [0, 0]), status(Some("b"), [1, 0], [1, 0]));
        assert_eq!(stale, None);
        assert_eq!(verdict(&BTreeMap::from([(0, status(None, [0; 2], [0; 2]))]), 2), None);
    }
}
