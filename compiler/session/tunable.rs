//! The kernels whose schedules can be measured.
use super::{queries::Fused, tuning::key};
use crate::{
    attributes::{Algorithm, GRAPH, KERNEL, Schedule},
    fusion::Kind,
    lowering::tl_to_graph::tl_to_graph,
    machine::in_context,
};
use irc_mlir::{attr, read};
use irc_tensor::Tensor;
use irc_tl::{Constant, Graph};
use std::sync::Arc;

/// A kernel whose schedule has choices.
#[derive(Clone, Debug)]
pub struct Tunable {
    /// Its name in a [`Tuning`](super::tuning::Tuning).
    pub key: String,
    /// What it computes, with random constants.
    pub graph: Graph,
    /// Number of launches in the program; in loops they may be more.
    pub launches: u64,
}

impl Tunable {
    /// Choices to measure; not all of them apply to every kernel.
    pub fn candidates(&self) -> Vec<Schedule> {
        let mut found = vec![];
        for algorithm in Algorithm::ALL.map(Some) {
            let of = Schedule { algorithm, ..Schedule::default() };
            found.push(of);
            found.extend(ROWS.map(|rows| Schedule { rows: Some(rows), ..of }));
            found.extend(DEPTHS.map(|depth| Schedule { depth: Some(depth), ..of }));
        }
        found
    }
}

/// Rows of tiles to measure.
const ROWS: [i64; 7] = [2, 4, 6, 7, 8, 10, 14];

/// Depths of blocks to measure.
const DEPTHS: [i64; 4] = [128, 256, 512, 2048];

/// The kernels of a program whose schedules have choices: products and convolutions of known sizes.
pub(crate) fn tunables(fused: &Fused) -> Vec<Tunable> {
    let tunable = |(symbol, text): (&String, &Arc<str>)| {
        let graph = graph_of(text)?;
        let launches = fused.uses.get(symbol).map_or(1, |used| used.launches);
        Some(Tunable { key: key(&name_of(symbol), text), graph, launches })
    };
    fused.kernels.iter().filter_map(tunable).collect()
}

/// The name of a kernel without the hash at the end of its symbol.
fn name_of(symbol: &str) -> String {
    symbol.rsplit_once('_').map_or(symbol, |(name, _)| name).to_owned()
}

/// The graph of the text of a kernel with a product or convolution, with random constants.
fn graph_of(text: &str) -> Option<Graph> {
    in_context(|context| {
        let module = irc_mlir::parse_module(context, text)?;
        let kernel = read::body_ops(module.as_operation()).into_iter().next()?;
        let info = KERNEL.read(&kernel).filter(|info| info.kind == Kind::Contraction.name())?;
        let (types, _) = read::signature(&kernel)?;
        let mut weights = vec![];
        let attributes = types.iter().enumerate().map(|(index, ty)| {
            if !info.constants.contains(&index) {
                return Some("{}".to_owned());
            }
            let ty = irc_dialects::tl::type_of(*ty).ok()?.known()?;
            weights.push(Constant::of(&Tensor::random(ty, index as u64).ok()?));
            Some(format!("{{tl.weight = {} : i64}}", weights.len() - 1))
        });
        let attributes: Vec<String> = attributes.collect::<Option<_>>()?;
        let attributes = attr::parse(context, &format!("[{}]", attributes.join(", ")));
        irc_mlir::set_attribute(kernel, "arg_attrs", attributes);
        GRAPH.write(kernel, ());
        tl_to_graph(module.as_operation(), &weights).ok()
    })
    .ok()
}
