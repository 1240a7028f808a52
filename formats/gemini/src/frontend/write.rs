//! Writes a frontend file.

use irc_json::Layout;

use super::Frontend;
use super::layer::write_map;

/// The text of a frontend file, in the layout of the published files, with its keys in order.
pub fn write(frontend: &Frontend) -> String {
    write_map(&frontend.layers, &frontend.extra).print(Layout::Indented)
}
