//! Changes of trees, from which the local search chooses at random.
//!
//! A change applies to a few segments in sequence, which are the children of a temporal cut. It keeps the
//! order of layers but for exchanges of neighbours, and each layer's place in the tree but for one.

use irc_npu_cost::{Cut, Kind, Network, Partition, Scheme, Tree};

use crate::random::Random;

/// What a change may depend on.
pub struct Context<'a> {
    /// The network.
    pub network: &'a Network,
    /// The number of cores and the scheme of each layer, in the current schedule.
    pub placed: &'a [(u64, Scheme)],
    /// The multiple of the price of a cycle with which each layer's scheme is chosen.
    pub multiples: &'a mut [f64],
    /// A layer whose multiple changed, and that before.
    pub undo: Option<(usize, f64)>,
}

/// A path from the root: the index of the child at each cut.
type Path = Vec<usize>;

/// The multiples of the price of a cycle; a layer whose time is hidden has a low one.
const MULTIPLES: [f64; 6] = [1.0, 0.0, 0.2, 0.5, 2.0, 5.0];

/// The kinds of changes, with their relative frequencies.
const KINDS: [(Change, usize); 12] = [
    (Change::Exchange, 10),
    (Change::Dissolve, 12),
    (Change::Wrap, 22),
    (Change::Images, 16),
    (Change::Enter, 24),
    (Change::Leave, 16),
    (Change::Turn, 8),
    (Change::Split, 8),
    (Change::Join, 8),
    (Change::Reorder, 4),
    (Change::Price, 14),
    (Change::Scheme, 20),
];

#[derive(Clone, Copy, Debug)]
enum Change {
    /// Two layers that follow each other.
    Exchange,
    /// A cut gives its children to its parent.
    Dissolve,
    /// Children become those of a new cut.
    Wrap,
    /// The number of images at a time.
    Images,
    /// A child becomes one of a cut beside it.
    Enter,
    /// A child leaves its cut.
    Leave,
    /// A temporal cut becomes spatial, or the reverse.
    Turn,
    /// A cut becomes two.
    Split,
    /// Two cuts become one.
    Join,
    /// Two children that follow each other.
    Reorder,
    /// The price of a cycle for a layer.
    Price,
    /// The scheme of a layer.
    Scheme,
}

/// Changes a tree whose children are segments; `false` if the change that was drawn does not apply.
pub fn change(root: &mut Tree, context: &mut Context<'_>, random: &mut Random) -> bool {
    let has_images = root.batch > 1;
    let total: usize = KINDS.iter().map(|(_, weight)| weight).sum();
    let mut drawn = random.below(total);
    let mut kind = KINDS[0].0;
    for (change, weight) in KINDS {
        if drawn < weight {
            kind = change;
            break;
        }
        drawn -= weight;
    }
    if matches!(kind, Change::Images) && !has_images {
        kind = Change::Scheme;
    }
    let path = any_leaf(root, random);
    let applied = apply(kind, root, path, context, random);
    if applied {
        tidy(root);
    }
    applied
}

fn apply(
    kind: Change,
    root: &mut Tree,
    path: Path,
    context: &mut Context<'_>,
    random: &mut Random,
) -> bool {
    let Some((&last, above)) = path.split_last() else { return false };
    match kind {
        Change::Exchange => exchange(root, &path, context.network),
        Change::Dissolve => dissolve(root, above),
        Change::Wrap => {
            let depth = random.below(path.len());
            wrap(root, &path[..depth], path[depth], random)
        }
        Change::Images => images(root, above, random),
        Change::Enter => {
            let depth = if random.below(3) > 0 { above.len() } else { random.below(path.len()) };
            enter(root, &path[..depth], path[depth], random)
        }
        Change::Leave => {
            let depth = if random.below(3) > 0 { above.len() } else { random.below(path.len()) };
            leave(root, &path[..depth], path[depth], random)
        }
        Change::Turn => turn(root, above, random),
        Change::Split => split(root, above, last, random),
        Change::Join => {
            let depth = random.below(path.len());
            join(root, &path[..depth], path[depth])
        }
        Change::Reorder => {
            let depth = random.below(path.len());
            reorder(root, &path[..depth], path[depth], context.network)
        }
        Change::Price => price(root, &path, context, random),
        Change::Scheme => scheme(root, &path, context, random),
    }
}

fn children(tree: &mut Tree) -> Option<&mut Vec<Tree>> {
    match &mut tree.kind {
        Kind::Cut(_, children) => Some(children),
        Kind::Leaf(..) => None,
    }
}

fn at<'t>(root: &'t mut Tree, path: &[usize]) -> Option<&'t mut Tree> {
    path.iter().try_fold(root, |tree, child| children(tree)?.get_mut(*child))
}

/// The path of a leaf; all are equally likely.
fn any_leaf(root: &Tree, random: &mut Random) -> Path {
    let mut left = random.below(leaves(root));
    let (mut tree, mut path) = (root, vec![]);
    while let Kind::Cut(_, children) = &tree.kind {
        for (i, child) in children.iter().enumerate() {
            let count = leaves(child);
            if left < count {
                path.push(i);
                tree = child;
                break;
            }
            left -= count;
        }
    }
    path
}

/// Number of leaves.
pub fn leaves(tree: &Tree) -> usize {
    match &tree.kind {
        Kind::Leaf(..) => 1,
        Kind::Cut(_, children) => children.iter().map(leaves).sum(),
    }
}

/// Cuts that run one child once become that child.
fn tidy(tree: &mut Tree) {
    let Some(all) = children(tree) else { return };
    for child in all {
        tidy(child);
        while let Kind::Cut(_, only) = &mut child.kind {
            if only.len() != 1 || only[0].batch != child.batch {
                break;
            }
            let Some(inner) = only.pop() else { break };
            *child = inner;
        }
    }
}

/// Sets the images of a subtree, and limits those below.
pub fn set_images(tree: &mut Tree, images: u64) {
    tree.batch = images;
    for child in children(tree).into_iter().flatten() {
        if !images.is_multiple_of(child.batch) {
            set_images(child, common_divisor(images, child.batch));
        }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn reads(tree: &Tree, of: &Tree, network: &Network) -> bool {
    let (mut readers, mut made) = (vec![], vec![]);
    layers(tree, &mut readers);
    layers(of, &mut made);
    readers.iter().any(|layer| network.nodes()[*layer].reads().any(|read| made.contains(&read)))
}

/// The layers of a tree, in its order.
pub fn layers(tree: &Tree, into: &mut Vec<usize>) {
    match &tree.kind {
        Kind::Leaf(layer, _) => into.push(*layer),
        Kind::Cut(_, children) => children.iter().for_each(|child| layers(child, into)),
    }
}

/// The number of layers of a tree.
pub fn count(tree: &Tree) -> usize {
    match &tree.kind {
        Kind::Leaf(..) => 1,
        Kind::Cut(_, children) => children.iter().map(count).sum(),
    }
}

fn exchange(root: &mut Tree, path: &[usize], network: &Network) -> bool {
    // The next leaf is the first one below the next child of the lowest cut that has one.
    let mut next = path.to_vec();
    loop {
        let Some(last) = next.pop() else { return false };
        let siblings = at(root, &next).and_then(children).map_or(0, |all| all.len());
        if last + 1 < siblings {
            next.push(last + 1);
            break;
        }
    }
    while at(root, &next).is_some_and(|tree| matches!(tree.kind, Kind::Cut(..))) {
        next.push(0);
    }
    let leaf = |root: &mut Tree, path: &[usize]| match at(root, path).map(|tree| &tree.kind) {
        Some(&Kind::Leaf(layer, _)) => Some(layer),
        _ => None,
    };
    let (Some(first), Some(second)) = (leaf(root, path), leaf(root, &next)) else { return false };
    if network.nodes()[second].reads().any(|made| made == first) {
        return false;
    }
    for (path, layer) in [(path, second), (&next[..], first)] {
        if let Some(tree) = at(root, path) {
            tree.kind = Kind::Leaf(layer, None);
        }
    }
    true
}

fn dissolve(root: &mut Tree, path: &[usize]) -> bool {
    let Some((&index, above)) = path.split_last() else { return false };
    let Some(siblings) = at(root, above).and_then(children) else { return false };
    let cut = siblings.remove(index);
    let Kind::Cut(_, mut inner) = cut.kind else { return false };
    inner.iter_mut().for_each(|child| child.batch = cut.batch);
    siblings.splice(index..index, inner);
    true
}

fn any_cut(random: &mut Random) -> Cut {
    if random.below(2) == 0 { Cut::Time } else { Cut::Space }
}

/// A divisor of the number of images: all, or fewer.
fn fewer(images: u64, random: &mut Random) -> u64 {
    let divisors: Vec<u64> = (1..=images).filter(|by| images.is_multiple_of(*by)).collect();
    match random.below(2) {
        0 => images,
        _ => random.pick(&divisors).copied().unwrap_or(images),
    }
}

fn wrap(root: &mut Tree, path: &[usize], from: usize, random: &mut Random) -> bool {
    let is_root = path.is_empty();
    let Some(siblings) = at(root, path).and_then(children) else { return false };
    let count = siblings.len();
    if count < 2 {
        return false;
    }
    let mut to = random.below(count - 1);
    to += usize::from(to >= from);
    let (first, last) = (from.min(to), from.max(to));
    if !is_root && last - first + 1 == count {
        return false;
    }
    let batch = siblings[first].batch;
    let mut inner: Vec<Tree> = siblings.drain(first..=last).collect();
    let images = fewer(batch, random);
    inner.iter_mut().for_each(|child| set_images(child, images));
    siblings.insert(first, Tree::cut(any_cut(random), batch, inner));
    true
}

fn images(root: &mut Tree, path: &[usize], random: &mut Random) -> bool {
    if path.is_empty() {
        return false;
    }
    let depth = 1 + random.below(path.len());
    let Some(cut) = at(root, &path[..depth]) else { return false };
    let batch = cut.batch;
    let Some(all) = children(cut) else { return false };
    let now = all.first().map_or(1, |child| child.batch);
    let divisors: Vec<u64> =
        (1..=batch).filter(|by| batch.is_multiple_of(*by) && *by != now).collect();
    let Some(&images) = random.pick(&divisors) else { return false };
    let cascade = random.below(2) == 0;
    for child in all {
        if cascade {
            let own = child.batch;
            scale(child, own, images);
        } else {
            set_images(child, images);
        }
    }
    true
}

/// Sets the images of a subtree, and of those below that have as many.
fn scale(tree: &mut Tree, from: u64, to: u64) {
    tree.batch = to;
    for child in children(tree).into_iter().flatten() {
        if child.batch == from {
            scale(child, from, to);
        } else if !to.is_multiple_of(child.batch) {
            set_images(child, common_divisor(to, child.batch));
        }
    }
}

fn enter(root: &mut Tree, path: &[usize], index: usize, random: &mut Random) -> bool {
    let Some(siblings) = at(root, path).and_then(children) else { return false };
    let before = random.below(2) == 0;
    let target = if before { index.checked_sub(1) } else { Some(index + 1) };
    let Some(target) = target.filter(|target| *target < siblings.len()) else { return false };
    if !matches!(siblings[target].kind, Kind::Cut(..)) {
        return false;
    }
    let mut moved = siblings.remove(index);
    let target = if before { target } else { target - 1 };
    // As deep as it goes, or less.
    let mut into = &mut siblings[target];
    loop {
        let Kind::Cut(_, all) = &mut into.kind else { return false };
        let images = all.first().map_or(1, |child| child.batch);
        let edge = if before { all.len() - 1 } else { 0 };
        let deeper = matches!(all[edge].kind, Kind::Cut(..)) && random.below(2) == 0;
        if !deeper {
            set_images(&mut moved, images);
            let place = if before { all.len() } else { 0 };
            all.insert(place, moved);
            return true;
        }
        into = &mut all[edge];
    }
}

fn leave(root: &mut Tree, path: &[usize], index: usize, random: &mut Random) -> bool {
    let Some((&place, above)) = path.split_last() else { return false };
    let Some(outer) = at(root, above).and_then(children) else { return false };
    let batch = outer[place].batch;
    let Some(siblings) = children(&mut outer[place]) else { return false };
    let count = siblings.len();
    // Only the children at the ends can leave without changing the order of layers; the others
    // take those before or after them along.
    let before = if index == 0 {
        true
    } else if index + 1 == count {
        false
    } else {
        random.below(2) == 0
    };
    let mut moved: Vec<Tree> = match before {
        true => siblings.drain(..=index).collect(),
        false => siblings.drain(index..).collect(),
    };
    if siblings.is_empty() {
        return false;
    }
    moved.iter_mut().for_each(|child| child.batch = batch);
    let place = if before { place } else { place + 1 };
    outer.splice(place..place, moved);
    true
}

fn turn(root: &mut Tree, path: &[usize], random: &mut Random) -> bool {
    if path.is_empty() {
        return false;
    }
    let depth = 1 + random.below(path.len());
    let Some(Kind::Cut(cut, _)) = at(root, &path[..depth]).map(|tree| &mut tree.kind) else {
        return false;
    };
    *cut = if *cut == Cut::Time { Cut::Space } else { Cut::Time };
    true
}

fn split(root: &mut Tree, path: &[usize], index: usize, random: &mut Random) -> bool {
    let (depth, index) = match random.below(2) {
        0 if path.len() > 1 => {
            let depth = 1 + random.below(path.len() - 1);
            (depth, path[depth])
        }
        _ => (path.len(), index),
    };
    let Some((&place, above)) = path[..depth].split_last() else { return false };
    if index == 0 {
        return false;
    }
    let Some(outer) = at(root, above).and_then(children) else { return false };
    let batch = outer[place].batch;
    let Kind::Cut(cut, all) = &mut outer[place].kind else { return false };
    let (cut, rest) = (*cut, all.split_off(index));
    outer.insert(place + 1, Tree::cut(cut, batch, rest));
    true
}

fn join(root: &mut Tree, path: &[usize], index: usize) -> bool {
    let Some(siblings) = at(root, path).and_then(children) else { return false };
    if index + 1 >= siblings.len() {
        return false;
    }
    let second = siblings.remove(index + 1);
    let Kind::Cut(_, inner) = second.kind else { return false };
    let Kind::Cut(_, all) = &mut siblings[index].kind else { return false };
    let images = all.first().map_or(1, |child| child.batch);
    for mut child in inner {
        set_images(&mut child, images);
        all.push(child);
    }
    true
}

fn reorder(root: &mut Tree, path: &[usize], index: usize, network: &Network) -> bool {
    let Some(siblings) = at(root, path).and_then(children) else { return false };
    if index + 1 >= siblings.len() {
        return false;
    }
    let free = !reads(&siblings[index + 1], &siblings[index], network);
    if free {
        siblings.swap(index, index + 1);
    }
    free
}

fn price(root: &mut Tree, path: &[usize], context: &mut Context<'_>, random: &mut Random) -> bool {
    let Some(Kind::Leaf(layer, scheme)) = at(root, path).map(|tree| &mut tree.kind) else {
        return false;
    };
    let multiple = *random.pick(&MULTIPLES).unwrap_or(&1.0);
    let before = std::mem::replace(&mut context.multiples[*layer], multiple);
    context.undo = Some((*layer, before));
    scheme.take().is_some() || before != multiple
}

fn scheme(root: &mut Tree, path: &[usize], context: &mut Context<'_>, random: &mut Random) -> bool {
    let Some(Kind::Leaf(layer, scheme)) = at(root, path).map(|tree| &mut tree.kind) else {
        return false;
    };
    let (cores, now) = context.placed[*layer];
    // Like a neighbour's, another order of the same partition, or any.
    let found = match random.below(4) {
        0 => {
            let node = &context.network.nodes()[*layer];
            let near: Vec<Scheme> = node
                .reads()
                .map(|made| context.placed[made])
                .filter(|(count, _)| *count == cores)
                .map(|(_, scheme)| scheme)
                .collect();
            random.pick(&near).copied()
        }
        1 => random.pick(&Scheme::all(now.partition)).copied(),
        _ => {
            let all = Partition::all(cores);
            let partition = random.pick(&all).copied();
            partition.and_then(|partition| random.pick(&Scheme::all(partition)).copied())
        }
    };
    let changes = found.is_some() && found != Some(now);
    if changes {
        *scheme = found;
    }
    changes
}
