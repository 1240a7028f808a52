//! Checks that retired words do not return: one word per thing, as in `docs/glossary.md`; and that texts
//! with a constant are not written out.
//!
//! A row is added when a word has been replaced everywhere.

use crate::metadata::{self, text};
use regex::{Regex, RegexSet};
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// A retired word, or a text that has a constant.
struct Rule {
    /// The pattern, in the syntax of the crate `regex`, with ASCII word boundaries.
    pattern: &'static str,
    /// The replacement.
    instead: &'static str,
    /// Folders and files in which it is allowed.
    allowed: &'static [&'static str],
}

const fn rule(pattern: &'static str, instead: &'static str) -> Rule {
    Rule { pattern, instead, allowed: &[] }
}

const RULES: &[Rule] = &[
    rule(
        r"\bFindings?\b|\bfindings\b|\b(a|the|each|every|no|one|this|its) finding\b",
        "diagnostic",
    ),
    rule(r"\b(MOST|LONGEST|LEAST)_[A-Z]", "MAX_ or MIN_"),
    rule(r"(?i)\bnothing when\b", "`None` when"),
    rule(r"\bFound<", "`Result<`, or a noun for what was found"),
    rule(r"(?i)\bnot built yet\b", "not implemented yet"),
    rule(r"(?i)\btold apart\b", "distinguished, or detected"),
    rule(r"(?i)\bsizes that are true\b", "exact sizes"),
    rule(r"(?i)\bin a circle\b", "in a cycle"),
    rule(
        r"\b(enum|struct|type) (Failure|Fault|Broken|Refusal|Refused|Trouble|Stop)\b",
        "`Error`, or `XError` where two are in scope",
    ),
    rule(
        r"\b(enum|struct|type) (Drawn|Held|Kept|Made|Placed|Said|Seen|Taken|Told|Wanted)\b",
        "a noun of the field",
    ),
    rule(r"\bconst (MOST|LONGEST|LEAST)\b", "MAX, MIN, or MAX_ and what it limits"),
    rule(r"(?i)\b(\w*_)?refus(e|es|ed|al|als)(_\w*)?\b", "reject"),
    rule(r"(?i)\basked\b", "requested, or required"),
    rule(r"(?i)\blies_as\b", "has_strides, or what is compared"),
    Rule {
        pattern: r#""((arith|cf|func|linalg|math|memref|scf|tensor|vector)\.([a-z_][a-z0-9_]+)?|llvm\.[a-z0-9_.]*)""#,
        instead: "the constant of the op in `irc_mlir::ops`",
        allowed: &[
            "compiler/archive/common.mlir",
            "compiler/attributes/mod.rs",
            "compiler/lowering/emit_gpu_entry/device.mlir",
            // Intrinsics of LLVM, which are not ops.
            "compiler/codegen/inst.rs",
            "compiler/codegen/intrinsic.rs",
            "compiler/codegen/saturate.rs",
            "compiler/lowering/linalg_to_vector/tests.rs",
            "compiler/tests",
            "dialects/mlir/src/ops.rs",
            "dialects/tests",
            "docs",
            "lit_tests",
            "tests",
        ],
    },
    rule(r"\b(is|are|was|were|be) told\b", "reported, stated or known"),
    rule(
        r"\b[Aa] sound (archive|document|file|graph|listing|model|package|plan|schedule|tree)\b",
        "valid",
    ),
    rule(r"\bwithout a word\b", "without a diagnostic"),
    rule(r"\bgo together\b", "match"),
    rule(r"\b(at one remove|if need be)\b", "plain words"),
    rule(r"\bmakes? no sense\b", "is invalid"),
    rule(r"\bbehind one another\b", "concatenated, or one after another"),
];

/// Files that list retired words.
const LISTS: [&str; 2] = ["docs/glossary.md", "tools/xtask/src/tidy.rs"];

const SUFFIXES: [&str; 10] = ["c", "h", "md", "mlir", "py", "rs", "sh", "td", "test", "toml"];

/// Checks all source files and pages of the repository.
///
/// # Errors
/// Every retired word, with its location and replacement.
pub fn run() -> Result<(), String> {
    let workspace = metadata::read(&["--no-deps"])?;
    let root = Path::new(text(&workspace, "workspace_root"));
    let words = Words::new()?;
    let mut errors = Vec::new();
    for name in files(root).map_err(|error| format!("cannot list the files: {error}"))? {
        match fs::read_to_string(root.join(&name)) {
            Ok(contents) => errors.extend(words.check(&name, &contents)),
            // A deleted file is listed until the deletion is committed; others are not text.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
            }
            Err(error) => return Err(format!("cannot read {name}: {error}")),
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

/// Paths, relative to the root, of the files that git tracks or would add.
fn files(root: &Path) -> io::Result<Vec<String>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").current_dir(root).args(arguments).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    let is_text = |name: &str| {
        let suffix = Path::new(name).extension().and_then(|suffix| suffix.to_str());
        suffix.is_some_and(|suffix| SUFFIXES.contains(&suffix))
    };
    Ok(names.lines().filter(|name| is_text(name)).map(str::to_owned).collect())
}

/// The rules, compiled.
struct Words {
    any: RegexSet,
    each: Vec<Regex>,
}

impl Words {
    fn new() -> Result<Self, String> {
        // Without Unicode word boundaries, the search is fast on files that are not ASCII.
        let patterns: Vec<String> =
            RULES.iter().map(|rule| format!("(?-u){}", rule.pattern)).collect();
        let each = patterns.iter().map(|pattern| Regex::new(pattern));
        let each = each.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let any = RegexSet::new(&patterns).map_err(|error| error.to_string())?;
        Ok(Self { any, each })
    }

    /// The retired words in a file.
    fn check(&self, name: &str, contents: &str) -> Vec<String> {
        let below = |folder: &&str| {
            name.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
        };
        let mut errors = Vec::new();
        if LISTS.contains(&name) {
            return errors;
        }
        for index in self.any.matches(contents) {
            let rule = &RULES[index];
            if rule.allowed.iter().any(below) {
                continue;
            }
            for (line, found) in contents.lines().enumerate().filter_map(|(line, contents)| {
                self.each[index].find(contents).map(|found| (line + 1, found.as_str()))
            }) {
                errors.push(format!("{name}:{line}: found `{found}`, expected {}", rule.instead));
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_has_no_retired_words() {
        if let Err(errors) = run() {
            panic!("{errors}");
        }
    }

    #[test]
    fn a_retired_word_is_reported_where_it_is_not_allowed() {
        let words = Words::new().expect("valid patterns");
        let text = "// A name.\nconst MOST_NODES: usize = 1;\n";
        assert_eq!(
            words.check("formats/ark/src/lib.rs", text),
            ["formats/ark/src/lib.rs:2: found `MOST_N`, expected MAX_ or MIN_"]
        );
        let literal = "let name = \"arith.addf\";\n";
        assert!(words.check("compiler/tests/kernels.rs", literal).is_empty());
        assert_eq!(words.check("compiler/tests-2/kernels.rs", literal).len(), 1);
        assert!(words.check("docs/glossary.md", text).is_empty());
        assert!(words.check("runtime/src/lib.rs", "for finding such code").is_empty());
        for literal in ["\"arith.addf\"", "\"math.\"", "\"llvm.mlir.constant\""] {
            assert_eq!(words.check("compiler/kernel/emit.rs", literal).len(), 1, "{literal}");
            assert!(words.check("dialects/mlir/src/ops.rs", literal).is_empty(), "{literal}");
        }
        for other in ["\"math.h\"", "\"llvm.func @f()\"", "\"tl.add\""] {
            assert!(words.check("compiler/kernel/emit.rs", other).is_empty(), "{other}");
        }
    }

    #[test]
    fn every_allowed_path_exists() {
        let workspace = metadata::read(&["--no-deps"]).expect("a workspace");
        let root = Path::new(text(&workspace, "workspace_root"));
        for path in RULES.iter().flat_map(|rule| rule.allowed).chain(&LISTS) {
            assert!(root.join(path).exists(), "{path} does not exist");
        }
    }
}
