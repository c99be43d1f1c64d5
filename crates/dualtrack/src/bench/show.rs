//! The figures as a table for people and as JSON for programs.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, Table};
use serde::Serialize;
use service_kit::{Clock as _, SystemClock};

use super::figure::{Figure, Target};
use super::probe::Machine;
use crate::cli::{Output, print_line};

/// All figures of a run.
#[derive(Serialize)]
pub struct Report {
    /// Unix ms of the end of the run.
    pub at_ms: i64,
    /// Version of this program.
    pub version: &'static str,
    /// Length of each timed part.
    pub seconds: u64,
    /// Where.
    pub machine: Machine,
    /// What.
    pub figures: Vec<Figure>,
}

impl Report {
    /// The figures, with the time and the version.
    pub fn new(seconds: u64, machine: Machine, figures: Vec<Figure>) -> Self {
        Self { at_ms: SystemClock.wall_ms(), version: env!("CARGO_PKG_VERSION"), seconds, machine, figures }
    }

    /// Whether an acknowledged task was not found.
    pub fn is_anything_lost(&self) -> bool {
        self.figures.iter().any(|figure| figure.lost > 0)
    }

    /// For programs.
    pub fn to_json(&self) -> anyhow::Result<String> {
        serde_json::to_string_pretty(self).context("the figures as JSON")
    }

    /// Prints it.
    pub fn print(&self, output: Output) -> anyhow::Result<()> {
        let text = match output {
            Output::Json => self.to_json()?,
            Output::Table => self.to_table(),
        };
        match print_line(&text) {
            Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(why).context("cannot write to standard output")
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn to_table(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        let is_terminal = std::io::stdout().is_terminal();
        let styled = |cell: Cell, colour: Option<Color>| match colour {
            Some(colour) if is_terminal => cell.fg(colour),
            Some(_) | None => cell,
        };
        let bold = |text: &str| {
            let cell = Cell::new(text);
            if is_terminal { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        table.set_header(["figure", "measured", "target", "", "beside it, in the same run", "ratio"].map(bold));
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        for figure in &self.figures {
            let (verdict, colour) = match figure.met {
                Some(true) => ("met", Some(Color::Green)),
                Some(false) => ("missed", Some(Color::Red)),
                None if figure.missing.is_some() => ("missing", Some(Color::Yellow)),
                None => ("", None),
            };
            let (beside, ratio) = figure.beside.as_ref().map_or_else(Default::default, |beside| {
                (format!("{} {}", number(beside.value), beside.what), number(beside.ratio))
            });
            table.add_row([
                Cell::new(&figure.name),
                right(figure.value.map(|value| format!("{} {}", number(value), figure.unit)).unwrap_or_default()),
                right(figure.target.map(target).unwrap_or_default()),
                styled(Cell::new(verdict), colour),
                Cell::new(beside),
                right(ratio),
            ]);
        }
        let mut text = self.head();
        text.push_str(&table.to_string());
        for figure in &self.figures {
            for note in figure.notes.iter().chain(&figure.missing) {
                text.push_str(&format!("\n{}: {note}", figure.name));
            }
        }
        text
    }

    fn head(&self) -> String {
        let Machine { cpu, cores, memory_gb, kernel, load_before } = &self.machine;
        format!(
            "{cpu}, {cores} cores, {memory_gb} GB, Linux {kernel}, load {load_before} before; timed parts of {} s\n",
            self.seconds
        )
    }
}

fn target(target: Target) -> String {
    match target {
        Target::AtLeast(least) => format!("≥ {}", number(least)),
        Target::AtMost(most) => format!("≤ {}", number(most)),
    }
}

// Three digits or more.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure::Group;
    use super::*;

    #[test]
    fn the_table_says_what_is_met_missed_and_missing() {
        let figures = vec![
            Figure::new(Group::Slow, "one", 1.5, "ms").target(Target::AtMost(2.0)).beside("raw, ms", 0.5, 1.5),
            Figure::new(Group::Slow, "two", 3.0, "ms").target(Target::AtMost(2.0)).note("why"),
            Figure::missing(Group::Fold, "three", "nobody measured it"),
        ];
        let report = Report::new(1, super::super::probe::machine(), figures);
        let text = report.to_table();
        for wanted in ["met", "missed", "missing", "≤ 2", "0.500 raw, ms", "two: why", "three: nobody measured it"] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert!(report.to_json().expect("JSON").contains("\"met\": false") && !report.is_anything_lost());
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!([0.1234, 1.234, 12.34, 1234.5, 2.0].map(number), ["0.123", "1.23", "12.3", "1234", "2"]);
    }
}
