//! Processors that can continue, and the threads that run them.
//!
//! A processor is ready, running in a thread, or parked until it is woken. Threads take several
//! at a time, and fewer when few are left, so that the lock is rarely contended and the load is still
//! balanced.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of spins of a waiting thread before it sleeps: about ten microseconds.
const SPINS: u32 = 2000;

/// How long a thread that also polls for messages sleeps.
const WATCH: Duration = Duration::from_micros(50);

/// The processors of a run.
pub(crate) struct Pool {
    state: Mutex<State>,
    bell: Condvar,
    /// Length of the queue, readable without the lock; `usize::MAX` when the run is over.
    hint: AtomicUsize,
    threads: usize,
    /// Whether a thread polls for messages, so that waiting for one is not a deadlock.
    is_watched: bool,
}

struct State {
    queue: VecDeque<usize>,
    /// Number of processors that are taken and not yet reported as parked or finished.
    taken: usize,
    unfinished: usize,
    is_over: bool,
    sleepers: usize,
}

/// The next action of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the batch.
    Batch,
    /// With `watch`: no processor is ready, and other threads run.
    Idle,
    /// With `watch`: no processor can continue without a message.
    Waiting,
    /// With `watch`: every processor is finished.
    Finished,
    /// No processor can continue, and some are not finished.
    Stuck,
    /// The run is over.
    Over,
}

impl Pool {
    /// Creates a pool with all processors ready.
    pub(crate) fn new(processors: usize, threads: usize, is_watched: bool) -> Self {
        let state = State {
            queue: (0..processors).collect(),
            taken: 0,
            unfinished: processors,
            is_over: false,
            sleepers: 0,
        };
        let hint = AtomicUsize::new(processors);
        Self { state: Mutex::new(state), bell: Condvar::new(), hint, threads, is_watched }
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
        self.end(&mut self.lock());
    }

    fn end(&self, state: &mut State) {
        state.is_over = true;
        self.publish(state);
        self.bell.notify_all();
    }

    fn publish(&self, state: &State) {
        let hint = if state.is_over { usize::MAX } else { state.queue.len() };
        self.hint.store(hint, Ordering::Release);
    }

    /// Reports the last batch, of which `finished` processors are done and the others parked, and takes
    /// the next one. With `watch`, it also returns periodically without a batch, and a run ends only by
    /// [`Pool::stop`].
    pub(crate) fn take(&self, batch: &mut Vec<usize>, finished: usize, watch: bool) -> Next {
        let mut state = self.lock();
        state.taken -= batch.len();
        state.unfinished -= finished;
        batch.clear();
        let mut has_waited = false;
        loop {
            if let Some(next) = self.next(&mut state, batch, watch && has_waited) {
                return next;
            }
            state = if has_waited { self.sleep(state, watch) } else { self.spin(state) };
            has_waited = true;
        }
    }

    /// The next action, if there is one; with `watch`, there always is.
    fn next(&self, state: &mut State, batch: &mut Vec<usize>, watch: bool) -> Option<Next> {
        let is_done = state.unfinished == 0 && !self.is_watched;
        if state.is_over || is_done {
            self.end(state);
            return Some(Next::Over);
        }
        if !state.queue.is_empty() {
            let count = (state.queue.len() / (2 * self.threads)).max(1);
            batch.extend(state.queue.drain(..count));
            state.taken += count;
            self.publish(state);
            return Some(Next::Batch);
        }
        match state.taken {
            0 if !self.is_watched => Some(Next::Stuck),
            _ if !watch => None,
            0 if state.unfinished == 0 => Some(Next::Finished),
            0 => Some(Next::Waiting),
            _ => Some(Next::Idle),
        }
    }

    /// Spins until the queue fills, for a limited time.
    fn spin<'p>(&'p self, state: MutexGuard<'p, State>) -> MutexGuard<'p, State> {
        drop(state);
        for _ in 0..SPINS {
            if self.hint.load(Ordering::Acquire) > 0 {
                break;
            }
            std::hint::spin_loop();
        }
        self.lock()
    }

    /// Waits for a notification; with `watch`, only for a limited time.
    fn sleep<'p>(&'p self, mut state: MutexGuard<'p, State>, watch: bool) -> MutexGuard<'p, State> {
        state.sleepers += 1;
        let mut state = match watch {
            true => {
                let woken = self.bell.wait_timeout(state, WATCH);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            false => self.bell.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.sleepers -= 1;
        state
    }
}
