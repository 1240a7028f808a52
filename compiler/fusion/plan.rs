//! Chooses the kernels of a segment among the legal fusions.
//!
//! Extraction over a DAG is NP-hard, so the search is greedy: it starts from the most fused legal form of
//! every node, then forces single nodes to other forms, recomputes the forms of the nodes after them, and
//! accepts changes that reduce the total cost, until there are none or [`SEARCH_BUDGET`] is spent. A kernel
//! whose value is also computed inside another one becomes one more result of it, unless that creates a
//! cycle of kernels.
use super::{
    cost::{Cost, Priced, is_fused, kernel},
    form::{Form, Kind},
    segment::{Segment, Source},
};
use std::collections::BTreeMap;

/// Maximum number of visited nodes of the search, over all trials.
pub const SEARCH_BUDGET: usize = 400_000;

/// The cost of a violated hard constraint: more than the traffic of any program.
const BROKEN: u64 = 1 << 56;

/// One kernel of a plan, by indices in the segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The nodes whose values it writes, ascending.
    pub results: Vec<usize>,
    /// The nodes it computes, ascending.
    pub body: Vec<usize>,
    /// The form of the body of its last result.
    pub form: Form,
}

/// The kernels of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Per node: bit `k` is set if operand `k` is computed in the same kernel.
    pub masks: Vec<u32>,
    /// The form of every node's body.
    pub forms: Vec<Form>,
    /// The kernels, by their last result.
    pub kernels: Vec<Kernel>,
    /// Their cost.
    pub cost: Cost,
    /// Number of matmuls that more than one kernel computes.
    pub repeated_matmuls: u64,
}

impl Plan {
    fn total(&self) -> u64 {
        self.cost.total().saturating_add(self.repeated_matmuls.saturating_mul(BROKEN))
    }
}

/// Forms that single nodes are forced to take.
type Forced = BTreeMap<usize, u32>;

/// Searches for the cheapest plan.
pub fn search(segment: &Segment, variants: &[Vec<u32>]) -> Plan {
    let mut forced = Forced::new();
    let mut best = settle(segment, variants, &forced);
    let mut budget = SEARCH_BUDGET;
    while let Some((plan, node)) = best_step(segment, variants, &forced, &best, &mut budget) {
        forced.insert(node, plan.masks[node]);
        best = plan;
    }
    best
}

/// The cheapest plan with one more node forced, if it is cheaper than this plan; the first of several. If
/// the budget ends, the cheapest so far.
fn best_step(
    segment: &Segment,
    variants: &[Vec<u32>],
    forced: &Forced,
    plan: &Plan,
    budget: &mut usize,
) -> Option<(Plan, usize)> {
    let mut best: Option<(Plan, usize)> = None;
    let uses = uses(segment);
    for (node, choices) in variants.iter().enumerate() {
        for mask in choices.iter().filter(|mask| may_pay(segment, &uses, plan, node, **mask)) {
            let Some(left) = budget.checked_sub(segment.nodes.len()) else { return best };
            *budget = left;
            let mut trial = forced.clone();
            trial.insert(node, *mask);
            let found = settle(segment, variants, &trial);
            let bound = best.as_ref().map_or(plan.total(), |(best, _)| best.total());
            if found.total() < bound && found.masks[node] == *mask {
                best = Some((found, node));
            }
        }
    }
    best
}

/// The number of operands and outputs that use each node's value.
fn uses(segment: &Segment) -> Vec<usize> {
    let mut uses: Vec<_> = segment.nodes.iter().map(|node| usize::from(node.output)).collect();
    for edge in segment.nodes.iter().flat_map(|node| &node.operands) {
        if let Source::Node(from) = edge.source {
            uses[from] += 1;
        }
    }
    uses
}

/// Whether another form of a node may be cheaper. It cannot be if the only change is that elementwise
/// producers without other uses go through memory.
fn may_pay(segment: &Segment, uses: &[usize], plan: &Plan, node: usize, mask: u32) -> bool {
    let now = plan.masks[node];
    let plain = |from: usize| {
        let form = &plan.forms[from];
        let same_space = segment.nodes[from].ty.shape == segment.nodes[node].ty.shape;
        uses[from] == 1 && form.kind == Kind::Elementwise && !form.moves && same_space
    };
    let mut dropped = segment.nodes[node].operands.iter().enumerate();
    let only_plain = dropped.all(|(operand, edge)| match edge.source {
        Source::Node(from) if is_fused(now, operand) && !is_fused(mask, operand) => plain(from),
        _ => true,
    });
    now != mask && (mask & !now != 0 || !only_plain)
}

/// The plan with one more operand fused.
///
/// # Errors
/// Why it cannot be fused.
pub fn with_edge(
    segment: &Segment,
    variants: &[Vec<u32>],
    plan: &Plan,
    node: usize,
    operand: usize,
) -> Result<Plan, String> {
    let mask = plan.masks[node] | 1 << operand;
    form_of(segment, &plan.forms, node, mask)?;
    let mut forced: Forced = plan.masks.iter().copied().enumerate().take(node).collect();
    forced.insert(node, mask);
    Ok(settle(segment, variants, &forced))
}

/// The most fused plan with the forced forms.
fn settle(segment: &Segment, variants: &[Vec<u32>], forced: &Forced) -> Plan {
    let (mut masks, mut forms) = (Vec::new(), Vec::new());
    for (node, choices) in variants.iter().enumerate() {
        let wanted = forced
            .get(&node)
            .and_then(|mask| form_of(segment, &forms, node, *mask).ok().map(|form| (*mask, form)));
        let (mask, form) = wanted.unwrap_or_else(|| most_fused(segment, &forms, node, choices));
        masks.push(mask);
        forms.push(form);
    }
    let kernels = kernels(segment, &masks, &forms);
    let cost = cost_of(segment, &masks, &kernels);
    let repeated_matmuls = repeated_matmuls(segment, &kernels);
    Plan { masks, forms, kernels, cost, repeated_matmuls }
}

/// The legal variant with the most fused operands; of several, the one whose kind is `rows`, then the
/// first.
fn most_fused(segment: &Segment, forms: &[Form], node: usize, variants: &[u32]) -> (u32, Form) {
    let legal = variants.iter().filter_map(|mask| {
        let form = form_of(segment, forms, node, *mask).ok()?;
        Some((*mask, form))
    });
    let rank = |(mask, form): &(u32, Form)| {
        let rows = form.kind == Kind::Rows;
        (mask.count_ones(), rows, std::cmp::Reverse(*mask))
    };
    legal.max_by_key(rank).expect("every op can be a kernel of its own")
}

fn form_of(segment: &Segment, forms: &[Form], node: usize, mask: u32) -> Result<Form, String> {
    let edges = segment.nodes[node].operands.iter().enumerate();
    let operands: Vec<_> = edges
        .map(|(operand, edge)| match edge.source {
            Source::Node(from) if is_fused(mask, operand) => Some(&forms[from]),
            _ => None,
        })
        .collect();
    segment.combine(node, &operands)
}

/// The values that must be in memory, each with the nodes that its kernel computes.
fn kernels(segment: &Segment, masks: &[u32], forms: &[Form]) -> Vec<Kernel> {
    let count = segment.nodes.len();
    let mut needed: Vec<bool> = segment.nodes.iter().map(|node| node.output).collect();
    let mut kernels = Vec::new();
    for root in (0..count).rev() {
        if !needed[root] {
            continue;
        }
        let kernel = kernel_of(segment, masks, forms, root);
        for (_, source) in kernel.body.iter().flat_map(|node| loads(segment, masks, *node)) {
            if let Source::Node(from) = source {
                needed[from] = true;
            }
        }
        kernels.push(kernel);
    }
    kernels.reverse();
    fold_into_others(segment, masks, kernels)
}

/// The kernel that writes one value.
pub fn kernel_of(segment: &Segment, masks: &[u32], forms: &[Form], root: usize) -> Kernel {
    let mut inside = vec![false; root + 1];
    inside[root] = true;
    for node in (0..=root).rev() {
        if !inside[node] {
            continue;
        }
        for (operand, edge) in segment.nodes[node].operands.iter().enumerate() {
            if let (Source::Node(from), true) = (edge.source, is_fused(masks[node], operand)) {
                inside[from] = true;
            }
        }
    }
    let body = (0..=root).filter(|node| inside[*node]).collect();
    Kernel { results: vec![root], body, form: forms[root].clone() }
}

/// The values that a node reads from memory, by operand.
pub fn loads<'s>(
    segment: &'s Segment,
    masks: &[u32],
    node: usize,
) -> impl Iterator<Item = (usize, Source)> + use<'s> {
    let mask = masks[node];
    let edges = segment.nodes[node].operands.iter().enumerate();
    let loaded = edges.filter(move |(operand, _)| !is_fused(mask, *operand));
    loaded.map(|(operand, edge)| (operand, edge.source))
}

/// Makes the value of a kernel one more result of another kernel that already computes it.
fn fold_into_others(segment: &Segment, masks: &[u32], mut kernels: Vec<Kernel>) -> Vec<Kernel> {
    for index in (0..kernels.len()).rev() {
        let root = kernels[index].results[0];
        let shape = &segment.nodes[root].ty.shape;
        let hosts = index + 1..kernels.len();
        let host = hosts.into_iter().find(|host| {
            let kernel = &kernels[*host];
            kernel.body.binary_search(&root).is_ok()
                && kernel.form.can_return(shape)
                && !cycle_when_folded(segment, masks, &kernels, index, *host)
        });
        if let Some(host) = host {
            kernels[host].results.push(root);
            kernels[host].results.sort_unstable();
            kernels.remove(index);
        }
    }
    kernels
}

/// Whether `host` depends, through other kernels, on a value that it would then compute.
fn cycle_when_folded(
    segment: &Segment,
    masks: &[u32],
    kernels: &[Kernel],
    folded: usize,
    host: usize,
) -> bool {
    let maker = |node: usize| {
        let made = kernels.iter().position(|kernel| kernel.results.contains(&node));
        made.map(|made| if made == folded { host } else { made })
    };
    let mut seen = vec![false; kernels.len()];
    let mut pending = vec![host];
    while let Some(kernel) = pending.pop() {
        for next in needs(segment, masks, &kernels[kernel]).into_iter().filter_map(maker) {
            if next == host {
                return true;
            }
            if !std::mem::replace(&mut seen[next], true) {
                pending.push(next);
            }
        }
    }
    false
}

/// The nodes whose values a kernel depends on, including paths outside of the segment.
fn needs(segment: &Segment, masks: &[u32], kernel: &Kernel) -> Vec<usize> {
    let mut needs = Vec::new();
    for (_, source) in kernel.body.iter().flat_map(|node| loads(segment, masks, *node)) {
        match source {
            Source::Node(from) => needs.push(from),
            Source::Input(input) => {
                let paths = segment.paths.iter().filter(|(_, to)| *to == input);
                needs.extend(paths.map(|(from, _)| *from));
            }
        }
    }
    needs
}

fn cost_of(segment: &Segment, masks: &[u32], kernels: &[Kernel]) -> Cost {
    let mut sum = Cost::default();
    for Kernel { results, body, form } in kernels {
        sum += kernel(&Priced { segment, form, body, masks, results });
    }
    sum
}

fn repeated_matmuls(segment: &Segment, kernels: &[Kernel]) -> u64 {
    let mut times = vec![0_u64; segment.nodes.len()];
    let computed = kernels.iter().flat_map(|kernel| &kernel.body);
    for node in
        computed.filter(|node| segment.nodes[**node].op.family() == irc_tl::Family::Contraction)
    {
        times[*node] += 1;
    }
    times.into_iter().map(|times| times.saturating_sub(1)).sum()
}
