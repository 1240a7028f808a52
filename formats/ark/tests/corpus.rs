//! Every file written by ARK itself is read without a diagnostic and written back byte for byte.

use crate::support::corpus;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use irc_ark_format::model::{self, Options};
use irc_ark_format::plan::{self, Plan};
use irc_diag::{Sink, Source, render};

/// Files of the corpus whose name ends in `suffix`, sorted; empty if the corpus is absent.
fn corpus(suffix: &str) -> Vec<PathBuf> {
    let Some((folder, mut paths)) = corpus::corpus() else { return vec![] };
    paths.retain(|path| path.to_string_lossy().ends_with(suffix));
    assert!(!paths.is_empty(), "no *{suffix} in {}", folder.display());
    paths
}

fn source(path: &Path) -> Source {
    let bytes = std::fs::read(path).expect("a readable file");
    Source::from_bytes(path.to_string_lossy(), &bytes)
}

#[test]
fn models_are_read_and_written_back() {
    for path in corpus(".model.json") {
        let source = source(&path);
        let mut sink = Sink::new();
        let document = model::parse(&source, &Options::default(), &mut sink);
        let shown = render(&source, sink.diagnostics(), false, 120);
        assert!(shown.is_empty(), "{shown}");
        let document = document.expect("a model");
        assert_eq!(model::write(&document.model), source.text(), "{}", path.display());
        assert_eq!(document.origins.len(), document.model.nodes.len());
        for (index, origin) in document.origins.iter().enumerate() {
            let text = &source.text()[origin.offset..origin.offset + origin.len];
            let id = format!("\"Id\": {},", document.model.nodes[index].id);
            assert!(text.contains(&id), "origin of node {index} is {text}");
            assert_eq!(source.line_column(origin.offset), (origin.line, origin.column));
        }
    }
}

#[test]
fn plans_are_read_and_written_back() {
    for path in corpus(".plan.json") {
        let source = source(&path);
        let options = Options { validate: false, strict: true };
        let mut sink = Sink::new();
        let plan = plan::parse(&source, &options, &mut sink);
        let shown = render(&source, sink.diagnostics(), false, 120);
        assert!(shown.is_empty(), "{shown}");
        assert_eq!(plan::write(&plan.expect("a plan")), source.text(), "{}", path.display());
    }
}

/// Plans written by ARK's planner that ARK's code generator or compiler rejects.
const REJECTED: [(&str, &str); 4] = [
    ("matmul_fp32_m_gt_n.plan.json", "plan-matmul-kernel"),
    ("reduce_nokeep_2d.", "plan-reduce-keep-dim"),
    ("reduce_nokeep_3d_axis0.", "plan-reduce-keep-dim"),
    ("transpose_identity_perm.", "plan-transpose-identity"),
];

#[test]
fn plans_are_sound_but_those_ark_itself_rejects() {
    for path in corpus(".plan.json") {
        let source = source(&path);
        let mut sink = Sink::new();
        let plan = plan::parse(&source, &Options::default(), &mut sink);
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let rejected = REJECTED.iter().find(|(prefix, _)| name.starts_with(prefix));
        let codes: Vec<&str> =
            sink.diagnostics().iter().filter(|f| f.is_error()).map(|f| f.code).collect();
        let shown = render(&source, sink.diagnostics(), false, 120);
        match rejected {
            None => assert!(plan.is_some() && codes.is_empty(), "{shown}"),
            Some((_, code)) => assert_eq!(codes, [*code], "{shown}"),
        }
    }
}

#[test]
fn plans_of_all_ranks_agree() {
    let mut worlds: BTreeMap<String, Vec<Plan>> = BTreeMap::new();
    for path in corpus(".plan.json") {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let Some((model, rest)) = name.split_once("_rank") else { continue };
        let world = rest.split_once("of").map(|(_, world)| world).unwrap_or_default();
        let plan = plan::parse(&source(&path), &Options::default(), &mut Sink::new());
        let world = worlds.entry(format!("{model} of {world}")).or_default();
        world.push(plan.expect("a valid plan"));
    }
    for (name, plans) in worlds {
        let found = plan::check_ranks(&plans);
        // ARK signals once per task and waits once.
        let counts = name.starts_with("send_recv_sm");
        let is_known = |code| code == "plan-signal-count" && counts;
        let others: Vec<_> = found.iter().filter(|(_, f)| !is_known(f.code)).collect();
        assert!(others.is_empty(), "{name}: {others:#?}");
        assert_eq!(found.len(), if counts { 2 } else { 0 }, "{name}");
        assert_eq!(plans.len() as i64, plans[0].world_size, "{name}");
    }
}

#[test]
fn plans_compute_their_models() {
    for path in corpus(".model.json") {
        let document = model::parse(&source(&path), &Options::default(), &mut Sink::new());
        let model = document.expect("a valid model").model;
        let name = path.to_string_lossy();
        let stem = name.trim_end_matches(".model.json").trim_end_matches(".virtual");
        for arch in ["", ".cuda_90", ".rocm_942"] {
            let file = PathBuf::from(format!("{stem}{arch}.plan.json"));
            if !file.exists() {
                continue;
            }
            let options = Options { validate: false, strict: true };
            let plan = plan::parse(&source(&file), &options, &mut Sink::new()).expect("a plan");
            assert_eq!(plan::check_model(&plan, &model), [], "{} for {name}", file.display());
        }
    }
}
