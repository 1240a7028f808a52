//! The numbers of the page as JSON.

use super::{Page, put};

pub fn write(text: &mut String, page: &Page<'_>) {
    put(
        text,
        format_args!(
            "<script id=\"data\" type=\"application/json\">{{\"cycles\":{}",
            page.timing.cycles
        ),
    );
    let segments = page.table.segments.iter().map(|segment| {
        format!(
            "{{\"name\":{},\"compute\":{},\"noc\":{},\"dram\":{},\"dram_bytes\":{},\"simulated\":{}}}",
            quoted(&segment.name),
            segment.compute,
            segment.links,
            segment.dram,
            segment.dram_bytes,
            segment.simulated
        )
    });
    put(text, format_args!(",\"segments\":[{}]", segments.collect::<Vec<_>>().join(",")));
    let links = page
        .table
        .carried
        .links
        .iter()
        .map(|(((x0, y0), (x1, y1)), bytes)| format!("[{x0},{y0},{x1},{y1},{bytes}]"));
    put(text, format_args!(",\"links\":[{}]", links.collect::<Vec<_>>().join(",")));
    let cores = page.program.cores.iter().map(|core| core.id.to_string());
    put(text, format_args!(",\"cores\":[{}]}}</script>\n", cores.collect::<Vec<_>>().join(",")));
}

/// A JSON string that does not end a script.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => put(&mut out, format_args!("\\{letter}")),
            '<' | '\u{0}'..='\u{1f}' => put(&mut out, format_args!("\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_end_the_script() {
        assert_eq!(quoted("a\"</script>\n"), r#""a\"\u003c/script>\u000a""#);
    }
}
