//! The README lists every error code, and no others.

use irc_diag::codes;
use std::path::Path;

#[test]
fn every_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let prefixes = ["ark-", "plan-"];
    let used = codes::in_sources(&root.join("src"), &prefixes).expect("source files");
    assert!(!used.is_empty());
    assert_eq!(used, codes::in_page(&readme, &prefixes));
}
