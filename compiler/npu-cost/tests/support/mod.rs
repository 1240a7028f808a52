//! The output of the authors' program, as stored in `tests/data`.

use std::path::PathBuf;

use irc_diag::{Sink, Source, render};
use irc_npu_cost::{
    Chiplets, Cost, DramKind, Energy, Interface, Machine, Mesh, Network, Objective, Placement,
    Tree, networks, parse, parse_placed,
};

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

/// A run of the program of Gemini.
pub struct PlacedRun {
    /// Name of the tree.
    pub name: String,
    /// Name of the network.
    pub network: String,
    /// The machine.
    pub machine: Machine,
    /// The tree with its placements, and the printed figures in comments.
    pub source: Source,
}

impl PlacedRun {
    /// The tree and the placement of each layer.
    pub fn tree(&self, network: &Network) -> (Tree, Vec<Option<Placement>>) {
        let mut sink = Sink::new();
        let tree = parse_placed(&self.source, network, &mut sink);
        tree.unwrap_or_else(|| panic!("{}", render(&self.source, sink.diagnostics(), false, 100)))
    }

    /// The numbers of the comments that begin with a word.
    pub fn comment(&self, word: &str) -> Vec<f64> {
        let lines = self.source.text().lines().filter_map(|line| line.strip_prefix("# "));
        let line = lines.filter_map(|line| line.strip_prefix(word)).next().expect("a comment");
        line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    }

    /// The delay and the energy of each line that states a node below the root.
    pub fn nodes(&self) -> Vec<(bool, u64, f64)> {
        let lines = self.source.text().lines().filter(|line| line.starts_with('\t'));
        let cost = |line: &str| {
            let (node, cost) = line.split_once('#')?;
            let (delay, energy) = cost.trim().split_once(' ')?;
            Some((node.starts_with("\t\t"), delay.parse().ok()?, energy.parse().ok()?))
        };
        lines.map(|line| cost(line).expect("the cost of a node")).collect()
    }
}

/// The runs of the program of Gemini.
pub fn placed_runs() -> Vec<PlacedRun> {
    rows("gemini.tsv").into_iter().map(|row| placed_run(&row)).collect()
}

fn placed_run(row: &[String]) -> PlacedRun {
    let whole = |at: usize| row[at].parse::<u64>().expect("a whole number");
    let (across, down) = row[3].split_once('x').expect("dies");
    let dies = [across, down].map(|count| count.parse().expect("a number of dies"));
    let machine = Chiplets {
        link: whole(6),
        die_link: whole(7),
        interface: Interface::named(&row[8]).expect("an interface"),
        memory: DramKind::named(&row[9]).expect("a DRAM"),
        is_7nm: row[10] == "7",
        ..Chiplets::new(mesh(&row[2]).expect("a mesh"), dies, whole(4), whole(5))
    };
    let file = data(&format!("gemini/{}.tree", row[0]));
    let text = std::fs::read_to_string(&file).expect("a tree");
    PlacedRun {
        name: row[0].clone(),
        network: row[1].clone(),
        machine: machine.machine(),
        source: Source::new(file.to_string_lossy(), text),
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
