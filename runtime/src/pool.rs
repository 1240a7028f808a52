//! Thread pools for the tasks of a parallel call.
use std::{
    cell::UnsafeCell,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{Builder, JoinHandle},
    time::Instant,
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

/// What the threads of a pool share. A launch changes `launch`, from which the workers that take part in it know that
/// `job` is set; it ends when none of them is `left`.
struct Shared {
    /// The number of launches, and in the lower bits the number of tasks of the last one.
    launch: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    /// Number of workers that have not finished their tasks.
    left: AtomicUsize,
    has_panicked: AtomicBool,
    stops: AtomicBool,
    /// Number of workers that sleep until a launch, and whether the launching thread sleeps until its end.
    sleeping: AtomicUsize,
    is_awaited: AtomicBool,
    lock: Mutex<()>,
    begin: Condvar,
    done: Condvar,
    /// Of workers for a launch, and of the launching thread for its end.
    for_launch: Patience,
    for_end: Patience,
}

// Safety: `job` is written while no worker takes part in a launch, and read only by those that do.
unsafe impl Sync for Shared {}
// Safety: as above; a job is `Send`.
unsafe impl Send for Shared {}

/// A task function, valid while [`ThreadPool::run`] waits.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));

/// The bits of [`Shared::launch`] that hold the number of tasks.
const TASKS: u64 = 0xffff;

/// The maximum number of threads of a pool.
pub const MAX_THREADS: usize = 1024;

/// How long a thread looks for what it waits for before it sleeps, as waking takes longer than many kernels. If it has
/// often looked in vain, as where another thread needs the processor, it looks for a shorter time, and now and then for the
/// longest again, as the other thread may be gone.
struct Patience {
    nanoseconds: AtomicU64,
    /// How often it looked for less than the longest time.
    short: AtomicU64,
    /// How often in a row it was in vain.
    failures: AtomicU64,
    longest: u64,
}

/// The longest time that a thread looks for what it waits for, in nanoseconds.
const MAX_PATIENCE: u64 = 200_000;

/// How often in a row a thread looks in vain before the time gets shorter.
const MAX_FAILURES: u64 = 16;

/// How often a thread looks for a shorter time before it looks for the longest time once.
const SHORT_LOOKS: u64 = 64;

impl Patience {
    /// For this number of threads: none if they have to share processors.
    fn of(threads: usize) -> Self {
        let longest = if threads <= processors() { MAX_PATIENCE } else { 0 };
        let [short, failures] = [const { AtomicU64::new(0) }; 2];
        Patience { nanoseconds: AtomicU64::new(longest), short, failures, longest }
    }

    /// Whether something becomes true within this time.
    fn sees(&self, is_true: impl Fn() -> bool) -> bool {
        if is_true() {
            return true;
        }
        let mut limit = self.nanoseconds.load(Ordering::Relaxed);
        let is_short = limit < self.longest;
        if is_short && self.short.fetch_add(1, Ordering::Relaxed) % SHORT_LOOKS == SHORT_LOOKS - 1 {
            limit = self.longest;
        }
        let start = Instant::now();
        while (start.elapsed().as_nanos() as u64) < limit {
            // Reading the clock takes longer than looking.
            let is_seen = (0..16).any(|_| {
                std::hint::spin_loop();
                is_true()
            });
            if is_seen {
                self.failures.store(0, Ordering::Relaxed);
                if is_short {
                    self.nanoseconds.store((limit * 2).min(self.longest), Ordering::Relaxed);
                }
                return true;
            }
        }
        if limit == self.longest && is_short {
            return false;
        }
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_FAILURES {
            self.failures.store(0, Ordering::Relaxed);
            self.nanoseconds.store((limit / 2).max(self.longest.min(1000)), Ordering::Relaxed);
        }
        false
    }
}

/// Number of processors that this process may use, at least 1.
fn processors() -> usize {
    // Safety: an empty set is a valid value, and the system writes only as much as it is large.
    let count = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        libc::CPU_COUNT(&set)
    };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// The calling thread alone for 0 and 1, and otherwise a [`ThreadPool`].
///
/// # Errors
/// Those of [`ThreadPool::new`].
pub fn pool_of(threads: usize) -> io::Result<Arc<dyn Pool>> {
    match threads {
        0 | 1 => Ok(Arc::new(Inline)),
        threads => Ok(Arc::new(ThreadPool::new(threads)?)),
    }
}

impl ThreadPool {
    /// A pool that runs `threads` tasks concurrently, on the calling thread and `threads - 1` others.
    ///
    /// # Errors
    /// If there are more than 1024, or the system cannot start a thread.
    pub fn new(threads: usize) -> io::Result<Self> {
        if threads > MAX_THREADS {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let shared = Arc::new(Shared::new(threads));
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
        if tasks <= 1 || self.workers.is_empty() {
            return (0..tasks).for_each(task);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Safety: only the lifetime changes; this function does not return while a worker uses the function.
        let job: *const (dyn Fn(usize) + Sync + 'static) =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), _>(task) };
        self.shared.launch(tasks, Job(job));
        let own = catch_unwind(AssertUnwindSafe(|| task(0)));
        self.shared.wait();
        let has_panicked = self.shared.has_panicked.swap(false, Ordering::Relaxed);
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert!(!has_panicked, "a task panicked");
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::SeqCst);
        self.shared.wake();
        for worker in self.workers.drain(..) {
            // Workers catch the panics of tasks.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn new(threads: usize) -> Self {
        Shared {
            launch: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            left: AtomicUsize::new(0),
            has_panicked: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            sleeping: AtomicUsize::new(0),
            is_awaited: AtomicBool::new(false),
            lock: Mutex::new(()),
            begin: Condvar::new(),
            done: Condvar::new(),
            for_launch: Patience::of(threads),
            for_end: Patience::of(threads),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the workers before number `tasks` begin; no launch is running.
    fn launch(&self, tasks: usize, job: Job) {
        // Safety: no worker takes part in a launch.
        unsafe { *self.job.get() = Some(job) };
        self.left.store(tasks - 1, Ordering::Relaxed);
        let number = self.launch.load(Ordering::Relaxed) & !TASKS;
        self.launch.store(number + TASKS + 1 + tasks as u64, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    fn wake(&self) {
        drop(self.lock());
        self.begin.notify_all();
    }

    /// Waits until all workers have finished.
    fn wait(&self) {
        let is_done = || self.left.load(Ordering::SeqCst) == 0;
        if self.for_end.sees(is_done) {
            return;
        }
        let mut held = self.lock();
        self.is_awaited.store(true, Ordering::SeqCst);
        while !is_done() {
            held = self.done.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        self.is_awaited.store(false, Ordering::Relaxed);
    }

    fn work(&self, index: usize) {
        let mut seen = 0;
        loop {
            let has_begun =
                || self.launch.load(Ordering::SeqCst) != seen || self.stops.load(Ordering::SeqCst);
            if !self.for_launch.sees(has_begun) {
                let mut held = self.lock();
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                while !has_begun() {
                    held = self.begin.wait(held).unwrap_or_else(PoisonError::into_inner);
                }
                self.sleeping.fetch_sub(1, Ordering::SeqCst);
            }
            if self.stops.load(Ordering::SeqCst) {
                return;
            }
            seen = self.launch.load(Ordering::SeqCst);
            if index as u64 >= seen & TASKS {
                continue;
            }
            // Safety: this worker takes part in the launch, which does not end before it is done.
            let job = unsafe { *self.job.get() };
            let is_fine = job.is_none_or(|Job(task)| {
                // Safety: as above.
                catch_unwind(AssertUnwindSafe(|| unsafe { (*task)(index) })).is_ok()
            });
            if !is_fine {
                self.has_panicked.store(true, Ordering::Relaxed);
            }
            let was_last = self.left.fetch_sub(1, Ordering::SeqCst) == 1;
            if was_last && self.is_awaited.load(Ordering::SeqCst) {
                drop(self.lock());
                self.done.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

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
    fn launches_of_changing_sizes_lose_no_task() {
        // More threads than processors, so that threads sleep; and pauses, so that they wake.
        for threads in [2, 3, 9] {
            let pool = ThreadPool::new(threads).expect("threads");
            let total = AtomicUsize::new(0);
            let mut expected = 0;
            for launch in 0..3000 {
                let tasks = 1 + launch % threads;
                expected += tasks;
                pool.run(tasks, &|_| {
                    total.fetch_add(1, Ordering::Relaxed);
                });
                if launch % 500 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            assert_eq!(total.into_inner(), expected, "{threads} threads");
        }
    }

    #[test]
    fn too_many_threads_are_an_error() {
        assert!(ThreadPool::new(MAX_THREADS + 1).is_err());
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
