//! Pure: aligned text for people. Every cell is made harmless here, so that no caller can forget to.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::safe;

/// How a piece of text looks on a terminal with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    Plain,
    /// Works.
    Good,
    /// Does not work.
    Bad,
    /// Needs a look.
    Warn,
    /// Less important.
    Dim,
    /// A heading.
    Bold,
}

/// A piece of text of one style.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text in a style; control characters are shown as escapes.
    pub(crate) fn new(text: &str, style: Style) -> Self {
        Self { text: safe::line(text), style }
    }

    /// The text as it is written.
    pub(crate) fn paint(&self, colour: bool) -> String {
        let code = match self.style {
            Style::Plain => None,
            Style::Good => Some("32"),
            Style::Bad => Some("31"),
            Style::Warn => Some("33"),
            Style::Dim => Some("2"),
            Style::Bold => Some("1"),
        };
        match code {
            Some(code) if colour && !self.text.is_empty() => format!("\u{1b}[{code}m{}\u{1b}[0m", self.text),
            _ => self.text.clone(),
        }
    }

    fn width(&self) -> usize {
        self.text.width()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, Style::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(&text, Style::Plain)
    }
}

/// Rows under headings, each column as wide as its widest cell on a terminal: a CJK character takes two places.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these headings; the default one has none.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| Cell::new(heading, Style::Bold)).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// The lines, each ended by a line feed; without trailing blanks.
    pub(crate) fn render(&self, colour: bool) -> String {
        align(&self.rows, "", colour)
    }
}

/// Names and values, one pair a line, the values aligned. Pairs with an empty value are left out.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    rows: Vec<Vec<Cell>>,
}

impl Fields {
    /// Adds a pair unless the value is empty.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Cell>) -> Self {
        let value = value.into();
        if !value.text.is_empty() {
            self.rows.push(vec![Cell::new(&format!("{name}:"), Style::Dim), value]);
        }
        self
    }

    /// The lines, each ended by a line feed, each after `indent`.
    pub(crate) fn render(&self, indent: &str, colour: bool) -> String {
        align(&self.rows, indent, colour)
    }
}

/// The beginning of a line, at most `width` places of the terminal wide.
pub(crate) fn fit(line: &str, width: usize) -> &str {
    let mut taken = 0;
    for (place, character) in line.char_indices() {
        taken += character.width().unwrap_or(0);
        if taken > width {
            return &line[..place];
        }
    }
    line
}

fn align(rows: &[Vec<Cell>], indent: &str, colour: bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        out.push_str(indent);
        // Blanks are owed until a cell with text follows: no line ends in blanks.
        let mut owed = 0;
        for (cell, width) in row.iter().zip(&widths) {
            if !cell.text.is_empty() {
                out.push_str(&" ".repeat(owed));
                out.push_str(&cell.paint(colour));
                owed = 0;
            }
            owed += width.saturating_sub(if cell.text.is_empty() { 0 } else { cell.width() }) + 2;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_width_on_the_terminal_and_cells_cannot_break_out() {
        let mut table = Table::new(&["NAME", "STATE", "NOTE"]);
        table.row(["orders".into(), Cell::new("healthy", Style::Good), "".into()]);
        table.row(["订单".into(), "failing".into(), "a\u{1b}[2J\nb".into()]);
        table.row(["x".into(), "".into(), "late".into()]);
        insta::assert_snapshot!(table.render(false), @r"
        NAME    STATE    NOTE
        orders  healthy
        订单    failing  a\x1b[2J\nb
        x                late
        ");
        assert!(table.render(true).contains("\u{1b}[32mhealthy\u{1b}[0m\n"));
    }

    #[test]
    fn a_line_is_cut_before_the_place_where_it_would_wrap() {
        assert_eq!((fit("订单 ok", 4), fit("订单 ok", 3), fit("ok", 9)), ("订单", "订", "ok"));
    }

    #[test]
    fn a_field_without_a_value_is_left_out() {
        let fields = Fields::default().with("Name", "orders").with("Description", "").with("URL", "http://x");
        insta::assert_snapshot!(fields.render("  ", false), @"
          Name:  orders
          URL:   http://x
        ");
    }
}
