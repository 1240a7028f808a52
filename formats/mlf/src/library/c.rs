//! Functions that a C source defines.
//!
//! A function is a name, parameters in parentheses, and a body in braces, outside of all braces but
//! those of `extern "C"`. What macros make is not seen.

use irc_diag::literal_length;

/// Names of the functions that a source defines for others, which `static` ones are not; a name that is
/// defined twice comes twice.
pub(super) fn functions(source: &str) -> Vec<String> {
    let mut found = vec![];
    let (mut braces, mut parentheses) = (0usize, 0usize);
    // The word before the parentheses, and whether they have just closed.
    let (mut word, mut named, mut is_closed) = ("", "", false);
    let mut is_static = false;
    for token in tokens(source) {
        match token {
            "{" if braces == 0 && is_closed => {
                found.extend((!is_static).then(|| named.to_owned()));
                braces = 1;
            }
            // What stands in `extern "C" {` is outside as well.
            "{" if braces == 0 && word == "extern" => {}
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                is_static &= braces > 0;
            }
            _ if braces > 0 => continue,
            ";" => is_static = false,
            "static" => is_static = true,
            "(" => {
                if parentheses == 0 {
                    named = word;
                }
                parentheses += 1;
            }
            ")" => parentheses = parentheses.saturating_sub(1),
            _ if is_word(token) => word = token,
            _ => word = "",
        }
        is_closed = token == ")" && parentheses == 0 && !named.is_empty();
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Words and single characters, without spaces, comments, literals and lines of the preprocessor.
fn tokens(source: &str) -> impl Iterator<Item = &str> {
    let mut rest = source;
    let mut is_line_start = true;
    std::iter::from_fn(move || {
        loop {
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace());
            is_line_start |= rest[..rest.len() - trimmed.len()].contains('\n');
            let first = trimmed.chars().next()?;
            let length = match first {
                '#' if is_line_start => directive(trimmed),
                '/' if trimmed.starts_with("//") => trimmed.find('\n').unwrap_or(trimmed.len()),
                '/' if trimmed.starts_with("/*") => {
                    let mut ends = trimmed.as_bytes()[2..].windows(2);
                    ends.position(|two| two == b"*/").map_or(trimmed.len(), |end| end + 4)
                }
                '"' | '\'' => literal_length(trimmed, first),
                _ => {
                    let end = trimmed.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    let length = end.unwrap_or(trimmed.len()).max(first.len_utf8());
                    rest = &trimmed[length..];
                    is_line_start = false;
                    return Some(&trimmed[..length]);
                }
            };
            rest = &trimmed[length..];
        }
    })
}

/// Length of a line of the preprocessor, with the lines that continue it.
fn directive(text: &str) -> usize {
    let ends = text.match_indices('\n').map(|(end, _)| end);
    ends.into_iter()
        .find(|end| !text[..*end].trim_end_matches('\r').ends_with('\\'))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_told_from_everything_else() {
        let source = r#"
            #define SKIP(x) \
              void made(void) { }
            /* int comment(void) { } */
            extern "C" {
            TVM_DLL int32_t declared(void* args);
            }
            #ifdef __cplusplus
            extern "C"
            #endif
            TVM_DLL int32_t first(void* args, int32_t (*f)(int)) { if (called(args)) { return 1; } }
            static const char* names = "int text(void) { }";
            __attribute__((visibility("default"))) int second(void)
            {
              for (;;) { }
            }
            static const F table[] = { first };
            static inline int own(void) { return 0; }
        "#;
        assert_eq!(functions(source), ["first", "second"]);
    }

    #[test]
    fn text_that_is_no_source_ends() {
        for text in ["", "\"", "/*", "#", "((((", "}}}}", "é{", "'\\", "f(){"] {
            functions(text);
        }
    }
}
