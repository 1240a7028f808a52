//! Samples of the instruction pointer of the calling thread, taken by a timer's signal.

use std::{
    io,
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

/// A running timer; dropping it ends it.
struct Timer(libc::timer_t);

impl Drop for Timer {
    fn drop(&mut self) {
        // Safety: the timer exists, and the signal is ignored from now on, though one may be pending.
        unsafe {
            libc::timer_delete(self.0);
            libc::signal(libc::SIGPROF, libc::SIG_IGN);
        }
    }
}

/// Runs a function, and returns its result with the instruction pointers at regular intervals.
///
/// # Errors
/// If the system has no such timers.
pub fn sampled<T>(run: impl FnOnce() -> T) -> io::Result<(T, Vec<usize>)> {
    TAKEN.store(0, Ordering::SeqCst);
    let timer = start()?;
    let result = run();
    drop(timer);
    let count = TAKEN.load(Ordering::SeqCst).min(MAX_SAMPLES);
    let samples = SAMPLES[..count].iter().map(|sample| sample.load(Ordering::SeqCst));
    Ok((result, samples.collect()))
}

fn start() -> io::Result<Timer> {
    // Safety: zero is a valid value of each of these structures of the system.
    let (mut action, mut event, mut times) = unsafe {
        (
            MaybeUninit::<libc::sigaction>::zeroed().assume_init(),
            MaybeUninit::<libc::sigevent>::zeroed().assume_init(),
            MaybeUninit::<libc::itimerspec>::zeroed().assume_init(),
        )
    };
    action.sa_sigaction = take as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // Safety: the handler has the signature of one with information, and only stores to atomics.
    if unsafe { libc::sigaction(libc::SIGPROF, &action, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = libc::SIGPROF;
    // Safety: it has no conditions.
    event.sigev_notify_thread_id = unsafe { libc::gettid() };
    let mut timer: libc::timer_t = ptr::null_mut();
    // Safety: both pointers are valid.
    if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let timer = Timer(timer);
    times.it_interval.tv_nsec = INTERVAL;
    times.it_value.tv_nsec = INTERVAL;
    // Safety: the timer exists, and the pointers are valid or null as allowed.
    match unsafe { libc::timer_settime(timer.0, 0, &times, ptr::null_mut()) } {
        0 => Ok(timer),
        _ => Err(io::Error::last_os_error()),
    }
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
    fn the_time_of_a_loop_is_sampled() {
        let begin = Instant::now();
        let wait = || while begin.elapsed() < Duration::from_millis(200) {};
        let ((), samples) = sampled(wait).expect("a timer");
        assert!(samples.len() > 10, "{}", samples.len());
        assert!(samples.iter().all(|sample| *sample != 0));
    }
}
