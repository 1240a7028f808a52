//! A run allocates nothing. A test without a harness: the allocator counts for the whole process, and a
//! harness has threads of its own.

mod support;

use irc_runtime::{Context, ContextOptions, Inline, Model, Pool, ThreadPool};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use support::{bytes_of, expected, floats, model, ramp};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// Safety: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // Safety: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // Safety: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let model = model("no_allocation");
    // One pool after the other: threads that start allocate, beside whatever runs meanwhile.
    check(&model, Arc::new(Inline));
    check(&model, Arc::new(ThreadPool::new(3).expect("threads")));
}

fn check(model: &Arc<Model>, pool: Arc<dyn Pool>) {
    let threads = pool.threads();
    let options = ContextOptions { pool, ..ContextOptions::default() };
    let mut context = Context::new(model, &options).expect("memory");
    let x = ramp(16, 0.5);
    let bytes = bytes_of(&x);
    // The first launch wakes threads that have never run.
    context.run().expect("a run");
    let before = COUNT.load(Ordering::Relaxed);
    for _ in 0..3 {
        context.set_input(0, &bytes).expect("an input");
        context.run().expect("a run");
    }
    let output = context.output(1).expect("an output");
    assert_eq!(COUNT.load(Ordering::Relaxed), before, "{threads} threads");
    assert_eq!(floats(output), expected(&x)[1]);
    println!("a run with {threads} threads allocates nothing");
}
