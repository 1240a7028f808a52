//! Threads on which kernels have the same results.
use irc_runtime::{Pool, ThreadPool};
use std::sync::Arc;
use std::time::Duration;

/// Pools of some numbers of threads, and [`LastFirst`].
pub fn pools(threads: impl IntoIterator<Item = usize>) -> Vec<Arc<dyn Pool>> {
    let pool = |threads| Arc::new(ThreadPool::new(threads).unwrap()) as Arc<dyn Pool>;
    let last: Arc<dyn Pool> = Arc::new(LastFirst);
    threads.into_iter().map(pool).chain([last]).collect()
}

/// Threads of which the last one starts first, so that parts of a kernel that write the same elements do so in another order.
struct LastFirst;

impl Pool for LastFirst {
    fn threads(&self) -> usize {
        5
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        const STEP: Duration = Duration::from_millis(1);
        std::thread::scope(|scope| {
            for number in 0..tasks {
                scope.spawn(move || {
                    std::thread::sleep(STEP * (tasks - 1 - number) as u32);
                    task(number);
                });
            }
        });
    }
}
