//! What a misspelt name was meant to be.

/// The name at most two edits away, when that is less than half of it.
pub fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    if name.len() > 32 {
        return None;
    }
    let with_distance = |near: &&'n str| (strsim::levenshtein(near, name), *near);
    let (distance, near) = names.iter().map(with_distance).min()?;
    (distance <= 2 && 2 * distance < near.len()).then_some(near)
}
