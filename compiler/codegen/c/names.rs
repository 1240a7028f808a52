//! The C names of a module's symbols.
//!
//! A symbol keeps its name if it cannot collide with a name of C, its library or this folder: C's own names
//! are one word in lower case, or end in `_t`; locals here are letters and a number, and helpers begin with
//! `c_`. Another symbol gets a name that begins with `c_`, and an assembler label with its own name.

/// Names of two words in the C library.
const TAKEN: [&str; 6] =
    ["aligned_alloc", "at_quick_exit", "explicit_bzero", "posix_memalign", "quick_exit", "va_list"];

/// Suffixes of names of the C library and of compilers.
const ENDS: [&str; 4] = ["_t", "_r", "_unlocked", "__"];

/// Whether a symbol can keep its name.
pub fn is_plain(name: &str) -> bool {
    let first = name.chars().next();
    let own = name.starts_with("__TVM") || name.starts_with("__tvm");
    let letters = first.is_some_and(|first| first.is_ascii_alphabetic() || own);
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let lower = name.chars().any(|c| c.is_ascii_lowercase());
    let joined = name.contains('_') || name.chars().any(|c| c.is_ascii_uppercase());
    let free = !TAKEN.contains(&name) && !ENDS.iter().any(|end| name.ends_with(end));
    letters && name.chars().all(word) && lower && joined && free && !name.starts_with("c_")
}

/// The name of a symbol that cannot keep its own: the `index`th of the module.
pub fn substitute(name: &str, index: usize) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("c_{index}_{}", name.chars().map(word).collect::<String>())
}

/// The assembler label of a symbol that has another name in C.
pub fn label(name: &str) -> Option<String> {
    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
    (!is_plain(name)).then(|| format!("__asm__(\"{escaped}\")"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_c_may_have_are_not_kept() {
        for name in ["irc_run", "irc_kernel_0f", "TVMSystemLibEntryPoint", "__TVMFuncCall", "g0_k"]
        {
            assert!(is_plain(name), "{name}");
        }
        for name in
            ["exp", "main", "v1", "int", "uint8_t", "lgamma_r", "c_load", "a.b", "INT_MAX", ""]
        {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn the_linker_knows_a_symbol_by_its_own_name() {
        assert_eq!(label("irc_run"), None);
        assert_eq!(label("a\"b").as_deref(), Some("__asm__(\"a\\\"b\")"));
        assert_eq!(substitute("a.b", 3), "c_3_a_b");
    }
}
