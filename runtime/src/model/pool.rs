//! Thread pools for the tasks of a parallel call.
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
};

/// Threads that run the tasks of a call. A context has one; several contexts may share it.
pub trait Pool: Send + Sync {
    /// Maximum number of concurrent tasks, at least 1.
    fn threads(&self) -> usize;

    /// Runs `task(0)` to `task(tasks - 1)`, each once and on a separate thread, concurrently, because
    /// tasks may wait for each other; the calling thread may be one of them. Returns when all have
    /// finished. `tasks` is at most [`Pool::threads`]. A panic aborts the process, because it cannot
    /// unwind through compiled code.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// No threads: a call has one task, which runs on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Pool for Inline {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

/// Threads of the runtime; contexts that share a pool use it in turn.
pub struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    turn: Mutex<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    begin: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of launches, so that each worker takes part in each once.
    launch: u64,
    tasks: usize,
    job: Option<Job>,
    /// Number of workers that have not finished the launch.
    left: usize,
    has_panicked: bool,
    stops: bool,
}

/// A task function, valid while [`ThreadPool::run`] waits.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));

// Safety: the function is `Sync`, and outlives all workers' use of it.
unsafe impl Send for Job {}

impl ThreadPool {
    /// A pool that runs `threads` tasks concurrently, on the calling thread and `threads - 1` others.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn new(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut pool = ThreadPool { shared: shared.clone(), workers: vec![], turn: Mutex::new(()) };
        for index in 1..threads.max(1) {
            let shared = shared.clone();
            let thread = Builder::new().name(format!("irc-{index}"));
            pool.workers.push(thread.spawn(move || shared.work(index))?);
        }
        Ok(pool)
    }
}

impl Pool for ThreadPool {
    fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let workers = self.workers.len();
        if tasks <= 1 || workers == 0 {
            return (0..tasks).for_each(task);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Safety: only the lifetime changes; this function does not return while a worker uses the function.
        let job: *const (dyn Fn(usize) + Sync + 'static) =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), _>(task) };
        let mut state = self.shared.lock();
        state.launch += 1;
        (state.tasks, state.job, state.left) = (tasks, Some(Job(job)), workers);
        drop(state);
        self.shared.begin.notify_all();
        let own = catch_unwind(AssertUnwindSafe(|| task(0)));
        let mut state = self.shared.lock();
        while state.left > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
        let has_panicked = std::mem::take(&mut state.has_panicked);
        drop(state);
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert!(!has_panicked, "a task panicked");
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.lock().stops = true;
        self.shared.begin.notify_all();
        for worker in self.workers.drain(..) {
            // Workers catch the panics of tasks.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No panic leaves the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, index: usize) {
        let mut seen = 0;
        let mut state = self.lock();
        loop {
            while state.launch == seen && !state.stops {
                state = self.begin.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stops {
                return;
            }
            seen = state.launch;
            let job = state.job.filter(|_| index < state.tasks);
            drop(state);
            let is_fine = job.is_none_or(|Job(task)| {
                // Safety: `run` waits until this worker has reported that it is done.
                catch_unwind(AssertUnwindSafe(|| unsafe { (*task)(index) })).is_ok()
            });
            state = self.lock();
            state.has_panicked |= !is_fine;
            state.left -= 1;
            if state.left == 0 {
                self.done.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    };

    #[test]
    fn tasks_run_once_each_and_at_the_same_time() {
        let pool = ThreadPool::new(4).expect("threads");
        for tasks in [0, 1, 3, 4] {
            let counts = [const { AtomicUsize::new(0) }; 4];
            let all = Barrier::new(tasks.max(1));
            pool.run(tasks, &|task| {
                counts[task].fetch_add(1, Ordering::Relaxed);
                all.wait();
            });
            let counts: Vec<_> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
            assert_eq!(counts.iter().sum::<usize>(), tasks, "{counts:?}");
            assert!(counts.iter().all(|count| *count <= 1));
        }
    }

    #[test]
    fn threads_that_share_a_pool_take_turns() {
        let pool = ThreadPool::new(3).expect("threads");
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        pool.run(3, &|_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.load(Ordering::Relaxed), 4 * 100 * 3);
    }

    #[test]
    fn a_panic_of_a_task_is_one_of_the_launch() {
        let pool = ThreadPool::new(2).expect("threads");
        let launch = || pool.run(2, &|task| assert_ne!(task, 1));
        assert!(catch_unwind(AssertUnwindSafe(launch)).is_err());
        pool.run(2, &|_| {});
    }
}
