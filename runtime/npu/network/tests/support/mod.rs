//! Networks, and Python for evaluating them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use irc_diag::{Sink, Source, render};
use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::{Schedule, Workload};
use irc_gemini_format::{Options, frontend, schedule, source};
use irc_npu::registers::Registers;
use irc_npu::verify::{self, Machine};
use irc_npu::{Op, Program};
use irc_npu_network::Layout;

/// The folder of the published files; `None`, with a printed line, if it is absent.
#[allow(dead_code, reason = "not every test file reads the corpus")]
pub fn corpus() -> Option<PathBuf> {
    let default = || root().join("../shared/corpus");
    let folder = std::env::var_os("IRC_CORPUS").map_or_else(default, PathBuf::from).join("gemini");
    if !folder.is_dir() {
        println!("skipped: no corpus at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// A file of this crate.
#[allow(dead_code, reason = "not every test file reads them")]
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A valid schedule, with its program, which must be correct.
pub struct Network {
    #[allow(dead_code, reason = "not every test file looks into schedules")]
    pub schedule: Schedule,
    #[allow(dead_code, reason = "not every test file looks into layers")]
    pub frontend: Option<Frontend>,
    #[allow(dead_code, reason = "not every test file looks into layouts")]
    pub layout: Layout,
    pub program: Program,
}

impl Network {
    pub fn open(plan: &Path, layers: Option<&Path>) -> Self {
        let schedule = sound(&open(plan), schedule::parse);
        let frontend: Option<Frontend> = layers.map(|path| sound(&open(path), frontend::parse));
        let layout = Layout::new(&schedule, frontend.as_ref()).expect("a layout");
        let program = irc_npu_emit::emit(&schedule, frontend.as_ref()).expect("a program");
        let mut sink = Sink::new();
        verify::verify(&program, None, &Machine::default(), &mut sink);
        // The published programs contain vector operations without a batch.
        let other =
            sink.diagnostics().iter().find(|diagnostic| diagnostic.code != "npu-vector-batch");
        assert_eq!(other, None, "{}", plan.display());
        Self { schedule, frontend, layout, program }
    }
}

impl Network {
    /// The windows of products and poolings over their inputs, as JSON: kernel, stride and
    /// padding along rows and columns, by layer.
    #[allow(dead_code, reason = "not every test file asks")]
    pub fn windows(&self) -> String {
        let all = self.schedule.workloads().map(|(_, _, workload)| workload);
        let by_id: BTreeMap<i64, &Workload> =
            all.map(|workload| (workload.workload_id, workload)).collect();
        let mut windows = BTreeMap::new();
        for core in &self.program.cores {
            let mut registers = Registers::default();
            for instruction in &core.code {
                registers.write(instruction).expect("registers");
                let moves = match (&instruction.op, &registers.pe_tp, &registers.vp_tp) {
                    (Op::PeConv(op), Some(tp), _) => {
                        let stride = registers.pe_pm.as_ref().expect("parameters").stride;
                        (tp.kernel, stride, [op.sphi, op.spwi])
                    }
                    (Op::VpPool(op), _, Some(tp)) => (tp.kernel, tp.stride, [op.iph, op.ipw]),
                    _ => continue,
                };
                let workload = by_id[&i64::from(instruction.origin.wkl)];
                let windows = windows.entry(workload.layer_name.as_str());
                windows.or_insert_with(|| absolute(workload, moves));
            }
        }
        let line = |(name, windows): (&&str, &[[i64; 3]; 2])| format!("{name:?}: {windows:?}");
        let lines: Vec<String> = windows.iter().map(line).collect();
        format!("{{{}}}", lines.join(", "))
    }
}

/// Kernel, stride and padding, from the first window that a workload reads.
fn absolute(
    workload: &Workload,
    (kernel, stride, first): ([u32; 2], [u32; 2], [i32; 2]),
) -> [[i64; 3]; 2] {
    let read = workload.ifmaps()[0].extent();
    [0, 1].map(|axis| {
        let (made, _) = workload.extent.axis(axis + 2);
        let (from, _) = read.axis(axis + 2);
        let (kernel, stride) = (i64::from(kernel[axis]), i64::from(stride[axis]));
        [kernel, stride, made * stride - from - i64::from(first[axis])]
    })
}

fn open(path: &Path) -> Source {
    let bytes = std::fs::read(path).expect("a readable file");
    source(&path.display().to_string(), &bytes).expect("a valid file")
}

type Parse<T> = fn(&Source, &Options, &mut Sink) -> Option<T>;

fn sound<T>(source: &Source, parse: Parse<T>) -> T {
    let mut sink = Sink::new();
    let read = parse(source, &Options::default(), &mut sink);
    read.unwrap_or_else(|| panic!("{}", render(source, &sink.into_diagnostics(), false, 100)))
}

/// Python with packages; `None`, with a printed line, if there is none.
#[allow(dead_code, reason = "not every test file runs Python")]
pub fn python(packages: &str) -> Option<Command> {
    let python = root().join("target/venv/bin/python");
    let python = std::env::var_os("IRC_PYTHON").map_or(python, PathBuf::from);
    let imports = Command::new(&python).args(["-c", &format!("import {packages}")]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        println!(
            "skipped: no Python with {packages} at {}; ./irc-dev setup makes one",
            python.display()
        );
        return None;
    }
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}
