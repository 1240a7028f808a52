//! Determines which constants of a graph are arguments instead of ops.
use super::masks::causal;
use irc_tl::{Constant, Graph, Node, NodeKind, SymbolSource, TensorType, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::rc::Rc;

/// Maximum size in bytes of constants that are ops.
const SMALL: usize = 1024;

/// The large constants of a graph and its nested graphs, each once: the table that `tl.weight` numbers.
pub fn weights(graph: &Graph) -> Vec<Constant> {
    Weights::of(graph).table
}

/// The weights of a program, and the weights that each of its graphs uses.
pub struct Weights<'g> {
    /// Each large constant once.
    pub table: Vec<Constant>,
    numbers: BTreeMap<Identity, usize>,
    /// Per graph, by address, the result of [`Weights::used`]; the graphs stay borrowed meanwhile.
    used: BTreeMap<usize, Rc<[usize]>>,
    graphs: PhantomData<&'g Graph>,
}

/// What identifies a constant: the address of its elements and its type. Elements are not compared.
type Identity = (usize, TensorType);

fn identity(constant: &Constant) -> Identity {
    (constant.bytes.as_ptr() as usize, constant.ty.clone())
}

impl<'g> Weights<'g> {
    /// The weights of a graph and its nested graphs.
    pub fn of(graph: &'g Graph) -> Self {
        let (numbers, used) = (BTreeMap::new(), BTreeMap::new());
        let mut weights = Self { table: vec![], numbers, used, graphs: PhantomData };
        weights.collect(graph);
        weights
    }

    fn collect(&mut self, graph: &'g Graph) -> Rc<[usize]> {
        let address = std::ptr::from_ref(graph) as usize;
        if let Some(known) = self.used.get(&address) {
            return known.clone();
        }
        let mut used = BTreeSet::new();
        for node in live_nodes(graph) {
            match &node.kind {
                NodeKind::Constant(constant) if is_large(constant) => {
                    let next = self.table.len();
                    let number = *self.numbers.entry(identity(constant)).or_insert(next);
                    if number == next {
                        self.table.push(constant.clone());
                    }
                    used.insert(number);
                }
                NodeKind::If { then, otherwise } => {
                    used.extend(self.collect(then).iter());
                    used.extend(self.collect(otherwise).iter());
                }
                NodeKind::Loop { body, .. } => used.extend(self.collect(body).iter()),
                NodeKind::Call { body, .. } => used.extend(self.collect(body).iter()),
                _ => {}
            }
        }
        let used: Rc<[usize]> = used.into_iter().collect();
        self.used.insert(address, used.clone());
        used
    }

    /// The numbers of the weights that a graph of the program and its nested graphs use, in increasing order.
    pub fn used(&self, graph: &Graph) -> Rc<[usize]> {
        let address = std::ptr::from_ref(graph) as usize;
        self.used.get(&address).cloned().unwrap_or_default()
    }

    /// The number of a constant; `None` for one that is an op.
    pub fn number(&self, constant: &Constant) -> Option<usize> {
        self.numbers.get(&identity(constant)).copied()
    }
}

/// Whether a constant is an argument of the compiled program: it is large, and its elements are neither
/// all equal nor a causal mask.
pub fn is_large(constant: &Constant) -> bool {
    constant.bytes.len() > SMALL && splat(constant).is_none() && causal(constant).is_none()
}

/// The value of all elements of a constant, if they are equal and an `f64` represents it exactly.
pub fn splat(constant: &Constant) -> Option<f64> {
    let width = constant.ty.dtype.size();
    let (first, rest) = constant.bytes.split_at_checked(width)?;
    if !rest.chunks_exact(width).all(|element| element == first) {
        return None;
    }
    let one = TensorType::new(constant.ty.dtype, []);
    let one = Constant::new(one, constant.bytes.slice(..width));
    let tensor = one.tensor().ok()?;
    let value = tensor.get_f64(0);
    // Another bit pattern (a NaN with a payload) or a number beyond 53 bits is not a splat.
    let mut back = tensor.clone();
    back.set_f64(0, value);
    (back.bytes() == tensor.bytes()).then_some(value)
}

/// The nodes whose results are used by an output, a used symbol, or another such node.
pub fn live_nodes(graph: &Graph) -> Vec<&Node> {
    let mut needed: BTreeSet<ValueId> = graph.outputs.iter().map(|(_, value)| *value).collect();
    for symbol in &graph.symbols {
        let (SymbolSource::Element(value, _) | SymbolSource::Extent(value, _)) = symbol.source;
        needed.insert(value);
    }
    let mut live = vec![];
    for node in graph.nodes.iter().rev() {
        if node.results.iter().any(|result| needed.contains(result)) {
            needed.extend(&node.operands);
            live.push(node);
        }
    }
    live.reverse();
    live
}
