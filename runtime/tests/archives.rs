//! Archives run: ours from their library, TVM's linked first.

use crate::support::{
    bytes_of, changed, contents, context, corpus, expected, floats, link, link_archive, linked,
    model, npy, package, ramp, run, scratch, tar,
};
use bytes::Bytes;
use irc_mlf::read;
use irc_runtime::{
    Context, ContextOptions, Guard, Inline, Model, ModelError, OpenOptions, Pool, ThreadPool,
    context_bytes,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// Memory of a caller, aligned to 64 bytes.
#[repr(align(64))]
struct Line<const N: usize>([f32; N]);

impl<const N: usize> Line<N> {
    fn bytes(&self) -> usize {
        size_of_val(&self.0)
    }
}

#[test]
fn models_are_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Model>();
    sent::<Context>();
}

/// The carried file is what is built.
///
/// With `IRC_BLESS` set it is written instead.
#[test]
fn the_file_of_this_crate_is_exact() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/small.tar");
    let built = tar(&package(&contents()));
    if std::env::var_os("IRC_BLESS").is_some() {
        std::fs::write(&path, &built).expect("a file");
    }
    assert!(std::fs::read(&path).expect("a file") == built, "small.tar is not what is built");
}

#[test]
fn an_archive_runs_with_a_library_that_the_caller_linked() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let library = link("carried", &[data.join("small.c")], &[]);
    let options = OpenOptions { library: Some(&library), model: Some("default") };
    let model = Arc::new(Model::open(&data.join("small.tar"), options).expect("sound"));
    let x = ramp(16, 0.25);
    assert_eq!(run(&mut context(&model), &x), expected(&x));
    let without = Model::open(&data.join("small.tar"), OpenOptions::default());
    let message = without.err().expect("no library").to_string();
    assert!(message.contains("it has no shared library: link the objects"), "{message}");
}

#[test]
fn an_archive_runs_with_its_own_library() {
    let path = scratch("own.tar");
    std::fs::write(&path, tar(&linked("own", str::to_owned))).expect("a file");
    let model = Arc::new(Model::open(&path, OpenOptions::default()).expect("sound"));
    let interface = model.interface();
    let names: Vec<_> =
        interface.inputs.iter().map(|port| (&port.name[..], port.type_text())).collect();
    assert_eq!(names, [("x", "f32[2,8]".to_owned())]);
    let names: Vec<_> =
        interface.outputs.iter().map(|port| (&port.name[..], port.type_text())).collect();
    assert_eq!(names, [("left", "f32[2,2]".to_owned()), ("right", "f32[2,2]".to_owned())]);
    let mut context = context(&model);
    // Nothing of a run is left to the next.
    for step in [0.25, -1.0, 0.0, 0.25] {
        let x = ramp(16, step);
        assert_eq!(run(&mut context, &x), expected(&x), "step {step}");
    }
}

#[test]
fn models_with_equal_numbers_of_files_are_distinguished() {
    let twice = |source: &str| source.replace("2 * x[i", "4 * x[i");
    let (one, other) = (linked("one", str::to_owned), linked("other", twice));
    let open =
        |package| Arc::new(Model::from_package(package, OpenOptions::default()).expect("sound"));
    let (x, double) = (ramp(16, 0.25), ramp(16, 0.5));
    for _ in 0..3 {
        assert_eq!(run(&mut context(&open(&one)), &x), expected(&x));
        assert_eq!(run(&mut context(&open(&other)), &x), expected(&double));
    }
}

#[test]
fn an_unset_input_is_zero() {
    let mut context = context(&model("unset"));
    context.run().expect("a run");
    let [left, right] = expected(&[0.0; 16]);
    assert_eq!(floats(context.output(0).expect("an output")), left);
    assert_eq!(floats(context.output(1).expect("an output")), right);
}

#[test]
fn the_callers_memory_is_used_in_place() {
    let model = model("bound");
    let mut context = context(&model);
    let mut x = Line::<16>([0.0; 16]);
    let mut right = Line::<4>([7.0; 4]);
    let input = model.input("x").expect("an input");
    let output = model.output("right").expect("an output");
    // Safety: both outlive the context's runs.
    unsafe {
        context.bind_input(input, x.0.as_ptr().cast(), x.bytes()).expect("aligned");
        let bytes = right.bytes();
        context.bind_output(output, right.0.as_mut_ptr().cast(), bytes).expect("aligned");
    }
    for step in [0.5, -0.5] {
        x.0.copy_from_slice(&ramp(16, step));
        context.run().expect("a run");
        let [left, other] = expected(&x.0);
        assert_eq!(floats(context.output(0).expect("an output")), left);
        assert_eq!(right.0[..], other);
        assert_eq!(context.output(1).expect("an output").as_ptr(), right.0.as_ptr().cast());
    }
    // Both go back to the context.
    context.unbind_output(output).expect("an output");
    right.0 = [7.0; 4];
    let numbers = ramp(16, 1.0);
    assert_eq!(run(&mut context, &numbers), expected(&numbers));
    assert_eq!(right.0, [7.0; 4]);
}

#[test]
fn memory_that_does_not_fit_is_rejected() {
    let model = model("rejected");
    let mut context = context(&model);
    let mut line = Line::<32>([0.0; 32]);
    let memory: *mut u8 = line.0.as_mut_ptr().cast();
    // Safety: nothing is bound.
    let cases = unsafe {
        [
            (
                context.set_input(0, &[0; 60]),
                "input 'x': expected 64 bytes, f32[2,8], found 60 bytes",
            ),
            (context.set_input(1, &[0; 64]), "no input is named '1'; the inputs are x"),
            (context.bind_input(0, memory, 60), "found 60 bytes"),
            (context.bind_input(0, memory.add(4), 64), "not aligned to 64"),
            (context.bind_input(0, std::ptr::null(), 64), "not aligned to 64"),
            (
                context.bind_output(2, memory, 16),
                "no output is named '2'; the outputs are left, right",
            ),
            (context.bind_output(0, memory, 64), "output 'left': expected 16 bytes, f32[2,2]"),
            (context.set_input_shaped(0, &[4, 4], &[0; 64]), "found f32[4, 4]"),
            (model.input("y").map(drop), "no input is named 'y'; the inputs are x"),
            (context.output(9).map(drop), "no output is named '9'"),
        ]
    };
    for (result, words) in cases {
        let message = result.expect_err(words).to_string();
        assert!(message.contains(words), "{message}: {words}");
    }
    context.set_input_shaped(0, &[2, 8], &[0; 64]).expect("its shape");
}

#[test]
fn a_context_for_each_of_many_threads() {
    let model = model("threads");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let model = &model;
            scope.spawn(move || {
                let mut context = context(model);
                for round in 0..200 {
                    let x = ramp(16, 0.01 * (thread * 200 + round) as f32);
                    assert_eq!(run(&mut context, &x), expected(&x));
                }
            });
        }
    });
}

#[test]
fn tasks_run_on_the_pool_that_is_given() {
    let model = model("pool");
    for threads in 1..4 {
        let pool = Arc::new(ThreadPool::new(threads).expect("threads"));
        let options = ContextOptions { pool, ..ContextOptions::default() };
        let mut context = Context::new(&model, &options).expect("memory");
        for step in [0.25, -1.0] {
            let x = ramp(16, step);
            assert_eq!(run(&mut context, &x), expected(&x), "{threads} threads");
        }
    }
}

/// A pool that forgets a task, or runs one twice.
struct FailingPool(usize);

impl Pool for FailingPool {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, _tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            scope.spawn(|| task(self.0));
            task(1);
        });
    }
}

#[test]
fn a_pool_that_breaks_its_word_is_a_failure() {
    // Without a barrier, at which the task that runs would wait for the other.
    let no_barrier = |source: &str| {
        source.replace("if (__TVMBackendParallelBarrier(task, environment)) return -1;", "")
    };
    let package = linked("broken", no_barrier);
    let model = Arc::new(Model::from_package(&package, OpenOptions::default()).expect("sound"));
    for task in [1, 2, 99] {
        let options =
            ContextOptions { pool: Arc::new(FailingPool(task)), ..ContextOptions::default() };
        let mut context = Context::new(&model, &options).expect("memory");
        let message = context.run().expect_err("a task is missing").to_string();
        assert_eq!(message, "'tvmgen_default_dense' failed: 1 of 2 parallel tasks ended well");
    }
    let options = ContextOptions { pool: Arc::new(Inline), ..ContextOptions::default() };
    Context::new(&model, &options).expect("memory").run().expect("one task is all");
}

#[test]
fn a_call_that_fails_says_why_and_the_next_run_is_whole() {
    let mut context = context(&model("fails"));
    let mut x = ramp(16, 0.5);
    x[0] = f32::NAN;
    context.set_input(0, &bytes_of(&x)).expect("an input");
    for _ in 0..2 {
        let message = context.run().expect_err("no number").to_string();
        assert_eq!(message, "'tvmgen_default_scale' failed: scale: the first number is none");
    }
    x[0] = 1.0;
    assert_eq!(run(&mut context, &x), expected(&x));
}

#[test]
fn a_status_without_a_message_is_reported() {
    let silent = |source: &str| source.replace("__TVMAPISetLastError(message);", "");
    let package = linked("silent", silent);
    let model = Arc::new(Model::from_package(&package, OpenOptions::default()).expect("sound"));
    let mut context = context(&model);
    context.set_input(0, &bytes_of(&[f32::NAN; 16])).expect("an input");
    let message = context.run().expect_err("no number").to_string();
    assert_eq!(message, "'tvmgen_default_scale' failed: it returned -1");
}

#[test]
fn code_that_asks_for_what_there_is_not_fails() {
    for (name, from, to, words) in [
        ("greedy", "uint64_t, int32_t, int32_t);", "uint64_t, int32_t, int32_t);", ""),
        ("more", "(1, 0, 16, 2, 32)", "(1, 0, 4096, 2, 32)", "requests 4096 bytes of workspace"),
        ("order", "rest) || __TVMBackendFreeWorkspace(1, 0, half)", "half)", "in reverse order"),
        (
            "absent",
            "NULL, \"tvmgen_default_relu\"",
            "NULL, \"tvm.contrib.blas\"",
            "`tvm.contrib.blas`",
        ),
    ] {
        let package = linked(name, |source| source.replace(from, to));
        let model = Arc::new(Model::from_package(&package, OpenOptions::default()).expect("sound"));
        let mut context = context(&model);
        match context.run() {
            Ok(()) => assert!(words.is_empty(), "{name}"),
            Err(error) => {
                let message = error.to_string();
                assert!(!words.is_empty() && message.contains(words), "{name}: {message}");
            }
        }
    }
    let more = |source: &str| source.replace("(1, 0, 16, 2, 32)", "(1, 0, 4096, 2, 32)");
    let package = linked("allowed", more);
    let model = Arc::new(Model::from_package(&package, OpenOptions::default()).expect("sound"));
    let options = ContextOptions { workspace_bytes: 4096, ..ContextOptions::default() };
    Context::new(&model, &options).expect("memory").run().expect("the caller gives more");
}

#[test]
fn code_for_another_processor_is_never_loaded() {
    // Loading this would end the process.
    let deadly = |source: &str| {
        format!(
            "{source}\n__attribute__((constructor)) static void die(void) {{ __builtin_trap(); }}"
        )
    };
    let package = linked("deadly", deadly);
    let rejected = |from: &str, to: &str| {
        let bytes = changed(&package, |members| {
            let metadata = String::from_utf8_lossy(&members["metadata.json"]).replace(from, to);
            members.insert("metadata.json".into(), metadata.into());
        });
        Model::from_bytes("deadly.tar", &bytes, OpenOptions::default()).err().expect("rejected")
    };
    let error = rejected("\"requires\": []", "\"requires\": [\"warp-drive\"]");
    assert!(matches!(error, ModelError::Processor { .. }));
    let message = error.to_string();
    let words = "deadly.tar was compiled for another processor: this one lacks warp-drive";
    assert_eq!(message, words);
    let error = rejected("shared/default.so\"", "shared/other.so\"");
    assert!(error.to_string().contains("[mlf-library]"), "{error}");
    // A library that exports what is requested, but is cut short.
    let bytes = changed(&package, |members| {
        let member = "codegen/host/shared/default.so";
        let cut = members[member].slice(..members[member].len() / 4);
        members.insert(member.into(), cut);
    });
    assert!(Model::from_bytes("cut.tar", &bytes, OpenOptions::default()).is_err());
}

#[test]
fn more_memory_than_allowed_is_rejected() {
    let package = linked("limit", str::to_owned);
    let model = Arc::new(Model::from_package(&package, OpenOptions::default()).expect("sound"));
    let context = context(&model);
    let options =
        |limit: u64| ContextOptions { memory_limit: Some(limit), ..ContextOptions::default() };
    let bytes = context_bytes(&package, None, &options(1 << 20)).expect("a size");
    assert_eq!(bytes, context.bytes() as u64);
    assert!(Context::new(&model, &options(bytes)).is_ok());
    let error = Context::new(&model, &options(bytes - 1)).err().expect("too little");
    let words = format!("the model needs {bytes} bytes of memory: {} bytes are allowed", bytes - 1);
    assert!(error.to_string().starts_with(&words), "{error}");
}

#[test]
fn giant_tensors_are_rejected_before_any_memory_is_taken() {
    let giant = edited("giant", |graph| {
        // Half a tebibyte between two calls.
        graph["attrs"]["shape"][1][3] = json!([1 << 18, 1 << 19]);
    });
    let options = ContextOptions { memory_limit: Some(1 << 30), ..ContextOptions::default() };
    let error = Context::new(&giant, &options).err().expect("too much").to_string();
    assert!(error.starts_with("the model needs 5497558"), "{error}");
}

/// The small model with a changed graph.
fn edited(name: &str, edit: impl FnOnce(&mut Value)) -> Arc<Model> {
    let package = linked(name, str::to_owned);
    let bytes = changed(&package, |members| {
        let mut names = vec![];
        change(members, "executor-config/graph/graph.json", |graph| {
            edit(graph);
            let outputs = graph["heads"].as_array().expect("a list");
            names.extend((0..outputs.len()).map(|output| format!("y{output}")));
        });
        change(members, "metadata.json", |metadata| {
            metadata["irc"]["models"]["default"]["outputs"] = json!(names);
            let memory = metadata["memory"].as_object_mut().expect("an object");
            memory.remove("sids");
            // Sizes of two devices are not checked: they were of the graph before.
            let main = memory["functions"]["main"].as_array_mut().expect("a list");
            main.push(main[0].clone());
        });
    });
    let (package, report) = read(name, &bytes);
    let package = package.unwrap_or_else(|| panic!("{report:#?}"));
    Arc::new(
        Model::from_package(&package, OpenOptions::default()).unwrap_or_else(|e| panic!("{e}")),
    )
}

fn change(members: &mut BTreeMap<String, Bytes>, path: &str, edit: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&members[path]).expect("JSON");
    edit(&mut value);
    members.insert(path.to_owned(), value.to_string().into());
}

#[test]
fn what_is_built_in_needs_no_code() {
    let (x, half) = (ramp(16, 0.5), ramp(16, 0.25));
    // The first call gives its input as it is, so that numbers are not doubled.
    for (name, storage) in [("__copy", 3), ("__nop", 3), ("__nop", 0)] {
        let model = edited(&format!("built_in{name}{storage}"), |graph| {
            graph["nodes"][3]["attrs"]["func_name"] = json!(name);
            graph["attrs"]["storage_id"][1][3] = json!(storage);
        });
        assert_eq!(run(&mut context(&model), &x), expected(&half), "{name} into {storage}");
    }
}

#[test]
fn outputs_that_are_inputs_or_twice_the_same_are_copied_to_their_memory() {
    let model = edited("again", |graph| {
        let heads = graph["heads"].as_array_mut().expect("a list");
        // The first output, once more, and the input.
        heads.insert(1, heads[0].clone());
        heads.insert(2, json!([0, 0, 0]));
    });
    assert_eq!(model.interface().outputs.len(), 4);
    let mut context = context(&model);
    let x = ramp(16, 0.5);
    context.set_input(0, &bytes_of(&x)).expect("an input");
    let [mut one, mut two] = [Line::<4>([0.0; 4]), Line::<4>([0.0; 4])];
    let mut input = Line::<16>([0.0; 16]);
    // Safety: all outlive the run.
    unsafe {
        context.bind_output(0, one.0.as_mut_ptr().cast(), 16).expect("aligned");
        context.bind_output(1, two.0.as_mut_ptr().cast(), 16).expect("aligned");
        context.bind_output(2, input.0.as_mut_ptr().cast(), 64).expect("aligned");
    }
    context.run().expect("a run");
    let [left, right] = expected(&x);
    assert_eq!([&one.0[..], &two.0[..]], [&left, &left]);
    assert_eq!(input.0[..], x);
    assert_eq!(floats(context.output(3).expect("an output")), right);
}

#[test]
fn models_of_tvm_compute_what_onnx_runtime_does() {
    for path in corpus() {
        let (package, _) =
            read(&path.display().to_string(), &std::fs::read(&path).expect("a file").into());
        let package = package.expect("sound");
        let library = link_archive(&path, &package);
        let options = OpenOptions { library: Some(&library), model: None };
        let model =
            Model::from_package(&package, options).unwrap_or_else(|error| panic!("{error}"));
        let model = Arc::new(model);
        let pool = Arc::new(ThreadPool::new(3).expect("threads"));
        for options in [
            ContextOptions::default(),
            ContextOptions { pool, ..ContextOptions::default() },
            ContextOptions { guard: Guard::Pages, ..ContextOptions::default() },
        ] {
            let mut context = Context::new(&model, &options).expect("memory");
            for _ in 0..2 {
                compare(&path, &mut context);
            }
        }
    }
}

/// Sets the inputs beside an archive, runs, and compares with the outputs there.
fn compare(path: &Path, context: &mut Context) {
    let folder = path.parent().expect("a folder");
    let prefix = if folder.ends_with("handmade") { "handmade_mlp." } else { "" };
    let model = context.model().clone();
    for (input, port) in model.interface().inputs.iter().enumerate() {
        let (_, bytes) = npy(&folder.join(format!("{prefix}in.{}.npy", port.name)));
        context.set_input(input, &bytes).unwrap_or_else(|error| panic!("{error}"));
    }
    context.run().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for output in 0..model.interface().outputs.len() {
        let (dtype, expected) = npy(&folder.join(format!("{prefix}out{output}.npy")));
        let found = context.output(output).expect("an output");
        assert_eq!(found.len(), expected.len());
        if dtype != "<f4" {
            assert_eq!(found, expected);
            continue;
        }
        let (found, expected) = (floats(found), floats(&expected));
        let largest = expected.iter().fold(0f32, |largest, each| largest.max(each.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            let error = (found - expected).abs();
            assert!(error <= 1e-4 * largest, "{}: {found} is not {expected}", path.display());
        }
    }
}
