//! The order in which blocks are translated.
use irc_mlir::{BlockLike, BlockRef, OperationLike};

/// The reachable blocks, each after all that dominate it.
pub fn reverse_postorder<'c: 'a, 'a>(entry: BlockRef<'c, 'a>) -> Vec<BlockRef<'c, 'a>> {
    let mut seen = std::collections::HashSet::from([entry.to_raw().ptr as usize]);
    let (mut stack, mut order) = (vec![(entry, 0)], Vec::new());
    while let Some((block, next)) = stack.pop() {
        // Checked first: if the index is out of range, melior prints the op, and MLIR verifies it.
        let end = block.terminator().filter(|end| next < end.successor_count());
        let Some(successor) = end.and_then(|end| end.successor(next).ok()) else {
            order.push(block);
            continue;
        };
        stack.push((block, next + 1));
        if seen.insert(successor.to_raw().ptr as usize) {
            stack.push((successor, 0));
        }
    }
    order.reverse();
    order
}
