//! Programs of the published schedules equal the published listings, and are valid by the verifier.

use crate::support::{corpus, diagnostics, layers, listing, open, plan};
use irc_npu::{Program, same};
use irc_npu_sim::cycles::{self, Options};

/// Network, batch, number of instructions of its listing that are reproduced, of how many; the listings
/// of the last two are not in the corpus.
const PUBLISHED: [(&str, &str, usize); 5] = [
    ("int8_resnet34.sim", "b1", 544),
    ("int8_resnet34.sim", "b4", 567),
    ("int8_resnet50.sim", "b1", 742),
    ("int8_resnet34.sim", "b16", 1267),
    ("int8_resnet50.sim", "b4", 779),
];

#[test]
fn published_listings_come_out_equal() {
    let Some(folder) = corpus() else { return };
    for (network, batch, count) in PUBLISHED {
        let name = format!("{network}_{batch}");
        let path = format!("single_core/{network}_quanti_{batch}_c1_bw16_asm.txt");
        let path = folder.join(path);
        let ours = program(&folder, network, batch);
        assert_eq!(ours.len(), count, "{name}");
        if !path.is_file() {
            println!("{name}: {count} instructions, no listing to compare with");
            continue;
        }
        let theirs = listing(&open(&path));
        let pairs = ours.cores[0].code.iter().zip(&theirs.cores[0].code);
        let equal = pairs.filter(|(a, b)| same(a, b)).count();
        println!("{name}: {equal} of {} instructions are equal", theirs.len());
        assert_eq!((equal, theirs.len()), (count, count), "{name}");
    }
}

#[test]
fn programs_of_published_schedules_are_right() {
    let Some(folder) = corpus() else { return };
    for (network, batch, _) in PUBLISHED {
        let found = diagnostics(&program(&folder, network, batch));
        // The published programs have vector operations without a batch.
        let other = found.iter().find(|diagnostic| diagnostic.code != "npu-vector-batch");
        assert_eq!(other, None, "{network} {batch}: {} diagnostics", found.len());
    }
}

fn program(folder: &std::path::Path, network: &str, batch: &str) -> Program {
    let stem = folder.join(format!("single_core/{network}_quantized_{batch}"));
    let file = |end: &str| open(std::path::Path::new(&format!("{}{end}", stem.display())));
    let schedule = plan(&file("_c1_bw16_stschedule.json"));
    let frontend = layers(&file(".json"));
    irc_npu_emit::emit(&schedule, Some(&frontend)).expect("a schedule that can be emitted")
}

/// The published traces: network, batch, cycles of the last instruction's end.
const TRACES: [(&str, &str, u64); 5] = [
    ("int8_resnet34.sim", "b1", 1_922_067),
    ("int8_resnet34.sim", "b4", 4_280_215),
    ("int8_resnet34.sim", "b16", 16_230_844),
    ("int8_resnet50.sim", "b1", 2_545_655),
    ("int8_resnet50.sim", "b4", 5_470_662),
];

#[test]
fn programs_take_the_cycles_of_the_traces() {
    let Some(folder) = corpus() else { return };
    for (network, batch, published) in TRACES {
        let stem = folder.join(format!("single_core/{network}_quantized_{batch}"));
        let path = format!("{}_c1_bw16_stschedule.json", stem.display());
        let schedule = plan(&open(std::path::Path::new(&path)));
        let workloads = schedule.cores[0].workloads.iter();
        let times = workloads
            .map(|workload| ((0, workload.workload_id as i32), workload.time as f64))
            .collect();
        let options = Options { times, ..Options::default() };
        let timing = cycles::run(&program(&folder, network, batch), &options).expect("a timing");
        let error = timing.cycles as f64 / published as f64 - 1.0;
        println!("{network} {batch}: {} of {published}, {:+.4} %", timing.cycles, 100.0 * error);
        assert!(error.abs() < 1e-4, "{network} {batch}: {error}");
    }
}
