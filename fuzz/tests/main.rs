//! Each target on its seeds, and on seeds with a few bytes changed.

use irc_fuzz::{TARGETS, target};
use std::fs;
use std::path::Path;

/// Changed copies of each seed.
const COPIES: usize = 8;
/// Bytes of a seed beyond which changed copies take too long for a test.
const MAX_BYTES: usize = 8 << 10;

/// Names of targets and the folders of their seeds, which come after the number of inputs.
fn listed() -> Vec<(&'static str, Vec<&'static str>)> {
    let lines = include_str!("../targets").lines();
    let words = lines.map(|line| line.split(' '));
    words.map(|mut words| (words.next().unwrap_or_default(), words.skip(1).collect())).collect()
}

fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
        .into_iter()
        .filter(|path| path.is_file())
        .map(|path| fs::read(path).expect("bytes"))
        .collect()
}

#[test]
fn the_list_has_every_target() {
    let listed: Vec<_> = listed().into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, TARGETS.map(|(name, _)| name));
}

#[test]
fn every_target_accepts_its_seeds_and_changed_copies() {
    // Knuth's MMIX generator: the same numbers in each run.
    let mut state = 22_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % limit.max(1)
    };
    for (name, folders) in listed() {
        let check = target(name).expect("a target");
        check(b"");
        for seed in folders.into_iter().flat_map(files) {
            check(&seed);
            if seed.is_empty() || seed.len() > MAX_BYTES {
                continue;
            }
            for _ in 0..COPIES {
                let mut changed = seed.clone();
                for _ in 0..=below(3) {
                    let at = below(changed.len());
                    changed[at] = seed[below(seed.len())];
                }
                changed.truncate(seed.len() - below(4) * below(seed.len()) / 4);
                check(&changed);
            }
        }
    }
}
