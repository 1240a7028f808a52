//! Values as views of the results of layers.
//!
//! The result of a layer has three axes: channels, rows and columns. Reshapes and transpositions of the graph
//! do not move data: they only change which parts of which axes make up a dimension. A dimension is a list of
//! [`Atom`]s, outermost first; `[512, 1024]` of a sequence is `[rows 512][channels 1024]`, and its heads
//! `[16, 512, 64]` are `[channels 16, stride 64][rows 512][channels 64]`.

use irc_npu_cost::Axis;

/// What an atom is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The images of the batch.
    Images,
    /// An axis of a layer's result.
    Axis(Axis),
    /// A dimension of an input of the graph whose axes are not known yet.
    Dimension(usize),
}

/// `extent` indices of an axis, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atom {
    /// The axis.
    pub of: Whole,
    /// Distance of two indices.
    pub stride: u64,
    /// Number of indices, at least 2.
    pub extent: u64,
}

impl Atom {
    /// All indices of an axis.
    pub const fn whole(of: Whole, extent: u64) -> Self {
        Self { of, stride: 1, extent }
    }
}

/// A dimension: atoms, outermost first; none if its extent is 1.
pub type Dimension = Vec<Atom>;

/// A dimension of one axis.
pub fn dimension(of: Whole, extent: u64) -> Dimension {
    if extent == 1 { vec![] } else { vec![Atom::whole(of, extent)] }
}

/// Atoms with neighbours joined where they are one range of one axis.
pub fn merged(atoms: impl IntoIterator<Item = Atom>) -> Vec<Atom> {
    let mut all: Vec<Atom> = vec![];
    for atom in atoms {
        match all.last_mut() {
            Some(last) if last.of == atom.of && last.stride == atom.stride * atom.extent => {
                *last = Atom { extent: last.extent * atom.extent, ..atom };
            }
            _ => all.push(atom),
        }
    }
    all
}

/// The dimensions after a reshape to `shape`; `None` if an atom would have to be cut at an index that is not a
/// multiple of the rest.
pub fn reshaped(dims: &[Dimension], shape: &[u64]) -> Option<Vec<Dimension>> {
    let mut atoms = merged(dims.iter().flatten().copied()).into_iter();
    let mut rest: Option<Atom> = None;
    let mut all = vec![];
    for &extent in shape {
        let (mut found, mut left) = (vec![], extent);
        while left > 1 {
            let atom = rest.take().or_else(|| atoms.next())?;
            if left.is_multiple_of(atom.extent) {
                left /= atom.extent;
                found.push(atom);
            } else if atom.extent.is_multiple_of(left) {
                let inner = atom.extent / left;
                found.push(Atom { stride: atom.stride * inner, extent: left, ..atom });
                rest = Some(Atom { extent: inner, ..atom });
                left = 1;
            } else {
                return None;
            }
        }
        all.push(merged(found));
    }
    (rest.is_none() && atoms.next().is_none()).then_some(all)
}

/// The channels that atoms of channels are, in their order; `None` of other atoms.
pub fn indices(atoms: &[Atom]) -> Option<Vec<u64>> {
    let mut all = vec![0];
    for atom in atoms {
        if atom.of != Whole::Axis(Axis::Channels) {
            return None;
        }
        let steps = |first: u64| (0..atom.extent).map(move |at| first + at * atom.stride);
        all = all.into_iter().flat_map(steps).collect();
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(axis: Axis, stride: u64, extent: u64) -> Atom {
        Atom { of: Whole::Axis(axis), stride, extent }
    }

    #[test]
    fn heads_are_parts_of_channels_and_channels_again() {
        let rows = dimension(Whole::Axis(Axis::Rows), 512);
        let sequence = [vec![], rows.clone(), dimension(Whole::Axis(Axis::Channels), 1024)];
        let heads = reshaped(&sequence, &[1, 512, 16, 64]).expect("a view");
        let (outer, inner) = (atom(Axis::Channels, 64, 16), atom(Axis::Channels, 1, 64));
        assert_eq!(heads, [vec![], rows, vec![outer], vec![inner]]);
        assert_eq!(reshaped(&heads, &[1, 512, 1024]).expect("a view"), sequence);
    }

    #[test]
    fn a_cut_within_an_atom_is_not_a_view() {
        let rows = [dimension(Whole::Axis(Axis::Rows), 6)];
        assert_eq!(reshaped(&rows, &[4, 2]), None);
        assert_eq!(reshaped(&rows, &[6, 2]), None);
    }
}
