//! Which tensors of a graph share memory: by live range, the smallest storage that fits first.

/// A tensor that a node makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Bytes.
    pub bytes: u64,
    /// Node that makes it.
    pub made: usize,
    /// Last node that reads it; that which makes it where none does.
    pub last: usize,
    /// Whether it comes out: then nothing else may lie where it does.
    pub is_output: bool,
}

/// The storage of each tensor, numbered from `first`; tensors in the order in which they are made.
///
/// What a node makes lies nowhere that the node reads.
pub fn storages(tensors: &[Tensor], first: i64) -> Vec<i64> {
    let mut sizes: Vec<u64> = vec![];
    // Storages that are used again: the last node that needs what lies there.
    let mut shared: Vec<(usize, usize)> = vec![];
    let place = |tensor: &Tensor| {
        let free = |(storage, needed): &(usize, usize)| {
            (*needed < tensor.made).then_some((*storage, sizes[*storage]))
        };
        let fits = shared.iter().filter_map(free).filter(|(_, size)| *size >= tensor.bytes);
        let largest = || {
            shared
                .iter()
                .filter_map(free)
                .max_by_key(|(storage, size)| (*size, std::cmp::Reverse(*storage)))
        };
        let found = if tensor.is_output {
            None
        } else {
            fits.min_by_key(|(storage, size)| (*size, *storage)).or_else(largest)
        };
        let storage = found.map_or(sizes.len(), |(storage, _)| storage);
        if storage == sizes.len() {
            sizes.push(0);
        }
        sizes[storage] = sizes[storage].max(tensor.bytes);
        shared.retain(|(known, _)| *known != storage);
        if !tensor.is_output {
            shared.push((storage, tensor.last));
        }
        first + storage as i64
    };
    tensors.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(bytes: u64, made: usize, last: usize) -> Tensor {
        Tensor { bytes, made, last, is_output: false }
    }

    #[test]
    fn what_is_read_no_more_makes_room() {
        let chain = [tensor(8, 0, 1), tensor(16, 1, 2), tensor(4, 2, 3), tensor(4, 3, 3)];
        assert_eq!(storages(&chain, 5), [5, 6, 5, 6]);
    }

    #[test]
    fn the_smallest_that_fits_is_taken_and_else_the_largest_grows() {
        let before = [tensor(100, 0, 1), tensor(10, 0, 1)];
        let after = |bytes| [before[0].clone(), before[1].clone(), tensor(bytes, 2, 2)];
        assert_eq!(storages(&after(8), 0), [0, 1, 1]);
        assert_eq!(storages(&after(200), 0), [0, 1, 0]);
    }

    #[test]
    fn outputs_lie_alone() {
        let output = Tensor { is_output: true, ..tensor(8, 0, 0) };
        assert_eq!(storages(&[output.clone(), tensor(8, 1, 1), output], 0), [0, 1, 2]);
    }
}
