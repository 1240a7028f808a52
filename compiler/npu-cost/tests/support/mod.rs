//! The output of the authors' program, as stored in `tests/data`.

use std::path::PathBuf;

use irc_diag::{Sink, Source, render};
use irc_npu_cost::{Cost, Energy, Machine, Mesh, Network, Objective, Tree, networks, parse};

/// A run of the authors' program.
pub struct Run {
    /// Name of the network.
    pub network: String,
    /// The mesh as text.
    pub mesh: String,
    /// The machine.
    pub machine: Machine,
    /// Images.
    pub batch: u64,
    /// The objective.
    pub objective: Objective,
    /// The search: `init`, `LP`, `LS`, `SET`.
    pub search: String,
    /// The printed figures.
    pub cost: Cost,
    /// File of the tree, with the schemes that were printed; `None` for initial trees.
    pub tree: Option<String>,
}

/// A row of the published table, for an initial tree.
pub struct Row {
    /// Name of the network.
    pub network: String,
    /// The mesh as text.
    pub mesh: String,
    /// The machine.
    pub machine: Machine,
    /// Images.
    pub batch: u64,
    /// Cycles.
    pub latency: u64,
    /// pJ times cycles, with four digits.
    pub product: f64,
}

impl Run {
    /// The tree with its schemes, if it is stored.
    pub fn tree(&self, network: &Network) -> Option<Tree> {
        let file = data(&format!("trees/{}", self.tree.as_ref()?));
        let text = std::fs::read_to_string(&file).expect("a tree");
        let (source, mut sink) = (Source::new(file.to_string_lossy(), text), Sink::new());
        let tree = parse(&source, network, &mut sink);
        Some(tree.unwrap_or_else(|| panic!("{}", render(&source, sink.diagnostics(), false, 100))))
    }
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn rows(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(data(name)).expect("a table");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split('\t').map(str::to_owned).collect()).collect()
}

/// Parses `WIDTHxHEIGHT/STRIDE`.
pub fn mesh(text: &str) -> Option<Mesh> {
    let (size, stride) = text.split_once('/')?;
    let (width, height) = size.split_once('x')?;
    let number = |text: &str| text.parse().ok();
    Some(Mesh { width: number(width)?, height: number(height)?, stride: number(stride)? })
}

/// Builds the network with a name.
pub fn network(name: &str) -> Option<Network> {
    let (_, build) = networks::ALL.into_iter().find(|(known, _)| *known == name)?;
    Some(build().expect("layers that match"))
}

/// The published table.
pub fn published() -> Vec<Row> {
    let row = |row: Vec<String>| Row {
        network: row[0].clone(),
        mesh: row[1].clone(),
        machine: Machine::polar(mesh(&row[1]).expect("a mesh")),
        batch: row[2].parse().expect("images"),
        latency: row[3].parse().expect("cycles"),
        product: row[4].parse().expect("a product"),
    };
    rows("published.tsv").into_iter().map(row).collect()
}

/// All runs.
pub fn runs() -> Vec<Run> {
    rows("runs.tsv").into_iter().map(|row| run(&row)).collect()
}

fn run(row: &[String]) -> Run {
    let number = |at: usize| row[at].parse::<f64>().expect("a number");
    let whole = |at: usize| row[at].parse::<u64>().expect("a whole number");
    let mesh = mesh(&row[1]).expect("a mesh");
    let mut machine = match row[2].as_str() {
        "polar" => Machine::polar(mesh),
        core => {
            assert_eq!(core, "eyeriss");
            Machine::eyeriss(mesh)
        }
    };
    machine.link_bandwidth = whole(3);
    let (energy, delay) = row[5].split_once(' ').expect("two powers");
    let power = |text: &str| text.parse().expect("a power");
    let parts = Energy {
        buffer: number(9),
        local: number(10),
        bus: number(11),
        compute: number(12),
        links: number(13),
        dram: number(14),
    };
    Run {
        network: row[0].clone(),
        mesh: row[1].clone(),
        machine,
        batch: whole(4),
        objective: Objective { energy: power(energy), delay: power(delay) },
        search: row[6].clone(),
        cost: Cost { latency: whole(7), energy: number(8), parts, traffic: whole(15) },
        tree: Some(row[16].clone()).filter(|file| file != "-"),
    }
}
