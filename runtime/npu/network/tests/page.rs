//! The page of buffers over time.

use std::process::Command;

use crate::support::{Network, corpus, data, root};
use irc_npu::access::Space;
use irc_npu_network::{layer_names, mesh, segment_map, workload_times};
use irc_npu_sim::{
    cycles::{self, Options, Timing},
    html::{self, Page},
    residency::residents,
    segments::{SegmentTable, segment_table},
};

fn timing(network: &Network) -> Timing {
    let options = Options { times: workload_times(&network.schedule), ..Options::default() };
    cycles::run(&network.program, &options).expect("a timing")
}

fn two_cores() -> Network {
    Network::open(&root().join("formats/gemini/tests/data/two_cores.json"), None)
}

fn table(network: &Network, timing: &Timing, rates: (f64, f64)) -> SegmentTable {
    let mesh = mesh(&network.schedule, rates.0, rates.1);
    let times = workload_times(&network.schedule);
    let of = (&times, &Default::default(), mesh.as_ref());
    let map = segment_map(&network.schedule);
    segment_table(&network.program, timing, of, &map).expect("a table")
}

fn page(network: &Network) -> String {
    let timing = timing(network);
    let names = layer_names(&network.schedule, network.frontend.as_ref());
    let table = table(network, &timing, (24.0, 16.0));
    let mesh = mesh(&network.schedule, 24.0, 16.0);
    html::write(&Page {
        program: &network.program,
        timing: &timing,
        names: &names,
        table: &table,
        mesh: mesh.as_ref(),
    })
}

/// The data of a page.
fn data_of(page: &str) -> serde_json::Value {
    let (_, data) =
        page.split_once("<script id=\"data\" type=\"application/json\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("an end");
    serde_json::from_str(data).expect("JSON")
}

/// The number of tags with that name.
fn count(text: &str, tag: &str) -> usize {
    text.matches(&format!("<{tag} ")).count() + text.matches(&format!("<{tag}>")).count()
}

/// The part of a page under a heading.
fn part<'p>(page: &'p str, heading: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("<h2>{heading}</h2>")).expect("the heading");
    rest.split("<h2>").next().unwrap_or(rest)
}

#[test]
fn the_page_has_what_the_data_states() {
    let network = two_cores();
    let (page, timing) = (page(&network), timing(&network));
    let found = data_of(&page);
    assert_eq!(found["cycles"], timing.cycles);
    assert_eq!(found["cores"], serde_json::json!([1, 2]));
    let segments = found["segments"].as_array().expect("segments");
    assert_eq!(count(part(&page, "roofline of segments"), "tr"), segments.len() + 1);
    let simulated = segments.iter().map(|one| one["simulated"].as_u64().expect("a number"));
    assert_eq!(simulated.sum::<u64>(), timing.cycles);
    let mesh = part(&page, "mesh");
    assert_eq!(count(mesh, "line"), found["links"].as_array().expect("links").len());
    assert_eq!(count(mesh, "rect"), 2);
    assert!(part(&page, "engines").contains("<title>PE "));
}

#[test]
fn a_page_refers_to_no_other_file() {
    let network = two_cores();
    let page = page(&network);
    for reference in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn the_traffic_of_segments_is_that_of_the_simulation() {
    let network = two_cores();
    let options = Options {
        times: workload_times(&network.schedule),
        mesh: mesh(&network.schedule, 24.0, 16.0),
        ..Options::default()
    };
    let timing = cycles::run(&network.program, &options).expect("a timing");
    let table = table(&network, &timing, (24.0, 16.0));
    assert_eq!(Some(&table.carried), timing.carried.as_ref());
    assert!(table.segments.iter().all(|one| one.bound().0 > 0));
}

/// Opens a page in headless Chromium, if there is one: all parts are drawn, and nothing else is loaded.
#[test]
fn a_browser_draws_the_page() {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"];
    let given = std::env::var("IRC_CHROMIUM").ok();
    let all = given.iter().map(String::as_str).chain(names);
    let works = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let Some(browser) = all.into_iter().find(works) else {
        eprintln!("not run: no Chromium in PATH, and none named by IRC_CHROMIUM");
        return;
    };
    let network = two_cores();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    // The page measures itself: shapes outside of their pictures, or of no size, would not be seen.
    let measure = "<script>const seen = e => { const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0 };\
        document.title = ['#segments svg', '#mesh rect', '#engines rect', '#buffers rect']\
        .map(s => [...document.querySelectorAll(s)].filter(seen).length).join(' ') + ' ' +\
        performance.getEntriesByType('resource').length</script></body>";
    std::fs::write(&path, page(&network).replace("</body>", measure)).expect("a file");
    let arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"];
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let url = format!("file://{}", path.display());
    let output = Command::new(browser).args(arguments).args([profile, url]).output();
    let output = output.expect("the browser runs");
    let dom = String::from_utf8_lossy(&output.stdout);
    let (_, title) = dom.split_once("<title>").expect("a title");
    let (title, _) = title.split_once("</title>").expect("a title");
    let counts: Vec<usize> = title.split(' ').map(|one| one.parse().expect(title)).collect();
    let [segments, cores, engines, buffers, loaded] = counts[..] else { panic!("{title}") };
    assert!(segments > 0 && cores == 2 && engines > 4 && buffers > 4 && loaded == 0, "{title}");
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
