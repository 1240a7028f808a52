//! Communication between ranks, as in ARK's kernels.
//!
//! * A put copies a tensor, or a task's tile of it, into the peer's buffer that lists the tag; a
//!   signal after it lets a waiting task of the peer go on.
//! * A packet is 32 bits of payload and 32 bits of flag; who reads waits until the flag is there.
//! * A reduction adds what peers wrote into scratch side by side, in the order of their ranks, and
//!   writes the sum here and there.
//! * A synchronisation tells every peer and waits for each.
//!
//! ARK's semaphores count signals of a peer whatever their tag. Here each tag counts for itself,
//! and when every task of a cut `Send` signals, the one task that waits waits for all of them:
//! what the plan means, where ARK's kernel would go on after the first.

pub(crate) mod manifest;
pub(crate) mod message;
pub(crate) mod op;
mod reduce;
pub(crate) mod step;
pub(crate) mod transport;
pub(crate) mod view;
