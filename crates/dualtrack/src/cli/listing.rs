//! Lists of many things with the same facts: one line each, as wide as the screen. On a narrow screen
//! the least important columns give way first; when even the others do not fit, each thing becomes a
//! record of `name value` lines. Widths are display widths.

use comfy_table::{Cell, CellAlignment, Color, ColumnConstraint, Width};
use unicode_width::UnicodeWidthStr as _;

use super::screen::{Screen, plain};

/// Blanks between two columns.
const GAP: usize = 2;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// 0: it always stays; the highest is the first to give way.
    pub rank: u8,
    /// Numbers stand to the right.
    pub right: bool,
    /// It may be cut down to this width, with `…` at its end.
    pub least: Option<usize>,
}

impl Column {
    /// A column that stays as wide as it is.
    pub const fn new(title: &'static str, rank: u8) -> Self {
        Self { title, rank, right: false, least: None }
    }

    /// Of numbers.
    pub const fn number(title: &'static str, rank: u8) -> Self {
        Self { right: true, ..Self::new(title, rank) }
    }

    /// Of texts that may be cut.
    pub const fn text(title: &'static str, rank: u8, least: usize) -> Self {
        Self { least: Some(least), ..Self::new(title, rank) }
    }
}

/// A value in a list.
#[derive(Clone, Debug)]
pub struct Shown {
    text: String,
    colour: Option<Color>,
}

impl Shown {
    /// A text of a stranger.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self { text: plain(text.as_ref()), colour: None }
    }

    /// The same in a colour.
    pub fn coloured(text: impl AsRef<str>, colour: Color) -> Self {
        Self { text: plain(text.as_ref()), colour: Some(colour) }
    }
}

impl<T: AsRef<str>> From<T> for Shown {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// A list.
#[derive(Clone, Debug)]
pub struct Listing {
    columns: Vec<Column>,
    rows: Vec<Vec<Shown>>,
}

impl Listing {
    /// An empty one.
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a line: a value for each column.
    pub fn row<const N: usize>(&mut self, values: [Shown; N]) {
        self.rows.push(values.into());
    }

    /// As a text without a line break at its end.
    pub fn show(&self, screen: &Screen) -> String {
        let kept = self.kept(screen);
        let least: usize = kept.iter().map(|&i| self.least(i)).sum::<usize>() + GAP * kept.len().saturating_sub(1);
        match screen.width.map(usize::from) {
            Some(width) if least > width => self.records(screen),
            Some(width) => self.lines(screen, &kept, self.widths(&kept, width)),
            None => self.lines(screen, &kept, kept.iter().map(|&i| self.natural(i)).collect()),
        }
    }

    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width());
        cells.chain([self.columns[column].title.width()]).max().unwrap_or(0)
    }

    fn least(&self, column: usize) -> usize {
        let natural = self.natural(column);
        self.columns[column].least.map_or(natural, |least| natural.min(least.max(self.columns[column].title.width())))
    }

    // The columns that stay: what is empty in every line is left out, then the highest ranks go
    // until the rest fits.
    fn kept(&self, screen: &Screen) -> Vec<usize> {
        let empty = |i: &usize| self.rows.iter().all(|row| row.get(*i).is_none_or(|cell| cell.text.is_empty()));
        let mut kept: Vec<usize> =
            (0..self.columns.len()).filter(|i| self.columns[*i].rank == 0 || !empty(i)).collect();
        let Some(width) = screen.width.map(usize::from) else { return kept };
        loop {
            let total: usize = kept.iter().map(|&i| self.least(i)).sum::<usize>() + GAP * kept.len().saturating_sub(1);
            let goes = kept.iter().copied().filter(|i| self.columns[*i].rank > 0).max_by_key(|i| self.columns[*i].rank);
            match goes {
                Some(goes) if total > width => kept.retain(|i| *i != goes),
                Some(_) | None => return kept,
            }
        }
    }

    // What is left over beside the least widths goes to the columns that can use it, first come first.
    fn widths(&self, kept: &[usize], width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = kept.iter().map(|&i| self.least(i)).collect();
        let mut left = width.saturating_sub(widths.iter().sum::<usize>() + GAP * kept.len().saturating_sub(1));
        for (have, &column) in widths.iter_mut().zip(kept) {
            let more = self.natural(column).saturating_sub(*have).min(left);
            *have += more;
            left -= more;
        }
        widths
    }

    fn lines(&self, screen: &Screen, kept: &[usize], widths: Vec<usize>) -> String {
        let mut table = screen.frameless();
        let cell = |column: usize, width: usize, shown: &Shown| {
            let mut cell = Cell::new(cut(&shown.text, width));
            if let (true, Some(colour)) = (screen.colour, shown.colour) {
                cell = cell.fg(colour);
            }
            if self.columns[column].right { cell.set_alignment(CellAlignment::Right) } else { cell }
        };
        let with = |row: &dyn Fn(usize) -> Shown| -> Vec<Cell> {
            kept.iter().zip(&widths).map(|(&i, &width)| cell(i, width, &row(i))).collect()
        };
        table.set_header(with(&|i| Shown::new(self.columns[i].title)));
        for row in &self.rows {
            table.add_row(with(&|i| row.get(i).cloned().unwrap_or_else(|| Shown::new(""))));
        }
        let last = widths.len().saturating_sub(1);
        for (i, (column, width)) in table.column_iter_mut().zip(&widths).enumerate() {
            let gap = if i == last { 0 } else { GAP };
            column.set_padding((0, u16::try_from(gap).unwrap_or_default()));
            let fixed = u16::try_from(width + gap).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(fixed)));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    fn records(&self, screen: &Screen) -> String {
        let records = self.rows.iter().map(|row| {
            let mut table = screen.frameless();
            for (column, shown) in self.columns.iter().zip(row).filter(|(_, shown)| !shown.text.is_empty()) {
                let mut value = Cell::new(&shown.text);
                if let (true, Some(colour)) = (screen.colour, shown.colour) {
                    value = value.fg(colour);
                }
                table.add_row([Cell::new(column.title), value]);
            }
            for column in table.column_iter_mut() {
                column.set_padding((0, 1));
            }
            table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        });
        records.collect::<Vec<_>>().join("\n\n")
    }
}

/// A text that is at most so wide; what had to be left out shows as `…`.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if out.width() + 1 > width {
            out.pop();
            break;
        }
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let mut list = Listing::new(&[
            Column::new("task", 0),
            Column::new("status", 0),
            Column::text("type", 1, 8),
            Column::text("worker", 3, 6),
            Column::number("attempt", 2),
            Column::text("empty", 4, 4),
        ]);
        let green = |text| Shown::coloured(text, Color::Green);
        list.row([
            "380345723523694592".into(),
            green("SUCCESS"),
            "订单处理/结算与对账".into(),
            "工作者-1".into(),
            "1".into(),
            "".into(),
        ]);
        list.row([
            "380345723523694593".into(),
            green("FAILED"),
            "📦 ship 👩‍💻".into(),
            "w".into(),
            "12".into(),
            "".into(),
        ]);
        list
    }

    #[test]
    fn every_screen_gets_lines_that_fit_it() {
        for width in [20, 30, 40, 50, 60, 80, 120, 200] {
            let text = listing().show(&Screen { width: Some(width), colour: false });
            for line in text.lines() {
                assert!(line.width() <= usize::from(width), "{width}: {line:?} in\n{text}");
            }
            assert!(text.contains("FAILED"), "{text}");
            assert!(!text.contains("empty"), "a column without a value is left out\n{text}");
        }
        let narrow = listing().show(&Screen { width: Some(40), colour: false });
        assert!(!narrow.contains("worker") && narrow.contains("type"), "the least important go first\n{narrow}");
    }

    #[test]
    fn without_a_screen_nothing_is_cut() {
        let text = listing().show(&Screen { width: None, colour: false });
        assert!(text.contains("订单处理/结算与对账") && text.contains("工作者-1"), "{text}");
        assert!(!text.contains('\u{1b}'));
        assert!(listing().show(&Screen { width: Some(80), colour: true }).contains('\u{1b}'));
    }

    #[test]
    fn texts_are_cut_at_whole_characters() {
        assert_eq!(cut("订单处理", 8), "订单处理");
        assert_eq!(cut("订单处理", 7), "订单处…");
        assert_eq!(cut("订单处理", 6), "订单…");
        assert_eq!(cut("abc", 1), "…");
    }
}
