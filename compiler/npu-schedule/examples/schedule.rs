//! Schedules a network, and prints the tree and, as comments, its segments and the cost:
//!
//!     cargo run --release -p irc-npu-schedule --example schedule -- NETWORK WIDTHxHEIGHT/STRIDE BATCH [BUDGET [THREADS [SEED [MODEL]]]]
//!
//! Networks are those of `irc_npu_cost::networks`, and `chain:N` of N convolutions.
//! The cost model is `set`, or `gemini`: two dies side by side, buffers of 2 MiB, DRAM of 4 bytes per cycle and core.

use irc_npu_cost::{
    Chiplets, Cost, Layer, Machine, Mesh, Network, Reads, Result as Costed, Shape, Window, networks,
};
use irc_npu_schedule::{Options, Segment, schedule};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Err(message) = run(&arguments) {
        eprintln!("{message}");
        std::process::exit(1);
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [network, mesh, batch, rest @ ..] = arguments else {
        return Err(
            "usage: schedule NETWORK WIDTHxHEIGHT/STRIDE BATCH [BUDGET [THREADS [SEED [MODEL]]]]"
                .into(),
        );
    };
    let text = |diagnostic: Box<irc_diag::Diagnostic>| {
        format!("{}: {} {}", diagnostic.code, diagnostic.message, diagnostic.notes.join(", "))
    };
    let network = match network.strip_prefix("chain:").map(str::parse) {
        Some(count) => chain(count.map_err(|_| "expected a number of layers")?),
        None => {
            let known = networks::ALL.into_iter().find(|(name, _)| name == network);
            known.ok_or_else(|| format!("no network {network}"))?.1()
        }
    };
    let network = network.map_err(text)?;
    let mesh = parse_mesh(mesh).ok_or("expected a mesh WIDTHxHEIGHT/STRIDE")?;
    let machine = match rest.get(3).map(String::as_str) {
        None | Some("set") => Machine::polar(mesh),
        Some("gemini") => Chiplets::new(mesh, [2, 1], 2 << 20, 4 * mesh.cores()).machine(),
        Some(model) => return Err(format!("expected set or gemini, found {model}")),
    };
    let number = |at: usize, else_: u64| match rest.get(at) {
        None => Ok(else_),
        Some(text) => text.parse().map_err(|_| format!("expected a number, found {text}")),
    };
    let batch = batch.parse().map_err(|_| "expected a number of images")?;
    let default = Options::default();
    let options = Options {
        budget: number(0, default.budget)?,
        threads: number(1, default.threads as u64)? as usize,
        seed: number(2, default.seed)?,
        ..default
    };
    let start = std::time::Instant::now();
    let found = schedule(&network, &machine, batch, &options).map_err(text)?;
    print!("{}", found.tree.text(&found.network));
    found.segments.iter().for_each(explain);
    let cost = found.evaluation.cost;
    println!(
        "# latency {} energy {:.6e} edp {:.6e} evaluations {} wall {:.1} s",
        cost.latency,
        cost.energy,
        cost.energy * cost.latency as f64,
        found.evaluations,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// A chain of convolutions of 3 by 3.
fn chain(layers: usize) -> Costed<Network> {
    let map = Shape::new(64, 14, 14);
    let mut network = Network::new("chain");
    for layer in 0..layers {
        let conv = Layer::conv(format!("conv{layer}"), 64, map, Window::square(3, 1));
        let before = layer.checked_sub(1);
        let external = before.is_none().then_some(map);
        network.add_reading(conv, Reads { inputs: before.as_slice(), external, weights: &[] })?;
    }
    Ok(network)
}

/// Prints a segment as comments, which readers of trees ignore.
fn explain(segment: &Segment) {
    let Cost { latency, energy, .. } = segment.cost;
    println!("# {}: {latency} cycles, {energy:.3e} pJ, limit: {:?}", segment.shape, segment.bound);
    if let Some(other) = &segment.runner_up {
        println!("#   instead of {}: {}", other.shape, other.reason);
    }
}

fn parse_mesh(text: &str) -> Option<Mesh> {
    let (size, stride) = text.split_once('/')?;
    let (width, height) = size.split_once('x')?;
    let number = |text: &str| text.parse().ok();
    Some(Mesh { width: number(width)?, height: number(height)?, stride: number(stride)? })
}
