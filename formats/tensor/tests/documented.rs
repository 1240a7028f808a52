//! The page on tolerances contains the table of [`Tolerance::of`].
use irc_tensor::{DType, Tolerance};
use std::{fs, path::Path};

/// Name, `rel` and `abs` of a row.
fn row(line: &str) -> Option<(String, f64, f64)> {
    let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
    let (name, rel, abs) = (cells.next()?, cells.next()?, cells.next()?);
    Some((name.replace('`', ""), rel.parse().ok()?, abs.parse().ok()?))
}

#[test]
fn the_page_has_every_tolerance() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tolerances.md");
    let text = fs::read_to_string(&page).expect("docs/tolerances.md");
    let rows: Vec<_> = text.lines().filter_map(row).collect();
    for dtype in DType::ALL {
        let expected = Tolerance::of(dtype);
        assert_eq!(expected.rel, expected.rms, "the page gives one number for both");
        let own = rows.iter().find(|(name, ..)| name == dtype.name());
        let shared = rows.iter().find(|(name, ..)| name.starts_with("integers, bool"));
        let (_, rel, abs) = own.or(shared).expect("a row");
        assert_eq!((*rel, *abs), (expected.rel, expected.abs), "{}", dtype.name());
    }
}
