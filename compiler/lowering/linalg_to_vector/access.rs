//! Affine accesses: the element of a buffer that an iteration accesses.
use super::error::Result;

/// The element `offset + sum(coefs[d] * iv[d])` of a linear buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The element accessed by the first iteration.
    pub offset: i64,
    /// The stride of each loop, in elements.
    pub coefs: Vec<i64>,
}

impl Access {
    /// The index of the last element accessed minus that of the first, over loops of these sizes
    /// (coefficients >= 0).
    pub fn span(&self, from: usize, sizes: &[i64]) -> i64 {
        let terms = self.coefs.iter().zip(sizes).skip(from);
        terms.map(|(coef, size)| coef * (size - 1)).sum()
    }

    /// This access with permuted loops: loop `d` of the new order is loop `order[d]` of the old one.
    pub fn permuted(&self, order: &[usize]) -> Self {
        Self { offset: self.offset, coefs: order.iter().map(|d| self.coefs[*d]).collect() }
    }
}

/// One result of an affine map: `constant + sum(coefs[d] * d)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linear {
    /// The constant term.
    pub constant: i64,
    /// The coefficient of each dimension.
    pub coefs: Vec<i64>,
}

impl Linear {
    /// The dimension, if the expression is exactly one dimension.
    pub fn as_dim(&self) -> Option<usize> {
        let used: Vec<_> = (0..self.coefs.len()).filter(|d| self.coefs[*d] != 0).collect();
        match used[..] {
            [dim] if self.constant == 0 && self.coefs[dim] == 1 => Some(dim),
            _ => None,
        }
    }
}

/// Parses `affine_map<(d0, d1) -> (d1, d0 * 2 + 1)>`.
///
/// # Errors
/// A message, for symbols, `mod`, `floordiv`, `ceildiv` and products of dimensions.
pub fn parse_map(text: &str) -> Result<Vec<Linear>, String> {
    let body = text.strip_prefix("affine_map<").and_then(|rest| rest.strip_suffix('>'));
    let (dims, results) = body
        .and_then(|body| body.split_once("->"))
        .ok_or_else(|| format!("expected an affine map, found '{text}'"))?;
    let inner = |part: &str| -> String {
        part.trim().trim_start_matches('(').trim_end_matches(')').to_owned()
    };
    let names = inner(dims);
    if names.contains('[') || results.contains('(') && results.trim()[1..].contains('(') {
        return Err(format!("expected plain dimensions and sums in '{text}'"));
    }
    let names: Vec<&str> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let results = inner(results);
    let expressions = results.split(',').map(str::trim).filter(|expr| !expr.is_empty());
    expressions.map(|expr| parse_linear(expr, &names)).collect()
}

fn parse_linear(expr: &str, names: &[&str]) -> Result<Linear, String> {
    let mut linear = Linear { constant: 0, coefs: vec![0; names.len()] };
    let spaced = expr.replace(" - ", " + -");
    for term in spaced.split(" + ") {
        let mut coef = 1;
        let mut dim = None;
        for factor in term.split('*').map(str::trim) {
            let (factor, sign) = match factor.strip_prefix('-') {
                Some(rest) => (rest, -1),
                None => (factor, 1),
            };
            match (factor.parse::<i64>(), names.iter().position(|name| *name == factor)) {
                (Ok(number), _) => coef *= sign * number,
                (_, Some(found)) if dim.is_none() => (coef, dim) = (coef * sign, Some(found)),
                _ => return Err(format!("expected a sum of scaled dimensions, found '{expr}'")),
            }
        }
        match dim {
            Some(dim) => linear.coefs[dim] += coef,
            None => linear.constant += coef,
        }
    }
    Ok(linear)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_sums_products_and_constants() {
        let map = parse_map("affine_map<(d0, d1) -> (d1, d0 * 2 + d1 - 3, 5)>").unwrap();
        assert_eq!(map[0].as_dim(), Some(1));
        assert_eq!(map[1], Linear { constant: -3, coefs: vec![2, 1] });
        assert_eq!(map[2], Linear { constant: 5, coefs: vec![0, 0] });
        assert_eq!(parse_map("affine_map<(d0) -> ()>").unwrap(), vec![]);
    }

    #[test]
    fn rejects_what_is_not_linear() {
        assert!(parse_map("affine_map<(d0) -> (d0 floordiv 2)>").is_err());
        assert!(parse_map("affine_map<(d0)[s0] -> (d0 + s0)>").is_err());
        assert!(parse_map("affine_map<(d0, d1) -> (d0 * d1)>").is_err());
    }
}
