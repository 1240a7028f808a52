//! Communication between ranks, as in ARK's kernels.
//!
//! * A put copies a tensor, or a task's tile of it, into the peer's buffer that lists the tag; a signal
//!   after it releases a waiting task of the peer.
//! * A packet is 32 bits of payload and 32 bits of flag; the reader waits until the flag has arrived.
//! * A reduction adds the data that peers wrote into consecutive parts of scratch, in the order of
//!   their ranks, and writes the sum to its own buffer and to those of the peers.
//! * A synchronisation notifies every peer and waits for all of them.
//!
//! ARK's semaphores count signals of a peer for all tags together. Here each tag is counted separately,
//! and if every task of a tiled `Send` signals, the single waiting task waits for all signals:
//! this is the intent of the plan, whereas ARK's kernel would continue after the first.

pub(crate) mod manifest;
pub(crate) mod message;
pub(crate) mod op;
mod reduce;
pub(crate) mod step;
pub(crate) mod transport;
pub(crate) mod view;
