//! Finds the worlds of several plans.
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The properties of a plan by which worlds are found.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name of its file.
    pub name: String,
    /// Its rank.
    pub rank: i64,
    /// Number of ranks of its world.
    pub world_size: i64,
}

impl Member {
    /// The declared rank and world size of a plan that may have errors; `None` without a rank.
    pub fn of_text(name: &str, text: &str) -> Option<Self> {
        let plan: Value = serde_json::from_str(text).ok()?;
        let number = |key: &str| plan.get(key)?.as_i64();
        Some(Self {
            name: name.to_owned(),
            rank: number("Rank")?,
            world_size: number("WorldSize")?,
        })
    }
}

/// The worlds of several ranks, each as the indices of its members.
///
/// Plans with the same world size form a world if the names of their files differ only in the rank. The
/// remaining plans form a world, whatever their names, if together they have each rank once.
pub fn worlds(members: &[Member]) -> Vec<Vec<usize>> {
    let mut by_name: BTreeMap<(i64, String), Vec<usize>> = BTreeMap::new();
    for (index, member) in members.iter().enumerate().filter(|(_, member)| member.world_size > 1) {
        let key = (member.world_size, world_name(&member.name, member.rank));
        by_name.entry(key).or_default().push(index);
    }
    let (mut found, mut parts): (Vec<_>, BTreeMap<i64, Vec<_>>) = Default::default();
    for ((world_size, _), world) in by_name {
        match is_whole(members, &world) {
            true => found.push(world),
            false => parts.entry(world_size).or_default().push(world),
        }
    }
    for worlds in parts.into_values() {
        let together = worlds.concat();
        match is_whole(members, &together) {
            true => found.push(together),
            false => found.extend(worlds),
        }
    }
    found
}

/// Whether members with the same world size have each rank of one world once.
fn is_whole(members: &[Member], world: &[usize]) -> bool {
    let ranks: BTreeSet<i64> = world.iter().map(|&index| members[index].rank).collect();
    let size = world.first().map_or(0, |&index| members[index].world_size);
    ranks.len() == world.len() && world.len() as i64 == size
}

/// A file's name without the number of its rank; empty if it has none.
fn world_name(name: &str, rank: i64) -> String {
    let number = rank.to_string();
    let marked = ["rank", "gpu"].iter().find_map(|word| {
        let pattern = format!("{word}{number}");
        let ends = |at: usize| {
            let rest = &name[at + pattern.len()..];
            !rest.starts_with(|next: char| next.is_ascii_digit())
        };
        let at = name.rmatch_indices(&pattern).map(|(at, _)| at).find(|&at| ends(at))?;
        Some(format!("{}{word}*{}", &name[..at], &name[at + pattern.len()..]))
    });
    marked.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_one_world_differ_in_their_rank() {
        let first = world_name("a/ffn_rank0of4.plan.json", 0);
        assert_eq!(first, world_name("a/ffn_rank3of4.plan.json", 3));
        assert_ne!(first, world_name("a/moe_rank3of4.plan.json", 3));
        assert_eq!(world_name("plan_gpu1.json", 1), world_name("plan_gpu2.json", 2));
        assert_eq!(world_name("plan_rank1.json", 1), world_name("plan_rank12.json", 12));
        assert_eq!(world_name("left.json", 0), world_name("right.json", 1));
    }

    fn sets(files: &[(&str, i64, i64)]) -> Vec<Vec<usize>> {
        let member = |&(name, rank, world_size): &(&str, i64, i64)| Member {
            name: name.to_owned(),
            rank,
            world_size,
        };
        worlds(&files.iter().map(member).collect::<Vec<_>>())
    }

    #[test]
    fn ranks_that_are_a_whole_world_are_one_whatever_their_names() {
        let halves = [("x/plan_rank0.json", 0, 2), ("y/plan_rank1.json", 1, 2)];
        assert_eq!(sets(&halves), [[0, 1]]);
        // A third plan is separate, and so are halves that do not match.
        let odd = [("a_rank0.json", 0, 2), ("b_rank1.json", 1, 2), ("c_rank1.json", 1, 2)];
        assert_eq!(sets(&odd), [[0], [1], [2]]);
        assert_eq!(sets(&[("a_rank0.json", 0, 3), ("b_rank1.json", 1, 3)]), [[0], [1]]);
        assert_eq!(sets(&[("alone.json", 0, 1)]), [[0; 0]; 0]);
    }

    #[test]
    fn names_tell_several_worlds_apart() {
        let worlds = [
            ("a_rank0.json", 0, 2),
            ("b_rank0.json", 0, 2),
            ("a_rank1.json", 1, 2),
            ("b_rank1.json", 1, 2),
        ];
        assert_eq!(sets(&worlds), [[0, 2], [1, 3]]);
        let left_over = [worlds[0], ("left.json", 0, 2), worlds[2], ("c_rank1.json", 1, 2)];
        assert_eq!(sets(&left_over), [[0, 2], [1, 3]]);
    }
}
