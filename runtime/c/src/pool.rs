//! Threads of the caller.
use irc_runtime::Pool;
use std::ffi::c_void;

/// A task of a call: `task(data, index)`.
pub type irc_task = unsafe extern "C" fn(data: *mut c_void, index: u32);

/// Threads of the caller, which run the tasks of parallel calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct irc_pool {
    /// Passed to `run`; must be valid as long as the contexts of the pool exist.
    pub user: *mut c_void,
    /// Number of tasks that run at once, at least 1.
    pub threads: u32,
    /// Runs `task(data, 0)` to `task(data, tasks - 1)`, each once and on a thread of its own, concurrently, as
    /// tasks may wait for each other; returns when all have finished. `tasks` is at most `threads`. Several
    /// threads may call it at once.
    pub run: Option<
        unsafe extern "C" fn(user: *mut c_void, tasks: u32, task: irc_task, data: *mut c_void),
    >,
}

// Safety: the header states what callers must ensure.
unsafe impl Send for irc_pool {}
// Safety: as above.
unsafe impl Sync for irc_pool {}

impl Pool for irc_pool {
    fn threads(&self) -> usize {
        self.threads.max(1) as usize
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let mut task = task;
        let Some(run) = self.run else { return (0..tasks).for_each(task) };
        // Safety: the data are a task, which lives until all have run.
        unsafe { run(self.user, tasks as u32, call, (&raw mut task).cast()) };
    }
}

unsafe extern "C" fn call(data: *mut c_void, index: u32) {
    // Safety: the data are what `run` passed.
    let task = unsafe { *data.cast::<&(dyn Fn(usize) + Sync)>() };
    task(index as usize);
}
