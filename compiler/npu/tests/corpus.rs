//! Programs of the published schedules: the published listings, and right by the verifier.

mod support;

use irc_npu::Program;
use support::{corpus, findings, layers, listing, open, plan, same};

/// Network, batch, and instructions of its listing that come out equal, of how many; the listings
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
        let found = findings(&program(&folder, network, batch));
        // Vector operations without a batch are how the published programs are.
        let other = found.iter().find(|finding| finding.code != "npu-vector-batch");
        assert_eq!(other, None, "{network} {batch}: {} findings", found.len());
    }
}

fn program(folder: &std::path::Path, network: &str, batch: &str) -> Program {
    let stem = folder.join(format!("single_core/{network}_quantized_{batch}"));
    let file = |end: &str| open(std::path::Path::new(&format!("{}{end}", stem.display())));
    let schedule = plan(&file("_c1_bw16_stschedule.json"));
    let frontend = layers(&file(".json"));
    irc_npu_emit::emit(&schedule, Some(&frontend)).expect("a schedule that can be emitted")
}
