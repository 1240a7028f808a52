//! Operators.

use crate::context::{Context, Lowered};

/// The domain of ONNX's own operators; files may also leave it empty.
pub const ONNX: &str = "ai.onnx";

/// The domain of operators of ONNX Runtime.
pub const MICROSOFT: &str = "com.microsoft";

/// The domain of operators of Common IR's own list; in files they have the domain of any library.
pub const ERA: &str = "common_ir";

/// The definition of an operator.
#[derive(Clone, Copy)]
pub struct Operator {
    /// Its domain.
    pub domain: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The versions of the operator set in which it changed, ascending, as far as they are
    /// supported.
    pub versions: &'static [i64],
    /// The version of the operator set that removed it.
    pub removed: Option<i64>,
    /// Lowers it to the tensor level.
    pub lower: fn(&mut Context<'_>) -> Lowered,
}

impl Operator {
    /// An operator of ONNX.
    pub const fn new(
        name: &'static str,
        versions: &'static [i64],
        lower: fn(&mut Context<'_>) -> Lowered,
    ) -> Self {
        Self { domain: ONNX, name, versions, removed: None, lower }
    }

    /// The operator in another domain.
    pub const fn in_domain(self, domain: &'static str) -> Self {
        Self { domain, ..self }
    }

    /// The operator, removed in a version.
    pub const fn removed_in(self, version: i64) -> Self {
        Self { removed: Some(version), ..self }
    }

    /// The version of the operator that applies in an operator set of that version.
    pub fn version_in(&self, opset: i64) -> Option<i64> {
        if self.removed.is_some_and(|removed| opset >= removed) {
            return None;
        }
        self.versions.iter().copied().rfind(|version| *version <= opset)
    }
}

/// Normalises a domain.
pub(crate) fn canonical(domain: &str) -> &str {
    if domain.is_empty() { ONNX } else { domain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_before() {
        let operator = Operator::new("X", &[1, 7, 13], |_| Ok(vec![])).removed_in(20);
        let found: Vec<_> = [0, 1, 6, 7, 19, 20].map(|opset| operator.version_in(opset)).into();
        assert_eq!(found, [None, Some(1), Some(1), Some(7), Some(13), None]);
    }
}
