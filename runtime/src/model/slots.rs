//! Runtime functions for compiled code: workspace, threads, error messages.
//!
//! Code has slots for these functions: variables that a loader initialises. The functions find their
//! context by the calling thread.
use super::{
    packed::{Function, Value},
    workspace::Workspace,
};
use crate::Pool;
use std::{
    cell::{Cell, UnsafeCell},
    collections::BTreeMap,
    ffi::{CStr, c_char, c_void},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// The runtime functions' state during a run, during which it is not moved.
pub struct RuntimeServices {
    /// One workspace for each concurrent task.
    lanes: Box<[Lane]>,
    pool: Arc<dyn Pool>,
    functions: Arc<BTreeMap<String, Function>>,
    /// The last error message of the code.
    message: Mutex<Option<String>>,
}

struct Lane {
    workspace: UnsafeCell<Workspace>,
    is_taken: AtomicBool,
}

// Safety: the workspace of a lane is used only by the thread that has taken the lane.
unsafe impl Sync for Lane {}
// Safety: a workspace has pointers into memory that the context owns, independently of threads.
unsafe impl Send for Lane {}

/// The services of this thread.
#[derive(Clone, Copy)]
struct Current {
    services: *const RuntimeServices,
    lane: usize,
    is_task: bool,
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

/// Sets the services of this thread while it exists.
struct CurrentGuard(Option<Current>);

impl CurrentGuard {
    fn begin(current: Current) -> Self {
        CurrentGuard(CURRENT.replace(Some(current)))
    }
}

impl Drop for CurrentGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl RuntimeServices {
    /// Services with a workspace for each task of the pool.
    pub fn new(
        workspaces: impl Iterator<Item = Workspace>,
        pool: Arc<dyn Pool>,
        functions: Arc<BTreeMap<String, Function>>,
    ) -> Self {
        let lane = |workspace| Lane {
            workspace: UnsafeCell::new(workspace),
            is_taken: AtomicBool::new(false),
        };
        RuntimeServices {
            lanes: workspaces.map(lane).collect(),
            pool,
            functions,
            message: Mutex::new(None),
        }
    }

    /// Runs code with these services on this thread.
    pub fn serve<T>(&mut self, run: impl FnOnce() -> T) -> T {
        for lane in &mut self.lanes {
            lane.workspace.get_mut().clear();
        }
        let _serving = CurrentGuard::begin(Current { services: self, lane: 0, is_task: false });
        run()
    }

    /// The error message of the code, if any.
    pub fn take_message(&mut self) -> Option<String> {
        self.message.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Maximum number of bytes of workspace that a task used at once.
    pub fn peak(&mut self) -> usize {
        let peaks = self.lanes.iter_mut().map(|lane| lane.workspace.get_mut().peak());
        peaks.max().unwrap_or_default()
    }

    fn say(&self, message: String) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    /// Runs the tasks of a parallel call; returns whether all succeeded.
    fn launch(&self, tasks: usize, task: &(dyn Fn(usize) -> bool + Sync)) -> bool {
        let ran = AtomicUsize::new(0);
        self.pool.run(tasks, &|index| {
            let Some(lane) = self.lanes.get(index).filter(|_| index < tasks) else { return };
            // The launching thread waits, so its own lane is free. No index occurs twice.
            if lane.is_taken.swap(true, Ordering::Acquire) {
                return;
            }
            let current = Current { services: self, lane: index, is_task: true };
            let serving = CurrentGuard::begin(current);
            if task(index) {
                ran.fetch_add(1, Ordering::Relaxed);
            }
            drop(serving);
        });
        self.lanes.iter().for_each(|lane| lane.is_taken.store(false, Ordering::Release));
        let ran = ran.load(Ordering::Relaxed);
        if ran != tasks {
            let said = &mut *self.message.lock().unwrap_or_else(PoisonError::into_inner);
            said.get_or_insert_with(|| format!("{ran} of {tasks} parallel tasks ended well"));
        }
        ran == tasks
    }
}

/// Calls `serve` with the services of this thread and its workspace.
fn with<T>(serve: impl FnOnce(&RuntimeServices, &mut Workspace) -> T) -> Option<T> {
    let current = CURRENT.get()?;
    // Safety: a run waits for its code, so its services are alive.
    let services = unsafe { &*current.services };
    let lane = services.lanes.get(current.lane)?;
    // Safety: this thread owns the lane, and neither function below calls back.
    Some(serve(services, unsafe { &mut *lane.workspace.get() }))
}

extern "C" fn allocate_workspace(
    _device_type: i32,
    _device: i32,
    bytes: u64,
    _code: i32,
    _bits: i32,
) -> *mut c_void {
    let block = with(|services, workspace| {
        let block = workspace.take(bytes);
        if block.is_none() {
            let all = workspace.bytes();
            services.say(format!(
                "the code requests {bytes} bytes of workspace, but the archive states {all}"
            ));
        }
        block
    });
    block.flatten().map_or(std::ptr::null_mut(), |block| block.cast())
}

extern "C" fn free_workspace(_device_type: i32, _device: i32, block: *mut c_void) -> i32 {
    let is_given = with(|services, workspace| {
        let is_given = workspace.give(block.cast());
        if !is_given {
            services.say("the code does not release workspace in reverse order".into());
        }
        is_given
    });
    if is_given == Some(true) { 0 } else { -1 }
}

/// The shared state of the tasks of a launch, as the code sees it.
#[repr(C)]
struct Environment {
    sync: *const TaskBarrier,
    tasks: i32,
}

/// A barrier of the tasks of a launch.
#[derive(Default)]
struct TaskBarrier {
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// Whether a task has failed, and will not arrive.
    is_off: AtomicBool,
}

type Task = unsafe extern "C" fn(i32, *const Environment, *mut c_void) -> i32;

/// A pointer that tasks share.
#[derive(Clone, Copy)]
struct Shared<T>(T);

// Safety: code that runs in parallel is responsible for the data that it shares.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    fn get(&self) -> T {
        self.0
    }
}

extern "C" fn parallel_launch(task: Task, closure: *mut c_void, tasks: i32) -> i32 {
    let Some(current) = CURRENT.get() else { return -1 };
    // Safety: a run waits for its code, so its services are alive.
    let services = unsafe { &*current.services };
    let threads = services.lanes.len();
    let tasks = match usize::try_from(tasks) {
        // Within a task there are no further threads.
        _ if current.is_task => 1,
        Ok(0) | Err(_) => threads,
        Ok(tasks) => tasks.min(threads),
    };
    let meeting = TaskBarrier::default();
    let environment = Environment { sync: &meeting, tasks: tasks as i32 };
    let shared = Shared((&raw const environment, closure));
    let run = |index: usize| {
        let (environment, closure) = shared.get();
        // Safety: the code passed the function together with its closure.
        let is_fine = unsafe { task(index as i32, environment, closure) } == 0;
        if !is_fine {
            meeting.is_off.store(true, Ordering::Release);
        }
        is_fine
    };
    let is_fine = match current.is_task {
        true => run(0),
        false => services.launch(tasks, &run),
    };
    if is_fine { 0 } else { -1 }
}

extern "C" fn parallel_barrier(_task: i32, environment: *const Environment) -> i32 {
    // Safety: the code passes on the arguments of its task.
    let (meeting, tasks) = unsafe { (&*(*environment).sync, (*environment).tasks as usize) };
    let round = meeting.round.load(Ordering::Acquire);
    if meeting.arrived.fetch_add(1, Ordering::AcqRel) + 1 == tasks {
        meeting.arrived.store(0, Ordering::Relaxed);
        meeting.round.fetch_add(1, Ordering::Release);
        return 0;
    }
    while meeting.round.load(Ordering::Acquire) == round {
        if meeting.is_off.load(Ordering::Acquire) {
            return -1;
        }
        std::thread::yield_now();
    }
    0
}

extern "C" fn set_last_error(message: *const c_char) {
    if message.is_null() {
        return;
    }
    // Safety: the code passes a zero-terminated string.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    with(|services, _| services.say(message));
}

/// Finds a function by name for a later call by the code.
extern "C" fn function_from_environment(
    _module: *mut c_void,
    name: *const c_char,
    out: *mut *const c_void,
) -> i32 {
    // Safety: the code passes a zero-terminated string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let found = with(|services, _| {
        let found = services.functions.get(&*name).copied();
        if found.is_none() {
            services.say(format!("the code calls `{name}`, which this runtime does not have"));
        }
        found
    });
    let Some(function) = found.flatten() else { return -1 };
    // Safety: the code passes the destination of the function.
    unsafe { *out = function as *const c_void };
    0
}

extern "C" fn call_function(
    function: *const c_void,
    arguments: *mut Value,
    codes: *mut i32,
    count: i32,
    result: *mut Value,
    result_code: *mut i32,
) -> i32 {
    if function.is_null() {
        return -1;
    }
    // Safety: the code obtained the function from above, where all have this type.
    unsafe {
        let function = std::mem::transmute::<*const c_void, Function>(function);
        function(arguments, codes, count, result, result_code, std::ptr::null_mut())
    }
}

/// The slots by name, with their functions.
pub fn all() -> [(&'static str, *const c_void); 7] {
    [
        ("__TVMBackendAllocWorkspace", allocate_workspace as *const c_void),
        ("__TVMBackendFreeWorkspace", free_workspace as *const c_void),
        ("__TVMBackendParallelLaunch", parallel_launch as *const c_void),
        ("__TVMBackendParallelBarrier", parallel_barrier as *const c_void),
        ("__TVMAPISetLastError", set_last_error as *const c_void),
        ("__TVMBackendGetFuncFromEnv", function_from_environment as *const c_void),
        ("__TVMFuncCall", call_function as *const c_void),
    ]
}
