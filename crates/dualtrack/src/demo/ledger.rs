//! What handlers really did, one line for each step body that ran: written by the handlers
//! themselves, apart from the log, so that the log's claim "not run again" can be held against it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;

/// An append-only file; clones share it.
#[derive(Clone)]
pub struct Ledger {
    file: Arc<Mutex<File>>,
}

impl Ledger {
    /// Opens it, keeping what earlier processes wrote.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self { file: Arc::new(Mutex::new(file)) })
    }

    /// A step's body is about to run. One write call per line, so that a killed process leaves
    /// whole lines.
    pub fn note(&self, task: &str, step: &str) -> std::io::Result<()> {
        let line = format!("{task} {step}\n");
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// How often each step of each task ran.
pub fn runs(path: &Path) -> anyhow::Result<BTreeMap<(String, String), u32>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut runs = BTreeMap::new();
    for (task, step) in text.lines().filter_map(|line| line.split_once(' ')) {
        *runs.entry((task.to_owned(), step.to_owned())).or_default() += 1;
    }
    Ok(runs)
}
