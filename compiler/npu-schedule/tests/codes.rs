//! The README lists every diagnostic code of this crate, and no other.

use irc_diag::codes;
use std::path::Path;

#[test]
fn every_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let used = codes::in_sources(&root.join("src"), &["schedule-"]).expect("source files");
    assert!(!used.is_empty());
    assert_eq!(used, codes::in_page(&readme, &["schedule-"]));
}
