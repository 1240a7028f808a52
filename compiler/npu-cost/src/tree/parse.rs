//! The text of a tree.

use std::ops::Range;

use irc_diag::{Diagnostic, Sink, Source};

use crate::diagnostic::{Result, error};
use crate::network::Network;
use crate::partition::Scheme;
use crate::placement::Placement;

use super::{Cut, Kind, MAX_DEPTH, Tree};

/// A line: its depth, and its node without children.
struct Line {
    depth: usize,
    tree: Tree,
    /// Number of groups, for cuts.
    groups: u64,
    placement: Option<Placement>,
}

/// Parses a tree of a network's layers. Empty lines, and text after `#`, are ignored.
///
/// `None` if there are errors in `sink`: those of all lines that cannot be parsed, else the first in the
/// structure of the tree (`cost-tree-syntax`, `cost-tree-layer`, `cost-tree-scheme`,
/// `cost-tree-indent`, `cost-tree-batch`, `cost-tree-form`).
pub fn parse(source: &Source, network: &Network, sink: &mut Sink) -> Option<Tree> {
    parse_lines(source, network, sink, false).map(|(tree, _)| tree)
}

/// Parses a tree whose leaves state placements, and the placement of each layer. After its scheme, a leaf has the cores
/// of its parts, the DRAM of inputs, weights and result (`-` for none, `*` for all controllers), and possibly the pieces
/// along images, channels, rows and columns, and how often weights are fetched:
///
/// ```text
/// T 4/1
///     S 4/2
///         conv1 2 (B:1,K:2,H:2,W:1) 0,3,2,1 * * -
///         pool1 2 (B:2,K:1,H:1,W:1) 4,5 - - 2
/// ```
///
/// `None` if there are errors in `sink`, as of [`parse`].
pub fn parse_placed(
    source: &Source,
    network: &Network,
    sink: &mut Sink,
) -> Option<(Tree, Vec<Option<Placement>>)> {
    parse_lines(source, network, sink, true)
}

fn parse_lines(
    source: &Source,
    network: &Network,
    sink: &mut Sink,
    placed: bool,
) -> Option<(Tree, Vec<Option<Placement>>)> {
    if let Some(at) = source.invalid_utf8() {
        sink.push(*located("cost-tree-syntax", at..at, "the text is not UTF-8"));
        return None;
    }
    let (mut lines, mut at, before) = (vec![], 0, sink.error_count());
    for whole in source.text().split_inclusive('\n') {
        let text = whole.split('#').next().unwrap_or("").trim_end();
        match line(text, at, network, placed) {
            _ if text.is_empty() => {}
            Ok(line) => lines.push(line),
            Err(diagnostic) => sink.push(*diagnostic),
        }
        at += whole.len();
    }
    if sink.error_count() > before {
        return None;
    }
    let tree = build(&lines).map_err(|diagnostic| sink.push(*diagnostic)).ok()?;
    let mut placements = vec![None; network.nodes().len()];
    for line in lines {
        if let Kind::Leaf(layer, _) = line.tree.kind {
            placements[layer] = line.placement;
        }
    }
    Some((tree, placements))
}

fn located(code: &'static str, span: Range<usize>, message: &str) -> Box<Diagnostic> {
    Box::new(error(code, message).at(span, ""))
}

fn line(text: &str, at: usize, network: &Network, placed: bool) -> Result<Line> {
    let depth = text.len() - text.trim_start_matches('\t').len();
    let words = words(&text[depth..], at + depth);
    let span = at + depth..at + text.len();
    if text[depth..].starts_with(' ') {
        return Err(located("cost-tree-indent", span, "expected indentation by tabs"));
    }
    let [(name, of_name), (count, of_count), rest @ ..] = &words[..] else {
        return Err(located("cost-tree-syntax", span, "expected a name and a number of images"));
    };
    if let Some((batch, groups)) = count.split_once('/') {
        let cut = match (*name, rest) {
            ("T", []) => Cut::Time,
            ("S", []) => Cut::Space,
            _ => return Err(located("cost-tree-syntax", span, "expected T or S, images/groups")),
        };
        let batch = number(batch, of_count)?;
        let groups = number(groups, of_count)?;
        let tree = Tree { batch, kind: Kind::Cut(cut, vec![]), span: Some(span) };
        return Ok(Line { depth, tree, groups, placement: None });
    }
    let unknown = || unknown(name, of_name.clone(), network);
    let layer = network.find(name).ok_or_else(unknown)?;
    let scheme = |text: &str, span: &Range<usize>| {
        Scheme::parse(text).map_err(|found| Box::new(found.at(span.clone(), "")))
    };
    let (scheme, placement) = match rest {
        [] => (None, None),
        [(text, span)] => (Some(scheme(text, span)?), None),
        [(text, span), words @ ..] if placed => {
            let scheme = scheme(text, span)?;
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let over = words[0].1.start..span.end.max(at + text.len());
            let found = Placement::parse(scheme.partition, &all);
            let found = found.map_err(|found| Box::new(found.at(over, "")))?;
            (Some(found.scheme()), Some(found))
        }
        [_, (_, more), ..] => {
            return Err(located("cost-tree-syntax", more.clone(), "expected the end of the line"));
        }
    };
    let batch = number(count, of_count)?;
    Ok(Line {
        depth,
        tree: Tree { batch, kind: Kind::Leaf(layer, scheme), span: Some(span) },
        groups: 1,
        placement,
    })
}

/// Words with their spans.
fn words(text: &str, at: usize) -> Vec<(&str, Range<usize>)> {
    let place = |word: &str| at + (word.as_ptr() as usize - text.as_ptr() as usize);
    text.split_whitespace().map(|word| (word, place(word)..place(word) + word.len())).collect()
}

fn unknown(name: &str, span: Range<usize>, network: &Network) -> Box<Diagnostic> {
    let message = format!("{} has no layer {name}", network.name());
    located("cost-tree-layer", span, &message)
}

fn number(text: &str, span: &Range<usize>) -> Result<u64> {
    let number = text.parse().ok().filter(|number| *number > 0 && *number <= u64::from(u32::MAX));
    number.ok_or_else(|| located("cost-tree-batch", span.clone(), "expected a positive number"))
}

/// The tree of all lines.
fn build(lines: &[Line]) -> Result<Tree> {
    if lines.is_empty() {
        return Err(located("cost-tree-form", 0..0, "the tree has no node"));
    }
    let mut above = 0;
    for (i, line) in lines.iter().enumerate() {
        let span = line.tree.span.clone().unwrap_or_default();
        let below = matches!(i.checked_sub(1).map(|i| &lines[i].tree.kind), Some(Kind::Cut(..)));
        let deepest = if below { above + 1 } else { above };
        if (i == 0) != (line.depth == 0) {
            return Err(located("cost-tree-indent", span, "expected one node without indent"));
        }
        if line.depth > deepest {
            return Err(located(
                "cost-tree-indent",
                span,
                "expected at most one tab more than the parent",
            ));
        }
        if line.depth > MAX_DEPTH {
            let message = format!("expected a depth of at most {MAX_DEPTH}");
            return Err(located("cost-tree-form", span, &message));
        }
        above = line.depth;
    }
    node(lines).map(|(tree, _)| tree)
}

/// The node on the first line, and the number of lines of its subtree.
fn node(lines: &[Line]) -> Result<(Tree, usize)> {
    let (line, mut taken) = (&lines[0], 1);
    let mut tree = line.tree.clone();
    if let Kind::Cut(_, children) = &mut tree.kind {
        while lines.get(taken).is_some_and(|next| next.depth > line.depth) {
            let (child, more) = node(&lines[taken..])?;
            children.push(child);
            taken += more;
        }
        check_groups(line, children)?;
    }
    Ok((tree, taken))
}

/// Checks the groups that a cut states against its children's images.
fn check_groups(line: &Line, children: &[Tree]) -> Result<()> {
    let Some(child) = children.first() else { return Ok(()) };
    if child.batch.checked_mul(line.groups) == Some(line.tree.batch) {
        return Ok(());
    }
    let span = line.tree.span.clone().unwrap_or_default();
    let (images, groups) = (child.batch, line.groups);
    let message = format!("{groups} groups of {images} images are not {}", line.tree.batch);
    let diagnostic = located("cost-tree-batch", span, &message);
    Err(match child.span.clone() {
        Some(span) => Box::new(diagnostic.also(span, "the first child")),
        None => diagnostic,
    })
}
