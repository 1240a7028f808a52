//! What a misspelt name was meant to be.

/// The name that is at most two edits away, whatever the case, when that is less than half of it.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = &name.to_lowercase();
    if name.len() > 32 {
        return None;
    }
    let with_distance = |near: &'n str| (edit_distance(&near.to_lowercase(), name), near);
    let (distance, near) = names.map(with_distance).min()?;
    (distance <= 2 && 2 * distance < near.len()).then_some(near)
}

/// Levenshtein distance in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
