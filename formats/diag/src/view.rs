//! The part of a source one diagnostic shows: its labelled lines, long ones clipped round the labels.
//!
//! The renderer sees this small text instead of the whole file, so a model written on one line of
//! a megabyte costs a window of one line.

use std::ops::Range;

use codespan_reporting::files::{Error, Files};

use crate::{Diagnostic, Source, order::sorted, source::floor_boundary};

/// Shown where text was cut away.
const CUT: &str = "…";

/// One shown line.
struct Line {
    /// Line number in the source, from one.
    number: usize,
    /// Byte range of the whole line in the source.
    original: Range<usize>,
    /// Byte range of the shown part in the source.
    shown: Range<usize>,
    /// Byte range in the text of the view, line ending included.
    range: Range<usize>,
    /// Bytes of the cut mark before the shown part.
    lead: usize,
}

/// The shown text of one diagnostic.
pub(crate) struct View<'a> {
    source: &'a Source,
    text: String,
    lines: Vec<Line>,
}

impl<'a> View<'a> {
    /// The lines of `diagnostic`'s labels, each at most about `width` bytes.
    pub(crate) fn new(source: &'a Source, diagnostic: &Diagnostic, width: usize) -> Self {
        let mut view = View { source, text: String::new(), lines: vec![] };
        // Primary labels first: on a long line the window is laid round the first label seen.
        let of = |primary: bool| diagnostic.labels.iter().filter(move |it| it.primary == primary);
        let mut windows: Vec<(Range<usize>, usize)> = vec![];
        for label in of(true).chain(of(false)) {
            let line = source.line_range(label.span.start);
            if !windows.iter().any(|(seen, _)| *seen == line) {
                windows.push((line, label.span.start));
            }
        }
        let windows = sorted(windows, |(a, _), (b, _)| a.start.cmp(&b.start));
        windows.into_iter().for_each(|(line, focus)| view.push_line(line, focus, width));
        view
    }

    fn push_line(&mut self, original: Range<usize>, focus: usize, width: usize) {
        let source_text = self.source.text();
        let (mut start, mut end) = (original.start, original.end);
        if original.len() > width {
            start = focus.saturating_sub(width / 3).clamp(original.start, original.end);
            start = floor_boundary(source_text, start).max(original.start);
            end = floor_boundary(source_text, start + width).clamp(start, original.end);
        }
        let at = self.text.len();
        let lead = if start > original.start { CUT.len() } else { 0 };
        self.text.push_str(&CUT[..lead]);
        self.text.push_str(&source_text[start..end]);
        if end < original.end {
            self.text.push_str(CUT);
        }
        self.text.push('\n');
        let number = self.source.line_column(start).0;
        let range = at..self.text.len();
        self.lines.push(Line { number, original, shown: start..end, range, lead });
    }

    /// Where a byte range of the source lies in the shown text: its part on its first line.
    /// `None` when that part was cut away.
    pub(crate) fn place(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let start = self.source.floor(span.start);
        let inside = |line: &&Line| line.shown.start <= start && start <= line.shown.end;
        let line = self.lines.iter().find(inside)?;
        let end = self.source.floor(span.end).clamp(start, line.shown.end);
        let base = line.range.start + line.lead;
        Some(base + (start - line.shown.start)..base + (end - line.shown.start))
    }
}

impl<'f> Files<'f> for View<'_> {
    type FileId = ();
    type Name = &'f str;
    type Source = &'f str;

    fn name(&'f self, (): ()) -> Result<&'f str, Error> {
        Ok(self.source.name())
    }

    fn source(&'f self, (): ()) -> Result<&'f str, Error> {
        Ok(&self.text)
    }

    fn line_index(&'f self, (): (), byte: usize) -> Result<usize, Error> {
        let after = self.lines.iter().position(|line| byte < line.range.end);
        Ok(after.unwrap_or(self.lines.len().saturating_sub(1)))
    }

    fn line_number(&'f self, (): (), index: usize) -> Result<usize, Error> {
        Ok(self.lines.get(index).map_or(index + 1, |line| line.number))
    }

    fn column_number(&'f self, (): (), index: usize, byte: usize) -> Result<usize, Error> {
        let Some(line) = self.lines.get(index) else { return Ok(1) };
        let into = byte.saturating_sub(line.range.start + line.lead);
        let offset = self.source.floor((line.shown.start + into).min(line.original.end));
        Ok(self.source.text()[line.original.start..offset].chars().count() + 1)
    }

    fn line_range(&'f self, (): (), index: usize) -> Result<Range<usize>, Error> {
        let too_large = Error::LineTooLarge { given: index, max: self.lines.len() };
        self.lines.get(index).map(|line| line.range.clone()).ok_or(too_large)
    }
}
