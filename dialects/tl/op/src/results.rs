//! Selection of the outputs of a program.

use std::fmt;
use std::str::FromStr;

/// Which values of a source program are outputs of its graph.
///
/// As text: `all`, `outputs`, or names separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Results {
    /// Every named value that the source computes, including intermediate ones.
    All,
    /// The outputs of the source, or values that nothing in it reads.
    #[default]
    Outputs,
    /// The values with these names, each once, in this order.
    Named(Vec<String>),
}

impl FromStr for Results {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::All),
            "outputs" => return Ok(Self::Outputs),
            _ => {}
        }
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err(format!(
                "expected 'all', 'outputs' or names separated by commas, found '{text}'"
            ));
        }
        Ok(Self::Named(names))
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Outputs => f.write_str("outputs"),
            Self::Named(names) => f.write_str(&names.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gives_the_same_results_back() {
        let named = Results::Named(vec!["x".into(), "y.1".into()]);
        for results in [Results::All, Results::Outputs, named] {
            assert_eq!(results.to_string().parse(), Ok(results));
        }
        let error = "x,,y".parse::<Results>().expect_err("a name is missing");
        assert!(error.contains("found 'x,,y'"), "{error}");
    }
}
