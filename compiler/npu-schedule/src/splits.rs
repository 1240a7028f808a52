//! How layers of a network are split into pieces, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// The layers of a network that are split into pieces, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Splits(pub BTreeMap<usize, Split>);

/// The pieces of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// The first output channel of each piece but the first.
    pub cuts: BTreeSet<u64>,
    /// How many layers each piece is, each over some input channels, whose sums another layer adds; 1 for one layer.
    pub sums: u64,
}

impl Default for Split {
    /// One piece.
    fn default() -> Self {
        Self { cuts: BTreeSet::new(), sums: 1 }
    }
}

impl Splits {
    /// Whether all layers are whole.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Splits {
    /// `3:256,512;7:64+2`: layer 3 is split at the output channels 256 and 512, and layer 7 at 64, each piece in two
    /// partial sums.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (layer, Split { cuts, sums })) in self.0.iter().enumerate() {
            let separator = if number > 0 { ";" } else { "" };
            let cuts: Vec<String> = cuts.iter().map(u64::to_string).collect();
            write!(f, "{separator}{layer}:{}", cuts.join(","))?;
            if *sums > 1 {
                write!(f, "+{sums}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Splits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for split in text.split(';').filter(|_| !text.is_empty()) {
            let found = layer_of(split).filter(|(layer, _)| !all.contains_key(layer));
            let (layer, split) = found.ok_or_else(|| {
                format!("expected LAYER:CHANNEL,… of each layer, as in 3:256,512, found '{split}'")
            })?;
            all.insert(layer, split);
        }
        Ok(Self(all))
    }
}

fn layer_of(text: &str) -> Option<(usize, Split)> {
    let (layer, rest) = text.split_once(':')?;
    let (cuts, sums) = match rest.split_once('+') {
        Some((cuts, sums)) => (cuts, sums.parse().ok().filter(|sums| *sums > 1)?),
        None => (rest, 1),
    };
    let all = cuts.split(',').filter(|_| !cuts.is_empty()).map(str::parse);
    let cuts: BTreeSet<u64> = all.collect::<Result<_, _>>().ok()?;
    let is_split = sums > 1 || !cuts.is_empty();
    is_split.then_some((layer.parse().ok()?, Split { cuts, sums }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_read_as_written() {
        for text in ["", "3:256,512;7:64+2", "0:+4"] {
            let splits: Splits = text.parse().expect("splits");
            assert_eq!(splits.to_string(), text);
        }
        for wrong in [";", "3", "3:", "3:a", "3:1;3:2", "3:1+1", "x:1", "3:1;"] {
            assert!(wrong.parse::<Splits>().is_err(), "{wrong}");
        }
    }
}
