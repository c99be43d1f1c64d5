//! What people and programs get to see of an import: a bar on a terminal, a line of JSON for each line
//! of the file, words about those that did not go well, and a file of those that were rejected.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::PathBuf;

use indicatif::ProgressBar;

use super::super::failure::note;
use super::super::progress::bar;
use super::super::screen::plain;
use super::super::{Failure, Output, say};
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
    /// The first thing that could not be said: the sending goes on all the same.
    unsaid: Option<Failure>,
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
            return Err(format!(
                "--failed-to {}: it is there already, perhaps of an earlier run: delete it, or name another with --failed-to",
                path.display()
            ));
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
        let bar = if std::io::stderr().is_terminal() { bar(ahead, "lines") } else { ProgressBar::hidden() };
        Self { output, bar, totals: Totals::default(), named: 0, rejects, unsaid: None }
    }

    /// Tells what became of a line.
    ///
    /// # Errors
    /// The file of rejected lines cannot be written; in words.
    pub fn settled(&mut self, settled: &Settled) -> Result<(), String> {
        self.totals.count(&settled.outcome);
        self.bar.inc(1);
        match self.output {
            Output::Json => self.say(&settled.json()),
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
    /// The file of rejected lines, or what was said of lines, cannot be written.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        if let Some(rejects) = &mut self.rejects {
            let path = rejects.path.display().to_string();
            rejects.end().map_err(|why| Failure::Local(format!("--failed-to {path}: {why}")))?;
        }
        if self.named > NAMED {
            note(&format!("… and {} more: --output json names all, --failed-to FILE keeps them", self.named - NAMED));
        }
        match self.output {
            Output::Table => self.say(&self.totals.words()),
            Output::Json => {
                let totals = serde_json::json!({ "summary": self.totals });
                self.say(&totals.to_string());
            }
        }
        self.unsaid.take().map_or(Ok(()), Err)
    }

    fn say(&mut self, text: &str) {
        if let Err(why) = self.bar.suspend(|| say(text)) {
            self.unsaid.get_or_insert(why);
        }
    }
}
