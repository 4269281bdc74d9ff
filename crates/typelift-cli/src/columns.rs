//! Text in columns, and numbers for reading.

use anstyle::Style;
use typelift::findings::grouped;
use unicode_width::UnicodeWidthStr;

use crate::fit;

pub(crate) const HEAD: Style = Style::new().bold();
pub(crate) const PLAIN: Style = Style::new();
pub(crate) const FAINT: Style = Style::new().dimmed();

pub(crate) const GAP: usize = 2;

/// The smallest width of a column whose words are wrapped.
const LEAST: usize = 12;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Lines of text in columns, as wide as their widest text. A column without text takes no room.
pub(crate) struct Columns {
    sides: Vec<Side>,
    rows: Vec<(Style, Vec<String>)>,
}

impl Columns {
    pub(crate) fn new(sides: impl Into<Vec<Side>>) -> Self {
        Self { sides: sides.into(), rows: Vec::new() }
    }

    pub(crate) fn headed<const N: usize>(sides: [Side; N], head: [&str; N]) -> Self {
        Self { sides: sides.into(), rows: vec![(HEAD, head.map(str::to_owned).into())] }
    }

    pub(crate) fn push(&mut self, style: Style, row: impl Into<Vec<String>>) {
        self.rows.push((style, row.into()));
    }

    pub(crate) fn print(&self) -> String {
        self.lines().collect()
    }

    /// The text of [`Self::print`], a row at a time. If rows do not fit the terminal, words are wrapped within
    /// their column.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let widths = self.widths();
        self.rows.iter().map(move |(style, row)| {
            let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, &width)| fit::broken(cell, width, 0)).collect();
            let height = cells.iter().map(|cell| cell.lines().count()).max().unwrap_or(0).max(1);
            let mut text = style.to_string();
            for number in 0..height {
                let mut line = String::new();
                for ((side, cell), width) in self.sides.iter().zip(&cells).zip(&widths).filter(|(_, width)| **width > 0)
                {
                    let cell = cell.lines().nth(number).unwrap_or("");
                    let room = " ".repeat(width.saturating_sub(cell.width()));
                    line += &match side {
                        Side::Left => format!("{cell}{room}"),
                        Side::Right => format!("{room}{cell}"),
                    };
                    line += &" ".repeat(GAP);
                }
                text += line.trim_end();
                text += if number + 1 < height { "\n" } else { "" };
            }
            format!("{text}{style:#}\n")
        })
    }

    /// The width of each column. On a narrow terminal, the left-aligned columns after the first share the
    /// remaining width.
    fn widths(&self) -> Vec<usize> {
        let number = self.sides.len();
        let mut widths: Vec<usize> =
            (0..number).map(|at: usize| self.rows.iter().map(|(_, row)| row[at].width()).max().unwrap_or(0)).collect();
        let Some(columns) = fit::columns() else { return widths };
        let room = columns.saturating_sub(GAP * number.saturating_sub(1));
        let mut sharing: Vec<usize> = (1..number).filter(|&at| self.sides[at] == Side::Left).collect();
        while widths.iter().sum::<usize>() > room && !sharing.is_empty() {
            let others: usize = (0..number).filter(|at| !sharing.contains(at)).map(|at| widths[at]).sum();
            let share = (room.saturating_sub(others) / sharing.len()).max(LEAST);
            let before = sharing.len();
            sharing.retain(|&at| widths[at] > share);
            if sharing.len() == before {
                sharing.iter().for_each(|&at| widths[at] = share);
                break;
            }
        }
        widths
    }
}

/// Formats a number and a noun: `1 layer`, `1,024 layers`.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ if what.ends_with('y') => format!("{} {}ies", grouped(number as u64), &what[..what.len() - 1]),
        _ => format!("{} {what}s", grouped(number as u64)),
    }
}

/// Formats a number for a table; zero is an empty cell.
pub(crate) fn unless_zero(number: u64) -> String {
    if number == 0 { String::new() } else { grouped(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let mut columns = Columns::new([Side::Left, Side::Right]);
        columns.push(Style::new(), ["type".to_owned(), "bytes".to_owned()]);
        columns.push(Style::new(), ["boolean".to_owned(), grouped(1_234_567)]);
        assert_eq!(columns.print(), "type         bytes\nboolean  1,234,567\n");
    }

    #[test]
    fn columns_count_what_a_terminal_shows() {
        let mut columns = Columns::new([Side::Left, Side::Left]);
        columns.push(Style::new(), ["入力".to_owned(), "f32".to_owned()]);
        columns.push(Style::new(), ["e\u{301}".to_owned(), "f16".to_owned()]);
        assert_eq!(columns.print(), "入力  f32\ne\u{301}     f16\n");
    }
}
