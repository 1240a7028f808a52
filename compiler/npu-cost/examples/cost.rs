//! Prints the cost of schedules:
//!
//!     cargo run -p irc-npu-cost --example cost
//!     cargo run -p irc-npu-cost --example cost -- NETWORK WIDTHxHEIGHT/STRIDE BATCH [TREE [CORE]]
//!
//! Without arguments, prints the published table and the runs of its authors' program, as ratios of our
//! cost to theirs. With a network, prints the cost of a tree, or of the search's initial tree, by layer;
//! cores are `polar` or `eyeriss`.

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/support/mod.rs"]
mod support;

use irc_diag::{Sink, Source, render};
use irc_npu_cost::{
    Cost, Evaluation, Machine, Model, Network, Objective, initial, networks, parse,
};
use support::Run;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        [] => tables(),
        [network, mesh, batch] => layers(network, mesh, batch, None, "polar"),
        [network, mesh, batch, tree] => layers(network, mesh, batch, Some(tree), "polar"),
        [network, mesh, batch, tree, core] => layers(network, mesh, batch, Some(tree), core),
        _ => Err("usage: cost [NETWORK WIDTHxHEIGHT/STRIDE BATCH [TREE [CORE]]]".into()),
    };
    match result {
        Ok(text) => print!("{text}"),
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(1);
        }
    }
}

/// The published table and runs.
fn tables() -> Result<String, String> {
    let mut out =
        String::from("published: latency, cycles; energy times delay, pJ cycles; ours / theirs\n");
    for row in support::published() {
        let network = network(&row.network)?;
        let found = first(&network, &row.machine, Objective::EDP, row.batch)?.cost;
        let product = found.energy * found.latency as f64;
        out += &format!(
            "{:<11}{:<6} b{:<4}{:>12} {:.6}  {:>10.3e} {:.4}\n",
            row.network,
            row.mesh,
            row.batch,
            row.latency,
            found.latency as f64 / row.latency as f64,
            row.product,
            product / row.product,
        );
    }
    out += "\nruns: latency, cycles; energy, pJ; ours / theirs, and of the part with the largest difference\n";
    for run in support::runs() {
        let (ours, theirs) = (cost(&run)?, run.cost);
        out += &format!(
            "{:<11}{:<6} b{:<4}{:<6}{:>12} {:.6}  {:>10.4e} {:.15}  {:.15}\n",
            run.network,
            run.mesh,
            run.batch,
            run.search,
            theirs.latency,
            ours.latency as f64 / theirs.latency as f64,
            theirs.energy,
            ours.energy / theirs.energy,
            farthest(&ours, &theirs),
        );
    }
    Ok(out)
}

/// The ratio of the parts of energy that differ most.
fn farthest(ours: &Cost, theirs: &Cost) -> f64 {
    let parts = |cost: &Cost| {
        let parts = cost.parts;
        [parts.buffer, parts.local, parts.bus, parts.compute, parts.links, parts.dram]
    };
    let pairs = parts(ours).into_iter().zip(parts(theirs));
    let ratios = pairs.map(|(ours, theirs)| if ours == theirs { 1.0 } else { ours / theirs });
    ratios.fold(
        1.0,
        |far: f64, ratio| if (ratio - 1.0).abs() > (far - 1.0).abs() { ratio } else { far },
    )
}

fn cost(run: &Run) -> Result<Cost, String> {
    let network = network(&run.network)?;
    let Some(tree) = run.tree(&network) else {
        return Ok(first(&network, &run.machine, run.objective, run.batch)?.cost);
    };
    let mut model = Model::new(&network, &run.machine, run.objective)
        .map_err(|diagnostic| diagnostic.message)?;
    let found = model.evaluate(&tree.without_schemes()).map_err(|diagnostic| diagnostic.message)?;
    Ok(found.cost)
}

fn network(name: &str) -> Result<Network, String> {
    support::network(name).ok_or_else(|| {
        let known: Vec<&str> = networks::ALL.iter().map(|(name, _)| *name).collect();
        format!("no network {name}; there are {}", known.join(", "))
    })
}

fn first(
    network: &Network,
    machine: &Machine,
    objective: Objective,
    batch: u64,
) -> Result<Evaluation, String> {
    let text = |diagnostic: Box<irc_diag::Diagnostic>| {
        format!("{}: {} {}", diagnostic.code, diagnostic.message, diagnostic.notes.join(", "))
    };
    let mut model = Model::new(network, machine, objective).map_err(text)?;
    Ok(initial(&mut model, network, batch).map_err(text)?.1)
}

/// The cost of each layer of a tree, and of the whole.
fn layers(
    name: &str,
    mesh: &str,
    batch: &str,
    tree: Option<&str>,
    core: &str,
) -> Result<String, String> {
    let network = network(name)?;
    let mesh = support::mesh(mesh).ok_or("expected a mesh WIDTHxHEIGHT/STRIDE")?;
    let machine = match core {
        "polar" => Machine::polar(mesh),
        "eyeriss" => Machine::eyeriss(mesh),
        _ => return Err(format!("no core {core}; there are polar, eyeriss")),
    };
    let batch = batch.parse().map_err(|_| "expected a number of images")?;
    let found = match tree {
        None => first(&network, &machine, Objective::EDP, batch)?,
        Some(path) => of_file(&network, &machine, path)?,
    };
    Ok(listing(&network, &found))
}

fn of_file(network: &Network, machine: &Machine, path: &str) -> Result<Evaluation, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let (source, mut sink) = (Source::from_bytes(path, &bytes), Sink::new());
    let Some(tree) = parse(&source, network, &mut sink) else {
        return Err(render(&source, &sink.into_diagnostics(), false, 100));
    };
    let found = Model::new(network, machine, Objective::EDP);
    let found = found.and_then(|mut model| model.evaluate(&tree));
    found.map_err(|diagnostic| render(&source, &[*diagnostic], false, 100))
}

fn listing(network: &Network, found: &Evaluation) -> String {
    let mut out = String::from(
        "layer, images, cores, scheme: cycles, pJ (buffers, memories, buses, computing, links, DRAM)\n",
    );
    for layer in &found.layers {
        out += &format!(
            "{} {} {}..{} {}: {}\n",
            network.nodes()[layer.layer].layer.name,
            layer.batch,
            layer.cores.start,
            layer.cores.end,
            layer.scheme,
            line(&layer.cost),
        );
    }
    out + &format!("all: {}\n", line(&found.cost))
}

fn line(cost: &Cost) -> String {
    let parts = cost.parts;
    let each = [parts.buffer, parts.local, parts.bus, parts.compute, parts.links, parts.dram];
    let each: Vec<String> = each.iter().map(|part| format!("{part:.5e}")).collect();
    format!("{} {:.9e} ({})", cost.latency, cost.energy, each.join(" "))
}
