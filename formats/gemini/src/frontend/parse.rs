//! Parses a [`Frontend`] from text, with located diagnostics.

use irc_diag::{Sink, Source};
use irc_json::{At, Reader, place_in};

use super::layer::read_map;
use super::{Frontend, check};
use crate::read::{self, Options};

/// Reads a frontend file; every diagnostic goes to `sink`.
///
/// Returns `None` after an error.
pub fn parse(source: &Source, options: &Options, sink: &mut Sink) -> Option<Frontend> {
    let before = sink.error_count();
    let tree = read::tree(source, sink)?;
    let (layers, extra) =
        read_map(&mut Reader::new(sink, &read::FORMAT, options.strict), &tree, &At::ROOT)?;
    let frontend = Frontend { layers, extra };
    if options.validate && sink.error_count() == before {
        let mut found = check(&frontend);
        found.iter_mut().for_each(|diagnostic| place_in(&tree, diagnostic));
        sink.extend(found);
    }
    (sink.error_count() == before).then_some(frontend)
}
