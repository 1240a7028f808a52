//! Traffic over links and DRAM when cores share a mesh.

use crate::support::{Network, corpus, root};
use irc_npu_network::{mesh, workload_times};
use irc_npu_sim::cycles::{self, Options};

/// Cycles with a mesh, a lower bound for any program on it, and cycles without a mesh.
fn cycles(network: &Network, link: f64, dram: f64) -> [u64; 3] {
    let times = workload_times(&network.schedule);
    let mesh = mesh(&network.schedule, link, dram);
    let bound = mesh.clone().expect("a mesh");
    let options = Options { times, mesh, ..Options::default() };
    let shared = cycles::run(&network.program, &options).expect("a timing");
    let carried = shared.carried.expect("traffic");
    println!(
        "{} bytes of DRAM, {:?} over the busiest of {} links",
        carried.dram,
        carried.busiest(),
        carried.links.len()
    );
    let alone = Options { mesh: None, ..options };
    let alone = cycles::run(&network.program, &alone).expect("a timing").cycles;
    [shared.cycles, carried.bound(&bound), alone]
}

#[test]
fn no_run_is_faster_than_links_and_dram() {
    let small = root().join("formats/gemini/tests/data/two_cores.json");
    let mut networks = vec![(Network::open(&small, None), 0.05, 0.05)];
    if let Some(folder) = corpus() {
        // The rates of SET's published runs: 24 bytes over a link, 1.024 from DRAM for a core.
        for (name, cores) in [
            ("gir_resnet_b1_2x2.json", 4.0),
            ("gir_goog_b1_4x4.json.gz", 16.0),
            ("set_darknet_b1_4x4_r10_SET_IR.json.gz", 16.0),
        ] {
            let network = Network::open(&folder.join("multi_core").join(name), None);
            networks.push((network, 24.0, 1.024 * cores));
        }
    }
    for (network, link, dram) in networks {
        let [shared, bound, alone] = cycles(&network, link, dram);
        println!("{shared} cycles, at least {bound}; {alone} with nothing shared");
        assert!(shared >= bound && shared >= alone, "{shared}, {bound}, {alone}");
    }
}
