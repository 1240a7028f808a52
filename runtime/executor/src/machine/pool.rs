//! Processors that can continue, and the threads that run them.
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
    /// Whether a thread watches for messages, so that waiting for one is no deadlock.
    is_watched: bool,
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
    /// With `watch`: nothing is ready, and other threads run.
    Idle,
    /// With `watch`: no processor can go on without a message.
    Waiting,
    /// With `watch`: every processor is finished.
    Finished,
    /// No processor can go on, and some are not finished.
    Stuck,
    /// All is over.
    Over,
}

impl Pool {
    /// All processors are ready.
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

    /// Reports the last batch, of which `finished` are done and the others parked, and takes the
    /// next one. With `watch`, comes back now and then without one, and a run ends only by
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

    /// What is to be done now, if anything is; with `watch`, something always is.
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

    /// Waits a moment for the queue to fill.
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

    /// Waits for the bell; one that watches only for a while.
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
