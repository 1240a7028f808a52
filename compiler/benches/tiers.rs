//! What each code generator takes, as processor time: `cargo bench -p irc --bench tiers`.
//!
//! For the models of `tests/models` and, when `IRC_CORPUS` names it, some of the corpus: the median
//! of several compilations of the whole file, and of code generation from the lowered module alone.
//! Processor time, of all threads and of the linker, is the same on a machine that is busy. With the
//! number of repetitions as its argument.
use irc::{
    Backend, CompileOptions, ImportOptions, Session, Target,
    codegen::{Output, compile},
};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

const CORPUS: [&str; 6] = [
    "softmax_fp16_inplace",
    "layernorm",
    "rope",
    "matmul_bf16_nn_nt_tn_tt",
    "cast_table",
    "mlp_train_step",
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let repetitions = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(5);
    println!("| model | LLVM: code | whole | Quick: code | whole | code | whole |");
    println!("|---|---|---|---|---|---|---|");
    for path in models() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a readable model");
        let [llvm, quick] =
            [Backend::LLVM, Backend::QUICK].map(|backend| measure(&text, backend, repetitions));
        let ratio = |of: fn(&Times) -> Duration| {
            of(&llvm).as_secs_f64() / of(&quick).as_secs_f64().max(1e-9)
        };
        println!(
            "| `{}` | {} | {} | {} | {} | {:.1} | {:.1} |",
            name.trim_end_matches(".model.json"),
            shown(llvm.code),
            shown(llvm.whole),
            shown(quick.code),
            shown(quick.whole),
            ratio(|times| times.code),
            ratio(|times| times.whole),
        );
    }
}

fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let folder = std::fs::read_dir(root.join("tests/models")).expect("the repository's models");
    let files = folder.map(|entry| entry.expect("a readable folder").path());
    let mut found: Vec<_> =
        files.filter(|path| path.to_string_lossy().ends_with(".model.json")).collect();
    found.sort();
    let corpus = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let of_corpus = CORPUS.iter().filter_map(|name| {
        let path = corpus.as_ref()?.join("ark").join(format!("{name}.model.json"));
        path.is_file().then_some(path)
    });
    found.extend(of_corpus);
    found
}

struct Times {
    code: Duration,
    whole: Duration,
}

fn measure(text: &str, backend: Backend, repetitions: usize) -> Times {
    let options = CompileOptions::from(Target::host().with_backend(backend));
    let imports = ImportOptions::default();
    let whole = median(repetitions, || {
        let session = Session::new();
        let model = session.import_bytes("model.json", text.to_owned().into(), &imports);
        model.and_then(|model| model.library(&options)).expect("the model compiles");
    });
    let session = Session::new();
    let model = session.import_bytes("model.json", text.to_owned().into(), &imports);
    let lowered = model.and_then(|model| model.stage("llvm", &options)).expect("the model lowers");
    let context = irc_dialects::new_context();
    let module = irc_mlir::parse_module(&context, &lowered).expect("what was printed parses");
    let code = median(repetitions, || {
        compile(&module, &options.target, Output::Object).expect("the module compiles");
    });
    Times { code, whole }
}

fn median(repetitions: usize, mut work: impl FnMut()) -> Duration {
    // The first fills caches that later ones find full.
    work();
    let mut times: Vec<Duration> = (0..repetitions.max(1))
        .map(|_| {
            let before = processor_time();
            work();
            processor_time() - before
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// What all threads of this process, and the processes that it waited for, have computed.
fn processor_time() -> Duration {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .map(|who| {
            // Safety: all zeros is such a value, and the call fills it.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(who, &mut usage);
                usage
            };
            [usage.ru_utime, usage.ru_stime]
                .map(|time| {
                    Duration::new(
                        time.tv_sec.unsigned_abs(),
                        time.tv_usec.unsigned_abs() as u32 * 1000,
                    )
                })
                .iter()
                .sum::<Duration>()
        })
        .iter()
        .sum()
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
