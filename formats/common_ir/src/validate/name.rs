//! Names: identifiers, keywords, domains.

use super::{Checker, Rule};
use crate::model::{Path, is_identifier};

const KEYWORDS: &[&str] = &[
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while",
];

/// Top-level domains of more than two letters that reversed names start with.
const TOP_LEVEL: &[&str] = &[
    "aero",
    "app",
    "arpa",
    "biz",
    "cloud",
    "com",
    "coop",
    "dev",
    "edu",
    "example",
    "gov",
    "info",
    "int",
    "invalid",
    "local",
    "localhost",
    "mil",
    "mobi",
    "museum",
    "name",
    "net",
    "org",
    "pro",
    "test",
    "xyz",
];

impl Checker<'_> {
    /// Checks the syntax of a name, if it is present.
    pub(super) fn name(&mut self, what: &str, name: Option<&str>, at: &Path<'_>) {
        let Some(name) = name else { return };
        if !is_identifier(name) {
            self.report(Rule::R20, at, format_args!("{what} `{name}` is not an identifier of C"));
        } else if KEYWORDS.binary_search(&name).is_ok() {
            self.report(Rule::R25, at, format_args!("{what} `{name}` is a keyword of C"));
        }
    }

    /// Checks the domain of the document.
    pub(super) fn domain(&mut self, domain: &str, at: &Path<'_>) {
        if let Some(error) = domain_error(domain) {
            let message = format_args!("the domain `{domain}` is not a DNS name: {error}");
            return self.report(Rule::R05, at, message);
        }
        let first = domain.split('.').next().unwrap_or_default();
        let is_country = first.len() == 2 && first.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_known = TOP_LEVEL.binary_search(&first.to_ascii_lowercase().as_str()).is_ok();
        if !domain.contains('.') || !(is_country || is_known) {
            let message =
                format_args!("the domain `{domain}` does not start with a top-level domain");
            self.report(Rule::R06, at, message);
        }
    }
}

/// The reason why a name is not a DNS name.
fn domain_error(domain: &str) -> Option<String> {
    if domain.len() > 253 {
        return Some(format!("it has {} characters, at most 253", domain.len()));
    }
    domain.split('.').find_map(|label| {
        let is_ldh = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if label.is_empty() {
            Some("a label is empty".to_owned())
        } else if label.len() > 63 {
            Some(format!("a label has {} characters, at most 63", label.len()))
        } else if !label.bytes().all(is_ldh) {
            Some(format!("label `{label}` has other characters than letters, digits, hyphens"))
        } else if label.starts_with('-') || label.ends_with('-') {
            Some(format!("label `{label}` starts or ends with a hyphen"))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(KEYWORDS.is_sorted() && TOP_LEVEL.is_sorted());
    }

    #[test]
    fn domains_are_dns_names() {
        let long = format!("com.{}", "a".repeat(64));
        let longer = ["a"; 128].join(".");
        for wrong in ["com..x", "a_b", "-x.com", "com.x-", "", ".com", &long, &longer] {
            assert!(domain_error(wrong).is_some(), "{wrong}");
        }
        for right in ["com.example.nn", "ai", "xn--p1ai.3m", "a-b.c"] {
            assert_eq!(domain_error(right), None, "{right}");
        }
    }
}
