//! Messages between ranks, and their delivery.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::memory::{Addresses, Run};

/// A message to a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub from: i64,
    pub to: i64,
    pub body: Body,
}

/// The effect of a message on delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Writes into a buffer, then signals if there is a tag.
    Put { slot: usize, runs: Vec<Run>, bytes: Vec<u8>, signal: Option<i64> },
    /// Writes packets: each combines 32 bits of payload with the flag.
    Packets { slot: usize, runs: Vec<Run>, bytes: Vec<u8>, flag: u32 },
    /// The sender has reached a synchronisation.
    Sync,
}

/// Signals that have arrived for a rank, and processors that wait for a message.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Signals not yet waited for, by sender and tag.
    signals: BTreeMap<(i64, i64), AtomicU64>,
    /// Synchronisations not yet waited for, by sender.
    syncs: BTreeMap<i64, AtomicU64>,
    /// Number of messages that have arrived.
    version: AtomicU64,
    parked: Mutex<Vec<usize>>,
}

impl Inbox {
    /// Creates an inbox for these links and peers.
    pub(crate) fn new(
        links: impl Iterator<Item = (i64, i64)>,
        peers: impl Iterator<Item = i64>,
    ) -> Self {
        Self {
            signals: links.map(|link| (link, AtomicU64::new(0))).collect(),
            syncs: peers.map(|peer| (peer, AtomicU64::new(0))).collect(),
            ..Self::default()
        }
    }

    /// A counter that increases with every message.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Parks a processor until the next message; returns false if one has arrived since `version`.
    pub(crate) fn park(&self, processor: usize, version: u64) -> bool {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        if self.version() != version {
            return false;
        }
        parked.push(processor);
        true
    }

    /// Consumes `count` signals under a tag, if they have arrived.
    pub(crate) fn take_signals(&self, link: (i64, i64), count: u64) -> bool {
        self.signals.get(&link).is_some_and(|signals| take(signals, count))
    }

    /// Consumes a synchronisation of a peer, if it has arrived.
    pub(crate) fn take_sync(&self, peer: i64) -> bool {
        self.syncs.get(&peer).is_some_and(|syncs| take(syncs, 1))
    }

    /// Applies a message and returns the processors to wake.
    ///
    /// # Errors
    /// If the message does not fit the local memory.
    pub(crate) fn deliver(
        &self,
        message: &Message,
        memory: &Addresses,
    ) -> Result<Vec<usize>, String> {
        let from = message.from;
        match &message.body {
            Body::Put { slot, runs, bytes, signal } => {
                check(memory, *slot, runs, bytes.len(), 1)?;
                memory.scatter(*slot, runs, bytes);
                if let Some(tag) = signal {
                    let signals = self.signals.get(&(from, *tag));
                    signals.map(|signals| signals.fetch_add(1, Ordering::AcqRel));
                }
            }
            Body::Packets { slot, runs, bytes, flag } => {
                check(memory, *slot, runs, bytes.len(), 2)?;
                write_packets(memory, *slot, runs, bytes, *flag);
            }
            Body::Sync => {
                let syncs = self.syncs.get(&from);
                syncs.map(|syncs| syncs.fetch_add(1, Ordering::AcqRel));
            }
        }
        self.version.fetch_add(1, Ordering::SeqCst);
        Ok(std::mem::take(&mut *self.parked.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn take(counter: &AtomicU64, count: u64) -> bool {
    counter
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |have| have.checked_sub(count))
        .is_ok()
}

/// A message from another process is validated like any input.
fn check(
    memory: &Addresses,
    slot: usize,
    runs: &[Run],
    bytes: usize,
    factor: u64,
) -> Result<(), String> {
    let total = runs.iter().try_fold(0u64, |sum, &(_, len)| sum.checked_add(len));
    let fits = |&(begin, len): &Run| {
        let end = begin.checked_add(len);
        end.is_some_and(|end| memory.size(slot).is_some_and(|size| end <= size))
    };
    let is_whole = |&(begin, len): &Run| factor == 1 || begin % 8 == 0 && len % 8 == 0;
    match total == (bytes as u64).checked_mul(factor)
        && runs.iter().all(|run| fits(run) && is_whole(run))
    {
        true => Ok(()),
        false => Err(format!("a message of {bytes} bytes does not fit buffer {slot}")),
    }
}

/// Packets are read while they are written: each is one atomic word of payload and flag.
fn write_packets(memory: &Addresses, slot: usize, runs: &[Run], bytes: &[u8], flag: u32) {
    let (words, _) = bytes.as_chunks::<4>();
    let places = runs.iter().flat_map(|&(begin, len)| (begin..begin + len).step_by(8));
    for (place, word) in places.zip(words) {
        let packet = u64::from(flag) << 32 | u64::from(u32::from_le_bytes(*word));
        memory.word(slot, place).store(packet, Ordering::Release);
    }
}

/// The payload of packets, if all of them carry the flag.
pub(crate) fn read_packets(
    memory: &Addresses,
    slot: usize,
    runs: &[Run],
    flag: u32,
) -> Option<Vec<u8>> {
    let mut payload = vec![];
    for place in runs.iter().flat_map(|&(begin, len)| (begin..begin + len).step_by(8)) {
        let packet = memory.word(slot, place).load(Ordering::Acquire);
        if packet >> 32 != u64::from(flag) {
            return None;
        }
        payload.extend_from_slice(&(packet as u32).to_le_bytes());
    }
    Some(payload)
}
