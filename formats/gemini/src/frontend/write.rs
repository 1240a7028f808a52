//! Writing a frontend file back.

use irc_json::Layout;

use super::Frontend;
use super::layer::write_map;

/// The text of a frontend file, in the layout of the published files: what was read, key by key.
pub fn write(frontend: &Frontend) -> String {
    write_map(&frontend.layers, &frontend.extra).print(Layout::Indented)
}
