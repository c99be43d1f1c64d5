//! What people and programs get to see of an import: a bar on a terminal, a line of JSON for each line
//! of the file, words about those that did not go well, and a file of those that were rejected.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::super::failure::note;
use super::super::screen::plain;
use super::super::{Output, say};
use super::outcome::{Outcome, Settled, Totals};

/// Lines that did not go well named one by one; of more only the number.
const NAMED: u64 = 20;

/// Tells what becomes of lines.
pub struct Telling {
    output: Output,
    bar: ProgressBar,
    /// How many of each there were.
    pub totals: Totals,
    named: u64,
    rejects: Option<Rejects>,
}

/// The file of rejected lines; made with the first of them.
pub struct Rejects {
    path: PathBuf,
    header: Option<Vec<u8>>,
    file: Option<BufWriter<File>>,
}

impl Rejects {
    /// Into this file, below this header.
    ///
    /// # Errors
    /// It is there already; in words.
    pub fn new(path: PathBuf, header: Option<&[u8]>) -> Result<Self, String> {
        if path.exists() {
            return Err(format!("--failed-to {}: it is there already; name a new file", path.display()));
        }
        Ok(Self { path, header: header.map(<[u8]>::to_vec), file: None })
    }

    fn write(&mut self, text: &[u8]) -> std::io::Result<()> {
        if self.file.is_none() {
            let mut file = BufWriter::new(File::create_new(&self.path)?);
            if let Some(header) = &self.header {
                file.write_all(header)?;
                file.write_all(b"\n")?;
            }
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(text)?;
        file.write_all(b"\n")
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), std::io::Write::flush)
    }
}

impl Telling {
    /// With so many lines ahead, if that is known.
    pub fn new(output: Output, ahead: Option<u64>, rejects: Option<Rejects>) -> Self {
        let bar = if std::io::stderr().is_terminal() { bar(ahead) } else { ProgressBar::hidden() };
        Self { output, bar, totals: Totals::default(), named: 0, rejects }
    }

    /// Tells what became of a line.
    ///
    /// # Errors
    /// The file of rejected lines cannot be written; in words.
    pub fn settled(&mut self, settled: &Settled) -> Result<(), String> {
        self.totals.count(&settled.outcome);
        self.bar.inc(1);
        match self.output {
            Output::Json => self.bar.suspend(|| say(&settled.json())),
            Output::Table => {
                if let Some(words) = settled.words() {
                    self.named += 1;
                    if self.named <= NAMED {
                        self.bar.suspend(|| note(&plain(&words)));
                    }
                }
            }
        }
        match (&settled.outcome, &mut self.rejects) {
            (Outcome::Rejected(_), Some(rejects)) => {
                let written = rejects.write(&settled.text);
                written.map_err(|why| format!("--failed-to {}: {why}", rejects.path.display()))
            }
            (
                Outcome::Created(_)
                | Outcome::Duplicate(_)
                | Outcome::Rejected(_)
                | Outcome::Unknown(_)
                | Outcome::NotSent(_),
                _,
            ) => Ok(()),
        }
    }

    /// Tells how it ended.
    ///
    /// # Errors
    /// The file of rejected lines cannot be written; in words.
    pub fn end(&mut self) -> Result<(), String> {
        self.bar.finish_and_clear();
        if let Some(rejects) = &mut self.rejects {
            rejects.end().map_err(|why| format!("--failed-to {}: {why}", rejects.path.display()))?;
        }
        if self.named > NAMED {
            note(&format!("… and {} more: --output json names all, --failed-to FILE keeps them", self.named - NAMED));
        }
        match self.output {
            Output::Table => say(&self.totals.words()),
            Output::Json => {
                let totals = serde_json::json!({ "summary": self.totals });
                say(&totals.to_string());
            }
        }
        Ok(())
    }
}

fn bar(ahead: Option<u64>) -> ProgressBar {
    let target = ProgressDrawTarget::stderr();
    let (bar, template) = match ahead {
        Some(lines) => (ProgressBar::with_draw_target(Some(lines), target), "{wide_bar} {pos}/{len} {rate} {eta} left"),
        None => (ProgressBar::with_draw_target(None, target), "{spinner} {pos} lines {rate}"),
    };
    // A template that is fixed here; without it the bar's own.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.with_key("rate", rate)),
        Err(_) => bar,
    }
}

// Whole lines a second: the bar's own form has twelve digits behind the point, and breaks narrow lines.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A bar that cannot be drawn now is drawn the next time.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}
