//! Thread pools for the tasks of a parallel call.
use std::{
    ffi::{CString, c_void},
    io,
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::{null, null_mut},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// Threads that run the tasks of a call. A context has one; several contexts may share it.
pub trait Pool: Send + Sync {
    /// How many tasks it runs at once, at least 1.
    fn threads(&self) -> usize;

    /// Runs `task(0)` to `task(tasks - 1)`, each once and each on a thread of its own at the same time as
    /// the others, for tasks may wait for each other; the thread that calls may be one of them. Returns
    /// when all have. `tasks` is at most [`Pool::threads`]. A panic here ends the process, for there is
    /// compiled code in between.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// No threads: a call has one task, which runs where it is called.
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

/// Threads that wait for tasks; contexts that share them take turns.
pub struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
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
    /// Counts launches, so that each worker takes part in each once.
    launch: u64,
    tasks: usize,
    job: Option<Job>,
    /// Workers that have not finished the launch.
    left: usize,
    has_panicked: bool,
    stops: bool,
}

/// What to run, while [`ThreadPool::run`] waits for it.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));

// Safety: the function is `Sync`, and lives until all workers have finished.
unsafe impl Send for Job {}

impl ThreadPool {
    /// A pool that runs `threads` tasks at once, on the thread that calls and `threads - 1` others.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn new(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut pool = ThreadPool { shared: shared.clone(), workers: vec![], turn: Mutex::new(()) };
        for index in 1..threads.max(1) {
            pool.workers.push(Worker::new(shared.clone(), index)?);
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
        // Safety: only the life time changes; this function does not return while anyone has it.
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
        self.workers.drain(..).for_each(Worker::join);
    }
}

/// A thread of a pool. The system's own functions start it: threads of the standard library are a large
/// part of a small program.
struct Worker(libc::pthread_t);

impl Worker {
    /// A thread that works for a pool until it stops.
    fn new(shared: Arc<Shared>, index: usize) -> io::Result<Self> {
        let start = Box::into_raw(Box::new((shared, index)));
        let mut thread = MaybeUninit::uninit();
        // Safety: the thread takes the box, which is as `work` wants it.
        let status =
            unsafe { libc::pthread_create(thread.as_mut_ptr(), null(), work, start.cast()) };
        if status != 0 {
            // Safety: there is no thread that has taken it.
            drop(unsafe { Box::from_raw(start) });
            return Err(io::Error::from_raw_os_error(status));
        }
        // Safety: the thread was made, and is not joined yet.
        let thread = unsafe { thread.assume_init() };
        if let Ok(name) = CString::new(format!("irc-{index}")) {
            // Safety: as above. A thread without a name is as good.
            unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
        }
        Ok(Worker(thread))
    }

    /// Waits for the thread, which was told to stop.
    fn join(self) {
        // Safety: nobody else joins the thread.
        unsafe { libc::pthread_join(self.0, null_mut()) };
    }
}

/// What a thread does, given a box with its pool and its number there. It catches the panics of tasks.
extern "C" fn work(start: *mut c_void) -> *mut c_void {
    // Safety: the box is this thread's.
    let (shared, index) = *unsafe { Box::from_raw(start.cast::<(Arc<Shared>, usize)>()) };
    shared.work(index);
    null_mut()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No panic leaves the state half changed.
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
                // Safety: `run` waits until this worker has counted itself out.
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
