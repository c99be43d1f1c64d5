//! What stands between an answer and a person's eyes: the width of the terminal, whether colours are
//! wanted, and texts that cannot move the cursor.

use std::io::IsTerminal as _;

use comfy_table::presets::{NOTHING, UTF8_BORDERS_ONLY};
use comfy_table::{Cell, Color, ContentArrangement, Table, TableStyle};

use super::surroundings::Surroundings;

/// Where answers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns of the terminal; without one nothing is cut or wrapped.
    pub width: Option<u16>,
    /// Colours are wanted.
    pub colour: bool,
}

impl Screen {
    /// Standard output as it is. Colours only on a terminal, unless NO_COLOR says otherwise
    /// (no-color.org) or the terminal says that it can none.
    pub fn here() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let around = Surroundings::here();
        let dumb = around.get("TERM").is_none_or(|term| term == "dumb");
        let colour = terminal && !dumb && around.get("NO_COLOR").is_none();
        Self { width: if terminal { Table::new().width() } else { None }, colour }
    }

    /// An empty table with a frame; wrapped to the terminal's width, if there is one.
    pub fn table(&self) -> Table {
        self.styled(UTF8_BORDERS_ONLY)
    }

    /// An empty table without a frame.
    pub fn frameless(&self) -> Table {
        self.styled(NOTHING)
    }

    fn styled(&self, preset: TableStyle) -> Table {
        let mut table = Table::new();
        table.load_style(preset);
        match self.width {
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if self.colour {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        table
    }

    /// A cell in a colour where people look at a terminal.
    pub fn coloured(&self, text: &str, colour: Color) -> Cell {
        let cell = Cell::new(plain(text));
        if self.colour { cell.fg(colour) } else { cell }
    }
}

/// A text as it may stand on a terminal. Texts come from strangers: control characters are replaced,
/// and what terminals draw in widths of their own or out of order is left out (joiners, variation
/// selectors, skin tones, marks of writing direction), so that columns stand where they should.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => None,
        '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e007f}' => None,
        '\u{2028}' | '\u{2029}' => Some('\u{fffd}'),
        c if c.is_control() => Some('\u{fffd}'),
        c => Some(c),
    };
    text.chars().filter_map(shown).collect()
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn strangers_texts_move_nothing() {
        assert_eq!(plain("a\u{1b}[31m\r\n\tb\u{7}\u{9b}"), "a\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}b\u{fffd}\u{fffd}");
        assert_eq!(plain("\u{202e}txt.exe"), "txt.exe");
        assert_eq!(plain("👩\u{200d}💻 👍🏽 ❤\u{fe0f}").width(), "👩💻 👍 ❤".width());
        assert_eq!(plain("订单 é"), "订单 é");
    }
}
