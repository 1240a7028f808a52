//! The page of buffers over time.

use crate::support::{Network, corpus, data};
use irc_npu::access::Space;
use irc_npu_network::{layer_names, workload_times};
use irc_npu_sim::{
    cycles::{self, Options, Timing},
    html,
    residency::residents,
};

fn timing(network: &Network) -> Timing {
    let options = Options { times: workload_times(&network.schedule), ..Options::default() };
    cycles::run(&network.program, &options).expect("a timing")
}

fn page(network: &Network) -> String {
    let timing = timing(network);
    let names = layer_names(&network.schedule, network.frontend.as_ref());
    html::write(&network.program, &timing, &names)
}

#[test]
fn every_layer_has_its_result_on_the_page() {
    let network = Network::open(&data("small.schedule.json"), Some(&data("small.frontend.json")));
    let page = page(&network);
    let frontend = network.frontend.expect("layers");
    for (name, _) in &frontend.layers {
        assert!(page.contains(&format!("<title>result of {name}\n")), "{name}");
    }
    assert!(page.contains("loaded for Quantize_0\n1600 bytes"));
    assert!(page.contains("core 0, WL0") && page.contains("weights for Gemm_9\n"));
}

/// In schedules of one core all tensors are contiguous, so no two occupy the same byte at the same time.
#[test]
fn residents_of_a_published_schedule_are_apart() {
    let Some(folder) = corpus() else { return };
    let file = |end: &str| folder.join(format!("single_core/int8_resnet50.sim_quantized_b4{end}"));
    let network = Network::open(&file("_c1_bw16_stschedule.json"), Some(&file(".json")));
    let all = residents(&network.program.cores[0], &timing(&network).times[0]);
    assert!(all.len() > 100, "{}", all.len());
    for (i, a) in all.iter().enumerate() {
        for b in all[..i].iter().filter(|b| a.space == b.space && a.space == Space::L2) {
            let in_time = a.time.start < b.time.end && b.time.start < a.time.end;
            let in_space = a.bytes.0 < b.bytes.1 && b.bytes.0 < a.bytes.1;
            assert!(!(in_time && in_space), "{a:?}\n{b:?}");
        }
    }
}

#[test]
fn pages_of_published_schedules_stay_small() {
    let Some(folder) = corpus() else { return };
    let single =
        |end: &str| folder.join(format!("single_core/int8_resnet50.sim_quantized_b4{end}"));
    let several = folder.join("multi_core/gir_goog_b1_4x4.json.gz");
    let networks = [
        Network::open(&single("_c1_bw16_stschedule.json"), Some(&single(".json"))),
        Network::open(&several, None),
    ];
    for network in networks {
        let page = page(&network);
        println!("{} cores: {} bytes", network.program.cores.len(), page.len());
        assert!(page.len() < 5 << 20);
    }
}
