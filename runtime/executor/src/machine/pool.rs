//! Processors that can go on, and the threads that take them.
//!
//! A processor is ready, taken by a thread, or parked until someone wakes it. Threads take several
//! at a time, fewer as fewer are left, so that the lock is rarely touched and the work still evens
//! out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Turns of a waiting thread before it sleeps: some ten microseconds.
const SPINS: u32 = 2000;

/// How long a thread that also watches for messages sleeps.
const WATCH: Duration = Duration::from_micros(50);

/// The processors of a run.
pub(crate) struct Pool {
    state: Mutex<State>,
    bell: Condvar,
    /// Length of the queue, to look at without the lock; `usize::MAX` when all is over.
    hint: AtomicUsize,
    threads: usize,
}

struct State {
    queue: VecDeque<usize>,
    /// Taken, and not reported parked or finished.
    taken: usize,
    unfinished: usize,
    is_over: bool,
    sleepers: usize,
}

/// What a thread is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the batch.
    Batch,
    /// Nothing is ready now; look for messages.
    Idle,
    /// No processor can go on, and some are not finished.
    Stuck,
    /// All is over.
    Over,
}

impl Pool {
    /// All processors are ready.
    pub(crate) fn new(processors: usize, threads: usize) -> Self {
        let state = State {
            queue: (0..processors).collect(),
            taken: 0,
            unfinished: processors,
            is_over: false,
            sleepers: 0,
        };
        let hint = AtomicUsize::new(processors);
        Self { state: Mutex::new(state), bell: Condvar::new(), hint, threads }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has already ended the run.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes processors ready.
    pub(crate) fn wake(&self, processors: impl Iterator<Item = usize>) {
        let mut state = self.lock();
        state.queue.extend(processors);
        self.publish(&state);
        if state.sleepers > 0 {
            self.bell.notify_all();
        }
    }

    /// Ends the run.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.is_over = true;
        self.publish(&state);
        self.bell.notify_all();
    }

    fn publish(&self, state: &State) {
        let hint = if state.is_over { usize::MAX } else { state.queue.len() };
        self.hint.store(hint, Ordering::Release);
    }

    /// Reports the last batch, of which `finished` are done and the others parked, and takes the
    /// next one. With `watch`, comes back with [`Next::Idle`] now and then, and never says
    /// [`Next::Stuck`].
    pub(crate) fn take(&self, batch: &mut Vec<usize>, finished: usize, watch: bool) -> Next {
        let mut state = self.lock();
        state.taken -= batch.len();
        state.unfinished -= finished;
        batch.clear();
        let mut has_spun = false;
        loop {
            if state.is_over || state.unfinished == 0 {
                state.is_over = true;
                self.publish(&state);
                self.bell.notify_all();
                return Next::Over;
            }
            if !state.queue.is_empty() {
                let count = (state.queue.len() / (2 * self.threads)).max(1);
                batch.extend(state.queue.drain(..count));
                state.taken += count;
                self.publish(&state);
                return Next::Batch;
            }
            if state.taken == 0 && !watch {
                return Next::Stuck;
            }
            if !has_spun {
                drop(state);
                self.spin();
                state = self.lock();
                has_spun = true;
                continue;
            }
            state.sleepers += 1;
            state = match watch {
                true => {
                    let woken = self.bell.wait_timeout(state, WATCH);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                false => self.bell.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.sleepers -= 1;
            if watch && state.queue.is_empty() && !state.is_over && state.unfinished > 0 {
                return Next::Idle;
            }
        }
    }

    /// Waits a moment for the queue to fill.
    fn spin(&self) {
        for _ in 0..SPINS {
            if self.hint.load(Ordering::Acquire) > 0 {
                return;
            }
            std::hint::spin_loop();
        }
    }
}
