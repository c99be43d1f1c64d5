//! What the demo tells people at its end.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Table};

use super::account::{Account, TaskAccount};

/// Numbers of one run.
pub struct Summary {
    /// Tasks by final state.
    pub states: BTreeMap<&'static str, usize>,
    /// Attempts handed out.
    pub attempts: u32,
    /// Tasks that a later attempt resumed without running its first step again.
    pub resumed_tasks: usize,
    /// Steps that were not run again.
    pub resumed_steps: usize,
    /// Tasks per second of the time in which tasks moved.
    pub rate: f64,
}

impl Summary {
    /// Adds the account up.
    pub fn of(account: &Account) -> Self {
        let mut states = BTreeMap::new();
        for task in account.tasks.values() {
            *states.entry(task.state.as_str()).or_default() += 1;
        }
        let seconds = account.span_ms.map_or(0, |(first, last)| last - first).max(1) as f64 / 1000.0;
        Self {
            states,
            attempts: account.tasks.values().map(|t| t.attempts).sum(),
            resumed_tasks: account.tasks.values().filter(|t| t.resumed_steps > 0).count(),
            resumed_steps: account.tasks.values().map(|t| t.resumed_steps).sum(),
            rate: account.tasks.len() as f64 / seconds,
        }
    }
}

/// The table.
pub fn table(account: &Account, summary: &Summary) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    let bold = |text: &str| {
        let cell = Cell::new(text);
        if std::io::stdout().is_terminal() { cell.add_attribute(Attribute::Bold) } else { cell }
    };
    table.set_header([bold("what"), bold("how many").set_alignment(CellAlignment::Right)]);
    let mut row = |what: String, number: String| {
        table.add_row([Cell::new(what), Cell::new(number).set_alignment(CellAlignment::Right)]);
    };
    row("tasks".into(), account.tasks.len().to_string());
    for (state, count) in &summary.states {
        row(format!("  {state}"), count.to_string());
    }
    row("attempts".into(), summary.attempts.to_string());
    row("tasks resumed after the kill".into(), summary.resumed_tasks.to_string());
    row("steps not run again".into(), summary.resumed_steps.to_string());
    row("records in the log".into(), account.records.to_string());
    row("  of them rejected".into(), account.rejected.values().sum::<u64>().to_string());
    row("ownership claims".into(), account.claims.to_string());
    row("tasks/s, the time of the kill and its leases included".into(), format!("{:.1}", summary.rate));
    table.to_string()
}

/// The history of a task, one line a record.
pub fn history(out: &mut impl Write, task: &TaskAccount) -> std::io::Result<()> {
    let colour = std::io::stdout().is_terminal();
    let begin = task.lines.first().map_or(0, |line| line.broker_ms);
    for line in &task.lines {
        let verdict = line.rejected.map_or_else(|| "accepted".to_owned(), |r| format!("rejected: {r}"));
        let verdict = match (colour, line.rejected) {
            (true, None) => format!("\u{1b}[32m{verdict}\u{1b}[0m"),
            (true, Some(_)) => format!("\u{1b}[33m{verdict}\u{1b}[0m"),
            (false, _) => verdict,
        };
        let after = (line.broker_ms - begin) as f64 / 1000.0;
        writeln!(out, "  offset {:>6}  {after:>8.3} s  {:<70}  {verdict}", line.offset.0, line.text)?;
    }
    Ok(())
}

/// A line that says whether something holds.
pub fn judge(out: &mut impl Write, good: bool, text: &str) -> std::io::Result<()> {
    let mark = match (std::io::stdout().is_terminal(), good) {
        (true, true) => "\u{1b}[32mok\u{1b}[0m    ",
        (true, false) => "\u{1b}[31mBROKEN\u{1b}[0m",
        (false, true) => "ok    ",
        (false, false) => "BROKEN",
    };
    writeln!(out, "{mark}  {text}")
}
