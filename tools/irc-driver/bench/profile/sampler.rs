//! Samples of the instruction pointers of the calling thread and of the threads of pools, taken by the signals of timers.

use std::{
    fs, io,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The time between two samples in nanoseconds.
const INTERVAL: i64 = 500_000;

/// Maximum number of samples.
const MAX_SAMPLES: usize = 1 << 18;

/// The samples: a signal handler can use nothing that allocates or locks.
static SAMPLES: [AtomicUsize; MAX_SAMPLES] = [const { AtomicUsize::new(0) }; MAX_SAMPLES];

/// The number of samples that were taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Running timers, one for each thread; dropping them ends them.
struct Timers(Vec<libc::timer_t>);

impl Drop for Timers {
    fn drop(&mut self) {
        for timer in &self.0 {
            // Safety: the timer exists.
            unsafe { libc::timer_delete(*timer) };
        }
        // Safety: the signal is ignored from now on, though one may be pending.
        unsafe { libc::signal(libc::SIGPROF, libc::SIG_IGN) };
    }
}

/// The samples of a run.
pub struct Samples {
    /// The instruction pointers, of all threads at the same intervals.
    pub addresses: Vec<usize>,
    /// Number of threads.
    pub threads: usize,
}

/// Runs a function, and returns its result with the instruction pointers at regular intervals, whether a thread computes or
/// waits.
///
/// # Errors
/// If the system has no such timers.
pub fn sampled<T>(run: impl FnOnce() -> T) -> io::Result<(T, Samples)> {
    TAKEN.store(0, Ordering::SeqCst);
    let timers = start()?;
    let threads = timers.0.len();
    let result = run();
    drop(timers);
    let count = TAKEN.load(Ordering::SeqCst).min(MAX_SAMPLES);
    let addresses = SAMPLES[..count].iter().map(|sample| sample.load(Ordering::SeqCst));
    Ok((result, Samples { addresses: addresses.collect(), threads }))
}

/// Starts a timer for each thread.
fn start() -> io::Result<Timers> {
    // Safety: zero is a valid value of this structure of the system.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = take as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // Safety: the handler has the signature of one with information, and only stores to atomics.
    if unsafe { libc::sigaction(libc::SIGPROF, &action, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut timers = Timers(vec![]);
    // Safety: it has no conditions.
    start_of(unsafe { libc::gettid() }, &mut timers)?;
    for thread in pooled() {
        // One that has ended since is not sampled.
        let _ = start_of(thread, &mut timers);
    }
    Ok(timers)
}

/// Starts a timer for a thread.
fn start_of(thread: libc::pid_t, timers: &mut Timers) -> io::Result<()> {
    // Safety: zero is a valid value of each of these structures of the system.
    let (mut event, mut times) = unsafe {
        (
            MaybeUninit::<libc::sigevent>::zeroed().assume_init(),
            MaybeUninit::<libc::itimerspec>::zeroed().assume_init(),
        )
    };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = libc::SIGPROF;
    event.sigev_notify_thread_id = thread;
    let mut timer: libc::timer_t = ptr::null_mut();
    // Safety: both pointers are valid.
    if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) } != 0 {
        return Err(io::Error::last_os_error());
    }
    timers.0.push(timer);
    times.it_interval.tv_nsec = INTERVAL;
    times.it_value.tv_nsec = INTERVAL;
    // Safety: the timer exists, and the pointers are valid or null as allowed.
    match unsafe { libc::timer_settime(timer, 0, &times, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The threads of pools, which the runtime names `irc-<n>`, but for the calling thread.
fn pooled() -> Vec<libc::pid_t> {
    // Safety: it has no conditions.
    let own = unsafe { libc::gettid() };
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads = tasks.filter_map(|task| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let number = name.trim().strip_prefix("irc-")?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        task.file_name().to_str()?.parse().ok().filter(|thread| *thread != own)
    });
    threads.collect()
}

/// The handler: stores the interrupted instruction pointer.
extern "C" fn take(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // Safety: the system passes the context of the interrupted thread.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize;
    let index = TAKEN.fetch_add(1, Ordering::Relaxed);
    if let Some(sample) = SAMPLES.get(index) {
        sample.store(at, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn threads_of_a_pool_are_sampled() {
        let pool = irc_runtime::pool_of(2).expect("a thread");
        // A thread has its name once it runs.
        let started = Instant::now();
        while pooled().is_empty() && started.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        let begin = Instant::now();
        let work = |_| while begin.elapsed() < Duration::from_millis(100) {};
        let ((), samples) = sampled(|| pool.run(2, &work)).expect("timers");
        // Those of other tests that run at the same time may be, too.
        assert!(samples.threads >= 2, "{}", samples.threads);
    }

    #[test]
    fn the_time_of_a_loop_is_sampled() {
        let begin = Instant::now();
        let wait = || while begin.elapsed() < Duration::from_millis(200) {};
        let ((), samples) = sampled(wait).expect("a timer");
        let addresses = samples.addresses;
        assert!(addresses.len() > 10, "{}", addresses.len());
        assert!(addresses.iter().all(|sample| *sample != 0));
    }
}
