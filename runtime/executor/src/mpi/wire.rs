//! Serialization of messages.

use serde::{Deserialize, Serialize};

use crate::comm::message::{Body, Message};

/// Messages between processes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WireMessage {
    /// For a rank's memory.
    Message(Message),
    /// The status of a rank, for rank 0.
    Status(Status),
    /// The final state of all ranks, from rank 0: a deadlock if there is a text.
    End(Option<String>),
}

/// The status of a rank that cannot continue by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Status {
    /// What it waits for; `None` if it is done.
    pub waits: Option<String>,
    /// Number of messages sent to each rank.
    pub sent: Vec<u64>,
    /// Number of messages received from each rank.
    pub received: Vec<u64>,
}

const PUT: u8 = 0;
const PACKETS: u8 = 1;
const SYNC: u8 = 2;
const STATUS: u8 = 3;
const END: u8 = 4;

impl WireMessage {
    /// Serializes the message.
    pub(super) fn encode(&self) -> Vec<u8> {
        let text = |kind: u8, text: String| [&[kind], text.as_bytes()].concat();
        match self {
            WireMessage::Message(message) => encode(message),
            WireMessage::Status(status) => text(STATUS, serde_json::json!(status).to_string()),
            WireMessage::End(waits) => text(END, serde_json::json!(waits).to_string()),
        }
    }

    /// Parses bytes that `from` sent to `to`.
    ///
    /// # Errors
    /// If the bytes are not a message.
    pub(super) fn decode(bytes: &[u8], from: i64, to: i64) -> Result<Self, String> {
        let problem = || format!("rank {from} sent {} bytes that are not a message", bytes.len());
        let (&kind, rest) = bytes.split_first().ok_or_else(problem)?;
        let unread = |_| problem();
        match kind {
            STATUS => serde_json::from_slice(rest).map(WireMessage::Status).map_err(unread),
            END => serde_json::from_slice(rest).map(WireMessage::End).map_err(unread),
            _ => {
                let body = body(kind, &mut Reader(rest)).ok_or_else(problem)?;
                Ok(WireMessage::Message(Message { from, to, body }))
            }
        }
    }
}

/// Kind, slot, runs, a signal or a flag, then the payload.
fn encode(message: &Message) -> Vec<u8> {
    let (kind, slot, runs, word, bytes) = match &message.body {
        Body::Sync => return vec![SYNC],
        Body::Put { slot, runs, bytes, signal } => {
            let word = signal.map(|tag| tag.to_le_bytes());
            (PUT, slot, runs, word, bytes)
        }
        Body::Packets { slot, runs, bytes, flag } => {
            (PACKETS, slot, runs, Some(u64::from(*flag).to_le_bytes()), bytes)
        }
    };
    let mut out = Vec::with_capacity(bytes.len() + runs.len() * 16 + 32);
    out.push(kind);
    out.extend((*slot as u64).to_le_bytes());
    out.extend((runs.len() as u64).to_le_bytes());
    for &(begin, len) in runs {
        out.extend(begin.to_le_bytes());
        out.extend(len.to_le_bytes());
    }
    out.push(u8::from(word.is_some()));
    out.extend(word.unwrap_or_default());
    out.extend(bytes);
    out
}

fn body(kind: u8, reader: &mut Reader<'_>) -> Option<Body> {
    if kind == SYNC {
        return Some(Body::Sync);
    }
    let slot = usize::try_from(reader.word()?).ok()?;
    let count = usize::try_from(reader.word()?).ok()?;
    // Do not allocate for a count that exceeds the remaining bytes.
    let runs = (0..count.min(reader.0.len()))
        .map(|_| Some((reader.word()?, reader.word()?)))
        .collect::<Option<Vec<_>>>()?;
    let is_given = reader.byte()? == 1;
    let word = reader.word()?;
    let bytes = reader.0.to_vec();
    match kind {
        PUT => {
            let signal = is_given.then_some(word.cast_signed());
            Some(Body::Put { slot, runs, bytes, signal })
        }
        PACKETS => Some(Body::Packets { slot, runs, bytes, flag: u32::try_from(word).ok()? }),
        _ => None,
    }
}

/// The remaining bytes.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_read_back_and_parts_of_them_do_not() {
        let runs = vec![(8, 16), (32, 8)];
        let put = |signal| Body::Put { slot: 3, runs: runs.clone(), bytes: vec![7; 24], signal };
        let packets = Body::Packets { slot: 1, runs: vec![(0, 8)], bytes: vec![1; 4], flag: 9 };
        for body in [put(None), put(Some(-5)), packets, Body::Sync] {
            let parcel = WireMessage::Message(Message { from: 2, to: 1, body });
            let bytes = parcel.encode();
            assert_eq!(WireMessage::decode(&bytes, 2, 1), Ok(parcel));
        }
        let bytes = encode(&Message { from: 2, to: 1, body: put(Some(1)) });
        let header = bytes.len() - 24;
        assert!((0..header).all(|end| WireMessage::decode(&bytes[..end], 2, 1).is_err()));
        assert!(WireMessage::decode(&[9], 2, 1).is_err());
        let status = Status { waits: Some("x".into()), sent: vec![1], received: vec![0] };
        let parcel = WireMessage::Status(status);
        assert_eq!(WireMessage::decode(&parcel.encode(), 0, 1), Ok(parcel));
    }
}
