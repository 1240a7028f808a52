//! Sets of plans as JSON: those of this crate, and those of the corpus.

use std::collections::BTreeMap;
use std::path::Path;

use irc_ark_format::json;
use irc_ark_format::model::{self, Model, Options};
use irc_ark_format::plan;
use irc_diag::{Diagnostic, Sink, Source};
use serde_json::Value;

use crate::support::corpus;

/// The plans of all ranks of a world, with the model of the first if there is one.
#[derive(Clone)]
pub struct Set {
    /// Their source.
    pub name: String,
    /// The plans, by rank.
    pub plans: Vec<Value>,
    /// The model that the first computes.
    pub model: Option<Model>,
}

impl Set {
    fn new(name: &str, plans: &[&str], model: Option<&str>) -> Self {
        let read = |text: &&str| serde_json::from_str(text).expect("JSON");
        let parse = |text| {
            let source = Source::new("model", text);
            let document = model::parse(&source, &Options::default(), &mut Sink::new());
            document.expect("a valid model").model
        };
        Set { name: name.into(), plans: plans.iter().map(read).collect(), model: model.map(parse) }
    }

    /// All errors that `irc check` finds in the plans.
    pub fn errors(&self) -> Vec<Diagnostic> {
        let texts: Vec<String> = self.plans.iter().map(Value::to_string).collect();
        let mut found = vec![];
        let mut plans = vec![];
        for text in &texts {
            let mut sink = Sink::new();
            plans.extend(plan::parse(&Source::new("plan", text), &Options::default(), &mut sink));
            found.extend(sink.into_diagnostics());
        }
        if plans.len() == texts.len() {
            let mut placed = |index: usize, mut diagnostic: Vec<Diagnostic>| {
                json::place(&texts[index], &mut diagnostic);
                found.extend(diagnostic);
            };
            if plans.len() > 1 {
                for (index, diagnostic) in plan::check_ranks(&plans) {
                    placed(index, vec![diagnostic]);
                }
            }
            if let Some(model) = &self.model {
                placed(0, plan::check_model(&plans[0], model));
            }
        }
        found.retain(Diagnostic::is_error);
        found
    }
}

macro_rules! data {
    ($name:literal) => {
        include_str!(concat!("../data/", $name))
    };
}

/// The sets of this crate.
pub fn carried() -> Vec<Set> {
    vec![
        Set::new("layer", &[data!("layer.plan.json")], Some(data!("layer.model.json"))),
        Set::new("fused softmax", &[data!("fused_softmax.plan.json")], None),
        Set::new("disjoint processors", &[data!("disjoint_processors.plan.json")], None),
        Set::new(
            "all-reduce",
            &[data!("all_reduce_rank0.plan.json"), data!("all_reduce_rank1.plan.json")],
            None,
        ),
        Set::new(
            "all-reduce by stores",
            &[
                data!("all_reduce_sm_rank0.plan.json"),
                data!("all_reduce_sm_rank1.plan.json"),
                data!("all_reduce_sm_rank2.plan.json"),
                data!("all_reduce_sm_rank3.plan.json"),
            ],
            None,
        ),
        Set::new(
            "packet reduce",
            &[data!("packet_reduce_rank0.plan.json"), data!("packet_reduce_rank1.plan.json")],
            None,
        ),
        Set::new(
            "reduce-send",
            &[data!("recv_reduce_send_rank0.plan.json"), data!("recv_reduce_send_rank1.plan.json")],
            None,
        ),
    ]
}

/// The sets of the corpus without errors; empty if the corpus is absent.
pub fn corpus() -> Vec<Set> {
    let Some((folder, paths)) = corpus::corpus() else { return vec![] };
    let mut worlds: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        // A large plan, or one for another architecture, tests nothing more, and is slow.
        let is_small = path.metadata().is_ok_and(|data| data.len() < 40_000);
        let is_other = name.contains(".cuda_90.") || name.contains(".rocm_942.");
        if !name.ends_with(".plan.json") || is_other || !is_small {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let plan = serde_json::from_str(&text).expect("JSON");
        let world = match name.split_once("_rank") {
            Some((model, rest)) => format!("{model}{}", rest.trim_start_matches(char::is_numeric)),
            None => name.to_string(),
        };
        worlds.entry(world).or_default().insert(name.to_string(), plan);
    }
    let set = |(name, plans): (String, BTreeMap<String, Value>)| {
        let model = read_model(&folder, &name);
        Set { name, plans: plans.into_values().collect(), model }
    };
    worlds.into_iter().map(set).filter(|set| set.errors().is_empty()).collect()
}

fn read_model(folder: &Path, plan: &str) -> Option<Model> {
    let name = plan.strip_suffix(".plan.json")?;
    let text = std::fs::read_to_string(folder.join(format!("{name}.model.json"))).ok()?;
    let document =
        model::parse(&Source::new("model", &text), &Options::default(), &mut Sink::new());
    document.map(|document| document.model)
}
