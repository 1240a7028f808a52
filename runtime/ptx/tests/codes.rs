//! The codes of diagnostics are those that the README lists.

use irc_diag::codes;
use std::path::Path;

#[test]
fn every_code_is_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let used = codes::in_sources(&root.join("src"), &["ptx-"]).expect("source files");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    assert_eq!(used, codes::in_page(&readme, &["ptx-"]));
}
