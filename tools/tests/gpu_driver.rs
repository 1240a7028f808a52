//! Kernels for GPUs from the command line to the driver, on a driver that emulates a GPU (`irc-ptx-driver`).
use irc_tensor::{Tensor, write_npz};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_irc-driver")).ancestors().nth(2).expect("a folder").to_owned()
}

/// The folder with the libraries of the workspace, built once: cargo builds none for tests. With the packages and
/// features of the tests: for others, what the libraries depend on would be built again.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--workspace", "--lib", "--examples"]);
        if cfg!(feature = "mpi") {
            cargo.arg("--features=irc-executor/mpi,irc-tools/mpi");
        }
        let output = cargo.arg("--target-dir").arg(target()).current_dir(root()).output();
        let output = output.expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target().join("debug")
    })
}

/// A folder with the emulated driver under the name of the real one.
fn driver() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let library = libraries().join("libirc_emulated_cuda.so");
        let folder = tempfile::tempdir().expect("a folder");
        symlink(library, folder.path().join("libcuda.so.1")).expect("a link");
        folder
    });
    made.path()
}

fn irc(arguments: &[&str]) -> Command {
    let driver = Path::new(env!("CARGO_BIN_EXE_irc-driver"));
    let mut command = Command::new(driver.with_file_name("irc"));
    command.args(arguments);
    command
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the tool starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code().unwrap_or(-1), text(&stdout), text(&stderr))
}

/// Runs the tool, which must succeed.
fn succeed(arguments: &[&str]) -> String {
    let (code, out, err) = run(&mut irc(arguments));
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

/// Runs the tool with the emulated driver.
fn on_gpu(arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = irc(arguments);
    command.env("LD_LIBRARY_PATH", driver()).envs(variables.iter().copied());
    run(&mut command)
}

struct Files {
    folder: tempfile::TempDir,
    model: String,
}

impl Files {
    fn new(model: &str) -> Self {
        let model = root().join(model).display().to_string();
        Self { folder: tempfile::tempdir().expect("a folder"), model }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The model, compiled for a GPU.
    fn compiled(&self, name: &str) -> String {
        let path = self.path(name);
        let flags: &[&str] = if name.ends_with(".ptx") { &[] } else { &["--backend", "cuda"] };
        succeed(&[&["compile", &self.model, "-o", &path], flags].concat());
        path
    }
}

#[test]
fn kernels_run_by_the_driver_as_on_the_host() {
    let plans = tempfile::tempdir().expect("a folder");
    let plan = plans.path().join("softmax.plan.json").display().to_string();
    let model = root().join("examples/softmax.model.json").display().to_string();
    succeed(&["compile", &model, "-o", &plan, "--processors", "4"]);
    for model in ["examples/softmax.model.json", "examples/rmsnorm.model.json", &plan] {
        let files = Files::new(model);
        let expected = files.path("expected.npz");
        // ARK models have all buffers as results, and compiled ones their outputs.
        let results: &[&str] =
            if model.ends_with(".model.json") { &["--results", "outputs"] } else { &[] };
        let host = ["run", &files.model, "--seed", "3", "--outputs", &expected];
        succeed(&[&host[..], results].concat());
        for name in ["m.ptx", "m.so", "m.tar"] {
            let kernel = files.compiled(name);
            let arguments = ["run", &kernel, "--seed", "3", "--expected", &expected];
            let log = files.path(&format!("{name}.log"));
            let (code, out, err) =
                on_gpu(&arguments, &[("IRC_CUDA_LOG", &log), ("IRC_CUDA_PROCESSORS", "16")]);
            assert_eq!(code, 0, "{model} {name}: {err}");
            assert!(out.contains("expected buffers agree"), "{out}");
            let calls = fs::read_to_string(&log).expect("a log");
            let launches = calls.matches("cuLaunchCooperativeKernel").count();
            assert_eq!(launches, 1, "{calls}");
            // Everything is freed.
            assert!(calls.trim_end().ends_with("live=0 modules=0"), "{calls}");
            let emulated = [&arguments[..], &["--backend", "emulate", "--race-check"]].concat();
            assert!(succeed(&emulated).contains("expected buffers agree"));
            // The same directly from the model.
            let direct = ["run", &files.model, "--seed", "3", "--backend", "cuda"];
            let direct = [&direct[..], &["--expected", &expected], results].concat();
            let (code, _, err) = on_gpu(&direct, &[("IRC_CUDA_PROCESSORS", "16")]);
            assert_eq!(code, 0, "{err}");
        }
    }
}

#[test]
fn sizes_are_those_of_the_inputs() {
    let files = Files::new("examples/perceptron.onnx.pbtxt");
    let (inputs, expected) = (files.path("inputs.npz"), files.path("expected.npz"));
    let values: Vec<f32> = (0..5 * 4_u8).map(|at| f32::from(at) / 8.0).collect();
    let x = Tensor::from_values([5, 4], &values).expect("a tensor");
    let case = [("x".to_owned(), x)].into();
    write_npz(fs::File::create(&inputs).expect("a file"), &case).expect("written");
    succeed(&["run", &files.model, "--inputs", &inputs, "--outputs", &expected]);
    let emulated = ["run", &files.model, "--backend", "emulate", "--expected", &expected];
    let out = succeed(&[&emulated[..], &["--inputs", &inputs]].concat());
    assert!(out.contains("expected buffers agree"), "{out}");
    let (code, _, err) = run(&mut irc(&emulated));
    assert!(code == 1 && err.contains("--shape x="), "{err}");
}

#[test]
fn ranks_share_a_gpu_or_have_one_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let plans: Vec<String> = (0..2).map(|rank| path(&format!("rank{rank}.plan.json"))).collect();
    for (rank, plan) in plans.iter().enumerate() {
        let model = root().join(format!("tests/models/ranks/all_reduce_rank{rank}of2.model.json"));
        let model = model.display().to_string();
        succeed(&["compile", &model, "-o", plan]);
    }
    let (expected, kernel, library) = (path("expected.npz"), path("world.ptx"), path("world.so"));
    let separate = path("separate.ptx");
    succeed(&["run", &plans[0], &plans[1], "--seed", "3", "--outputs", &expected]);
    succeed(&["compile", &plans[0], &plans[1], "-o", &kernel]);
    succeed(&["compile", &plans[0], &plans[1], "-o", &library, "--backend", "cuda"]);
    succeed(&["compile", &plans[0], &plans[1], "-o", &separate, "--no-persistent"]);
    let entries = |file: &str| {
        let bytes = fs::read(file).expect("a kernel");
        String::from_utf8_lossy(&bytes).matches(".visible .entry").count()
    };
    assert_eq!([&kernel, &library].map(|file| entries(file)), [1, 1]);
    assert!(entries(&separate) > 1);
    // Two GPUs of a processor; two without access to each other's memory; one.
    let log = path("log");
    let machines = [("2", "1", "1", 2), ("2", "2", "0", 1), ("1", "2", "1", 1)];
    for (devices, processors, peers, gpus) in machines {
        for file in [&kernel, &library, &separate] {
            let _ = fs::remove_file(&log);
            let variables = [
                ("IRC_CUDA_DEVICES", devices),
                ("IRC_CUDA_PROCESSORS", processors),
                ("IRC_CUDA_PEERS", peers),
                ("IRC_CUDA_LOG", log.as_str()),
            ];
            let arguments = ["run", file, "--seed", "3", "--expected", &expected];
            let (code, out, err) = on_gpu(&arguments, &variables);
            assert_eq!(code, 0, "{devices} {file}: {err}");
            assert!(out.contains("6 of 6 expected buffers agree"), "{out}");
            let calls = fs::read_to_string(&log).expect("a log");
            let launches = calls.matches("cuLaunchCooperativeKernel").count();
            assert_eq!(launches, gpus * entries(file), "{calls}");
            let links = if gpus == 2 { 2 } else { 0 };
            assert_eq!(calls.matches("cuCtxEnablePeerAccess").count(), links, "{calls}");
            assert!(calls.trim_end().ends_with("live=0 modules=0"), "{calls}");
        }
    }
    // Blocks that do not run at once.
    let whole = path("whole.ptx");
    for plan in &plans {
        let text = fs::read_to_string(plan).expect("a plan");
        let wide = text.replacen("\"NumProcessors\": 1,", "\"NumProcessors\": 40,", 1);
        assert_ne!(text, wide);
        fs::write(plan, wide).expect("a file");
    }
    succeed(&["compile", &plans[0], &plans[1], "-o", &whole]);
    let variables = [("IRC_CUDA_DEVICES", "1"), ("IRC_CUDA_PROCESSORS", "2")];
    let (code, _, err) = on_gpu(&["run", &whole, "--seed", "3"], &variables);
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("the kernel needs 80 blocks that run at once, and this GPU runs 64"),
        "{err}"
    );
    assert!(
        err.contains("each of 2 ranks can have a GPU of its own, and this machine has 1"),
        "{err}"
    );
}

/// A product with a constant of some rows and columns, as ONNX.
fn product(extent: usize) -> String {
    let values: Vec<String> =
        (0..extent * extent).map(|at| format!("{}", (at * 7 % 13) as f32 - 6.0)).collect();
    let ty = |name: &str| {
        format!(
            "{{ name: \"{name}\" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: 4 }} \
             dim {{ dim_value: {extent} }} }} }} }} }}"
        )
    };
    format!(
        "ir_version: 8\nopset_import {{ version: 17 }}\ngraph {{ name: \"g\"\n\
         node {{ input: \"x\" input: \"w\" output: \"y\" op_type: \"MatMul\" }}\n\
         initializer {{ dims: {extent} dims: {extent} data_type: 1 name: \"w\" float_data: [{}] }}\n\
         input {}\noutput {}\n}}\n",
        values.join(", "),
        ty("x"),
        ty("y")
    )
}

/// A library of a plan with a kernel for each processor group, and with times.
#[test]
fn libraries_have_several_kernels_and_times() {
    let files = Files::new("examples/ffn.model.json");
    let [plan, library, expected, trace] =
        ["p.plan.json", "p.so", "e.npz", "t.json"].map(|name| files.path(name));
    succeed(&["compile", &files.model, "-o", &plan, "--processors", "4"]);
    let flags = ["--backend", "cuda", "--no-persistent", "--timestamps"];
    succeed(&[&["compile", &plan, "-o", &library], &flags[..]].concat());
    succeed(&["run", &plan, "--seed", "3", "--outputs", &expected]);
    let log = files.path("log");
    let arguments = ["run", &library, "--seed", "3", "--expected", &expected, "--trace", &trace];
    let variables = [("IRC_CUDA_LOG", log.as_str()), ("IRC_CUDA_PROCESSORS", "8")];
    let (code, out, err) = on_gpu(&arguments, &variables);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("expected buffers agree"), "{out}");
    let calls = fs::read_to_string(&log).expect("a log");
    assert!(calls.matches("cuLaunchCooperativeKernel").count() > 1, "{calls}");
    assert!(calls.trim_end().ends_with("live=0 modules=0"), "{calls}");
    let events = fs::read_to_string(&trace).expect("a trace");
    assert!(events.contains("matmul") && events.contains("processor 3, warp 0"), "{events}");
    // Code for processors has no such forms.
    let (code, _, err) = run(&mut irc(&["compile", &files.model, "-o", &library, "--timestamps"]));
    assert!(code == 2 && err.contains("--timestamps has no effect on .so"), "{err}");
}

#[test]
fn constants_are_copied_to_the_gpu_once() {
    let files = Files::new("examples/softmax.model.json");
    let [model, library] = ["m.onnx.pbtxt", "m.so"].map(|name| files.path(name));
    fs::write(&model, product(64)).expect("writable");
    succeed(&["compile", &model, "-o", &library, "--backend", "cuda"]);
    let expected = files.path("expected.npz");
    succeed(&["run", &model, "--seed", "3", "--outputs", &expected]);
    let (code, _, err) = on_gpu(&["run", &library, "--seed", "3", "--expected", &expected], &[]);
    assert_eq!(code, 0, "{err}");
    let log = files.path("log");
    let arguments = ["bench", &library, "--iterations", "3", "--json"];
    let (code, out, err) = on_gpu(&arguments, &[("IRC_CUDA_LOG", &log)]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"peak_gflops\": null"), "{out}");
    let device = out.lines().find(|line| line.contains("\"device_median_ms\": ")).expect("a time");
    assert!(!device.contains("null") && !device.contains(": 0.0,"), "{out}");
    let calls = fs::read_to_string(&log).expect("a log");
    let count = |call: &str| calls.lines().filter(|line| line.starts_with(call)).count();
    let launches = count("cuLaunchCooperativeKernel");
    assert!(launches >= 4, "{calls}");
    assert_eq!(count("cuModuleLoadDataEx"), 1);
    // The input before each launch, and once the constants.
    assert_eq!(count("cuMemcpyHtoD"), launches + 1, "{calls}");
}

#[test]
fn what_is_missing_is_said_in_a_sentence() {
    let files = Files::new("examples/softmax.model.json");
    let library = files.compiled("m.so");
    let cases = [
        (("IRC_CUDA_DEVICES", "0"), "there is no NVIDIA GPU on this machine"),
        (("IRC_CUDA_CAPABILITY", "7.5"), "for sm_80, and this GPU has compute capability 7.5"),
        (("IRC_CUDA_VERSION", "11.4"), "too old for the PTX: it is that of CUDA 11.4"),
        (("IRC_CUDA_MEMORY", "1000"), "bytes of memory of the GPU"),
        (("IRC_CUDA_PROCESSORS", "0"), "this GPU cannot run a block of the kernel"),
    ];
    for (variable, expected) in cases {
        let (code, out, err) = on_gpu(&["run", &library, "--seed", "1"], &[variable]);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains(expected) && err.contains("--backend emulate"), "{err}");
    }
    // A driver without the functions.
    let [folder, source] = ["old", "old.c"].map(|name| files.path(name));
    fs::create_dir(&folder).expect("a folder");
    fs::write(&source, "int cuInit(unsigned flags) { return (int)flags; }").expect("writable");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(format!("{folder}/libcuda.so.1")).arg(&source);
    assert_eq!(run(&mut cc).0, 0);
    let (code, _, err) =
        run(irc(&["run", &library, "--seed", "1"]).env("LD_LIBRARY_PATH", &folder));
    assert!(code == 1 && err.contains("too old: it has no function cuDriverGetVersion"), "{err}");
    // An exact architecture.
    let [ninety, plan] = ["90.so", "p.so"].map(|name| files.path(name));
    let flags = ["--backend", "cuda", "--arch", "CUDA_90"];
    succeed(&[&["compile", &files.model, "-o", &ninety], &flags[..]].concat());
    for capability in ["8.6", "10.0"] {
        let (code, _, err) = on_gpu(&["run", &ninety], &[("IRC_CUDA_CAPABILITY", capability)]);
        assert!(code == 1 && err.contains("the kernel is for sm_90a"), "{err}");
    }
    // Tensor maps, which need a newer driver than the instructions of the kernel.
    let wide = root().join("lit_tests/gpu/groups.onnx.pbtxt").display().to_string();
    let [ptx, expected] = ["tiles.ptx", "tiles.npz"].map(|name| files.path(name));
    succeed(&["compile", &wide, "-o", &ptx, "--arch", "CUDA_90"]);
    succeed(&["run", &wide, "--seed", "1", "--outputs", &expected]);
    let arguments = ["run", &ptx, "--seed", "1", "--expected", &expected];
    let of = |version| [("IRC_CUDA_CAPABILITY", "9.0"), ("IRC_CUDA_VERSION", version)];
    let (code, _, err) = on_gpu(&arguments, &of("12.4"));
    let sentence = "it is that of CUDA 12.4, and that of CUDA 12.5 is needed";
    assert!(code == 1 && err.contains(sentence), "{err}");
    let (code, out, err) = on_gpu(&arguments, &of("12.5"));
    assert!(code == 0 && out.contains("expected buffers agree"), "{err}");
    // A model is compiled for the GPU of the machine and its driver, or for one that is named.
    let direct = ["run", &wide, "--seed", "1", "--backend", "cuda", "--expected", &expected];
    for version in ["12.4", "12.5"] {
        let (code, out, err) = on_gpu(&direct, &of(version));
        assert!(code == 0 && out.contains("expected buffers agree"), "{err}");
    }
    let named = [&direct[..], &["--arch", "CUDA_90"]].concat();
    let (code, _, err) = on_gpu(&named, &of("12.4"));
    assert!(code == 1 && err.contains(sentence), "{err}");
    let (code, _, err) = on_gpu(&named, &[("IRC_CUDA_CAPABILITY", "8.0")]);
    assert!(code == 1 && err.contains("the kernel is for sm_90a, and this GPU"), "{err}");
    // A plan with more processors than the GPU runs at once.
    let model = root().join("formats/ark/tests/data/layer.plan.json").display().to_string();
    succeed(&["compile", &model, "-o", &plan, "--backend", "cuda"]);
    let (code, _, err) = on_gpu(&["run", &plan], &[("IRC_CUDA_PROCESSORS", "1")]);
    let is_full = code == 0 || err.contains("blocks that run at once, and this GPU runs");
    assert!(is_full, "{err}");
}

#[test]
fn a_fault_of_the_kernel_is_reported() {
    let files = Files::new("examples/softmax.model.json");
    let (ptx, wrong) = (files.compiled("m.ptx"), files.path("wrong.ptx"));
    let text = fs::read_to_string(&ptx).expect("PTX");
    // The output becomes too small.
    let (head, tail) = text.split_once("\"outputs\"").expect("a description");
    let text = format!("{head}\"outputs\"{}", tail.replacen("[16384]", "[1]", 1));
    fs::write(&wrong, text).expect("writable");
    let (code, _, err) = on_gpu(&["run", &wrong, "--seed", "1"], &[]);
    assert!(code == 1 && err.contains("running the kernel: the NVIDIA driver reports"), "{err}");
    // The record, which is left, states where each warp is.
    assert!(
        err.lines().any(|line| line.starts_with("  at ") && line.contains(": block ")),
        "{err}"
    );
}

#[test]
fn programs_in_c_run_kernels_by_the_same_calls() {
    let files = Files::new("examples/softmax.model.json");
    let folder = libraries().display().to_string();
    let program = files.path("run");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Werror", "-I"]).arg(root().join("runtime/c/include"));
    cc.arg(root().join("runtime/c/examples/run.c")).args(["-o", &program]);
    cc.args([&format!("-L{folder}"), &format!("-Wl,-rpath,{folder}"), "-lirc_runtime"]);
    let (code, _, err) = run(&mut cc);
    assert_eq!(code, 0, "{err}");
    for name in ["m.so", "m.tar"] {
        let kernel = files.compiled(name);
        let mut command = Command::new(&program);
        let (code, out, err) = run(command.arg(&kernel).env("LD_LIBRARY_PATH", driver()));
        assert_eq!(code, 0, "{err}");
        // The softmax of zeros.
        assert!(out.contains("f32 0.00390625 0.00390625"), "{out}");
        let (code, _, err) = run(Command::new(&program).arg(&kernel));
        let is_there = Path::new("/dev/nvidiactl").exists();
        assert!(is_there || (code == 1 && err.contains("no NVIDIA driver")), "{err}");
    }
}

#[test]
fn ptx_is_checked_and_its_instructions_are_counted() {
    let files = Files::new("examples/softmax.model.json");
    let ptx = files.compiled("m.ptx");
    assert_eq!(succeed(&["check", &ptx]), "");
    let counts = succeed(&["bench", &ptx, "--backend", "emulate", "--json"]);
    assert!(counts.contains("\"thread_instructions\"") && counts.contains("\"classes\""));
    let limited = ["run", &ptx, "--backend", "emulate", "--max-instructions", "100"];
    let (code, _, err) = run(&mut irc(&limited));
    assert!(code == 1 && err.contains("has not ended after 100 instructions"), "{err}");
    let (code, _, err) = run(&mut irc(&["run", &ptx, "--backend", "llvm"]));
    assert!(code == 2 && err.contains("it is a kernel for a GPU"), "{err}");
    let text = fs::read_to_string(&ptx).expect("PTX");
    let wrong = files.path("wrong.ptx");
    for (old, new, expected) in [
        ("\"entry\":\"irc_run\"", "\"entry\":\"other\"", "has no kernel 'other'"),
        ("\"constants\":true", "\"constants\":7", "[gpu-description]"),
        (
            "\"shared_bytes\":0",
            "\"shared_bytes\":999999",
            "bytes of shared memory, and a block of sm_80 has",
        ),
        ("ret;", "dance.u32;", "wrong.ptx:"),
    ] {
        if !text.contains(old) {
            continue;
        }
        fs::write(&wrong, text.replacen(old, new, 1)).expect("writable");
        let (code, _, err) = run(&mut irc(&["check", &wrong]));
        assert!(code == 1 && err.contains(expected), "{old}: {err}");
    }
}

/// The page of `tools/gpu/acceptance.sh`, with a driver that emulates the GPU, and without a GPU.
#[test]
fn the_acceptance_states_results_and_times() {
    let python = root().join("target/venv/bin/python");
    let python = std::env::var_os("IRC_PYTHON").map_or(python, PathBuf::from);
    if !python.exists() {
        println!("skipped: no Python at {}; ./irc-dev setup makes one", python.display());
        return;
    }
    let files = Files::new("examples/softmax.model.json");
    let [tools, out] = ["tools", "out"].map(|name| files.path(name));
    fs::create_dir(&tools).expect("a folder");
    let smi = format!("{tools}/nvidia-smi");
    let path = format!("{tools}:{}", std::env::var("PATH").expect("a path"));
    let accept = |model: &str| {
        let mut command = Command::new(root().join("tools/gpu/acceptance.sh"));
        let program = Path::new(env!("CARGO_BIN_EXE_irc-driver")).with_file_name("irc");
        command.args(["--out", &out, model]).env("PATH", &path).env("IRC", program);
        command.env("PYTHON", &python).env("LD_LIBRARY_PATH", driver());
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        run(&mut command)
    };
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::write(&smi, format!("#!/bin/sh\n{text}\n")).expect("writable");
        fs::set_permissions(&smi, fs::Permissions::from_mode(0o755)).expect("permitted");
    };
    write("exit 9");
    let (code, _, err) = accept(&files.model);
    let sentence = "acceptance.sh: there is no NVIDIA GPU with a driver on this machine";
    assert!(code == 1 && err.starts_with(sentence) && err.lines().count() == 1, "{err}");
    write("echo Emulated, 12.4, 8.0");
    let (code, page, err) = accept(&files.model);
    assert_eq!(code, 0, "{page}{err}");
    assert!(page.starts_with("# Kernels on Emulated, 12.4, 8.0\n"), "{page}");
    for case in ["| softmax | ok | ", "| softmax, plan | "] {
        let line = page.lines().find(|line| line.starts_with(case)).expect(case);
        let device = line.split('|').nth(3).expect("a time").trim();
        assert!(device.parse::<f64>().is_ok_and(|time| time > 0.0), "{line}");
    }
    let record = fs::read_to_string(format!("{out}/gpu.json")).expect("a record");
    assert!(record.contains("\"arch\": \"CUDA_80\"") && record.contains("\"device_ms\": "));
}
