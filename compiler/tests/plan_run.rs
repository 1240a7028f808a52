//! Plans run on the host, against the compiled model: plans that the repository's own models get
//! from both planners for every architecture, and those that ARK wrote for the corpus.

use crate::support::files::{corpus, models, name_of, plain_models, root};
use irc::{ImportOptions, Results, Session, Target, planner};
use irc_ark_format::{
    model::{self, Document},
    plan::{self, Architecture, Plan},
};
use irc_diag::{Sink, Source};
use irc_executor::{Kernels, Options, Rank};
use irc_tensor::{Tensor, Tolerance, compare, seed_for};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

type Buffers = BTreeMap<String, Tensor>;

/// Multiply-adds, and bytes of inputs, beyond which a model takes too long for a test.
const LIMITS: (u64, usize) = (4_000_000_000, 16 << 20);

/// Plans of the corpus that do not compute what their model does, and why.
const EXCEPTIONS: [(&str, &str); 0] = [];

/// A model, inputs for it, and what it makes of them.
struct Case {
    document: Document,
    session: Session,
    inputs: Buffers,
    expected: Buffers,
    /// Names of the buffers that nothing reads after their last write: every plan keeps these.
    outputs: Vec<String>,
}

impl Case {
    /// Compiles and runs a model; `None` when it is of several ranks, communicates or is large.
    fn of(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).unwrap();
        let source = Source::new("model.json", &text);
        let document = model::parse(&source, &model::Options::default(), &mut Sink::new()).unwrap();
        let nodes = || document.model.nodes.iter();
        if nodes().any(|node| node.op.kind.is_communication()) || nodes().next().is_none() {
            return None;
        }
        let session = Session::new();
        let import = |results| {
            let options = ImportOptions::default().results(results);
            session.import_bytes("model.json", text.clone().into(), &options).unwrap()
        };
        let model = import(Results::All);
        let work = model.explain_fusion(Target::host()).unwrap().before.work;
        let interface = model.interface().unwrap();
        let types = interface.inputs.iter().map(|port| port.tensor_type().unwrap());
        if work > LIMITS.0 || types.map(|ty| ty.byte_size().unwrap()).sum::<usize>() > LIMITS.1 {
            return None;
        }
        let compiled = model.library(Target::host()).unwrap();
        let inputs: Buffers = interface
            .inputs
            .iter()
            .filter(|port| !port.preserved)
            .map(|port| {
                let seed = seed_for(1, &port.name);
                let tensor = Tensor::random(port.tensor_type().unwrap(), seed).unwrap();
                (port.name.clone(), shrink(tensor))
            })
            .collect();
        let expected = compiled.runner().unwrap().run(inputs.clone()).unwrap();
        let outputs = import(Results::Outputs).interface().unwrap().outputs;
        let outputs = outputs.into_iter().map(|port| port.name).collect();
        Some(Self { document, session, inputs, expected, outputs })
    }

    /// Runs a plan; what differs from the model, in all it writes or only in its outputs.
    fn differences(&mut self, name: &str, plan: &Plan, is_complete: bool) -> Vec<String> {
        let source = Source::new(name, plan::write(plan));
        let compiled = match self.session.plan(source).compile(&Target::host()) {
            Ok(compiled) => compiled,
            Err(error) => return vec![format!("{name}: {error:?}")],
        };
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("plan.so");
        fs::write(&library, &compiled.library).unwrap();
        let kernels = Kernels::load(&library).unwrap();
        let rank = Rank::new(plan.clone(), &compiled.code, kernels).unwrap();
        let mut memories = [rank.memory(self.inputs.clone()).unwrap()];
        let options = Options { threads: 2, ..Options::default() };
        irc_executor::run(&[&rank], &mut memories, options).unwrap();
        let [memory] = memories;
        let found = rank.outputs(memory);
        let difference = |(buffer, expected): (&String, &Tensor)| {
            let Some(found) = found.get(buffer) else {
                return Some(format!("{name}: {buffer} is missing"));
            };
            let tolerance = Tolerance::of(expected.dtype());
            match compare(expected, found, tolerance) {
                Ok(result) if result.is_match() => None,
                Ok(result) => Some(format!("{name}: {buffer}: {result}")),
                Err(why) => Some(format!("{name}: {buffer}: {why}")),
            }
        };
        let expected = self.expected.iter();
        let expected = expected.filter(|(name, _)| is_complete || self.outputs.contains(name));
        expected.filter_map(difference).collect()
    }
}

/// Keeps long chains of half-precision products away from overflow, where rounding decides
/// between a number and infinity.
fn shrink(mut tensor: Tensor) -> Tensor {
    if tensor.dtype().is_float() {
        for index in 0..tensor.elements() {
            tensor.set_f64(index, tensor.get_f64(index) / 8.0);
        }
    }
    tensor
}

#[test]
fn plans_of_the_repositorys_models_agree() {
    let (mut ran, mut wrong) = (0, vec![]);
    for path in
        [root().join("examples"), root().join("tests/models")].iter().flat_map(|f| models(f))
    {
        let Some(mut case) = Case::of(&path) else { continue };
        let name = name_of(&path);
        for architecture in Architecture::ALL {
            for which in [planner::Planner::Irc, planner::Planner::Ark] {
                let target = planner::Target::new(architecture, None).unwrap();
                let options = planner::Options { planner: which, ..planner::Options::new(target) };
                // A device without a kernel has no plan.
                let Ok(planned) = planner::plan(&case.document.model, &options) else { continue };
                let label = format!("{name} {} {which:?}", architecture.name());
                // Ours puts values that only pass between tasks where others are dead.
                let is_complete = which == planner::Planner::Ark;
                wrong.extend(case.differences(&label, &planned.plan, is_complete));
                ran += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran >= 40, "only {ran} plans ran");
}

#[test]
fn plans_of_the_corpus_agree() {
    let models = plain_models(&corpus());
    if models.is_empty() {
        return;
    }
    let (mut ran, mut wrong) = (0, vec![]);
    for path in &models {
        let Some(mut case) = Case::of(path) else { continue };
        let base = path.to_string_lossy().replace(".model.json", "");
        for suffix in ["plan.json", "cuda_90.plan.json", "rocm_942.plan.json"] {
            let path = PathBuf::from(format!("{base}.{suffix}"));
            let name = name_of(&path);
            let known = EXCEPTIONS.iter().any(|(exception, _)| *exception == name);
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let options = model::Options { validate: false, ..Default::default() };
            let plan = plan::parse(&Source::new(&name, &text), &options, &mut Sink::new());
            let differences = case.differences(&name, &plan.unwrap(), true);
            match (known, differences.is_empty()) {
                (true, true) => wrong.push(format!("{name} agrees, and is listed as wrong")),
                (false, false) => wrong.extend(differences),
                _ => ran += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran >= 80, "only {ran} plans ran");
}
