//! The demo's input, the files of a directory tree, and the folders of a run.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// Folders that hold no input of anybody's: version control, builds, downloads, caches.
const SKIPPED: [&str; 6] = [".git", "target", ".dev", "node_modules", "__pycache__", ".venv"];

/// Marks a work folder as the demo's own.
const MARK: &str = ".dualtrack-demo";

/// Folders and files of one run.
pub struct Places {
    /// Outputs.
    pub out: PathBuf,
    /// The server's data: log, rows, checkpoints.
    pub data: PathBuf,
    /// The server's settings.
    pub settings: PathBuf,
    /// Outboxes of the workers.
    pub outboxes: PathBuf,
    /// What handlers did.
    pub ledger: PathBuf,
    /// Lets held handlers go on once it is there.
    pub go: PathBuf,
    /// Raw records, for the checker.
    pub dump: PathBuf,
    /// What the production fold said of each.
    pub verdicts: PathBuf,
}

impl Places {
    /// All below the work folder.
    pub fn below(work: &Path) -> Self {
        Self {
            out: work.join("out"),
            data: work.join("data"),
            settings: work.join("dev.toml"),
            outboxes: work.join("outboxes"),
            ledger: work.join("ledger.txt"),
            go: work.join("go"),
            dump: work.join("log.dtlog"),
            verdicts: work.join("log.verdicts.jsonl"),
        }
    }
}

/// Empties the work folder; only one that an earlier demo made, since --work may be mistyped.
pub fn empty(work: &Path) -> anyhow::Result<()> {
    let mark = work.join(MARK);
    if work.exists() {
        let ours = mark.exists() || std::fs::read_dir(work).is_ok_and(|mut entries| entries.next().is_none());
        ensure!(ours, "{} is not a folder of an earlier demo: give --work another one", work.display());
        std::fs::remove_dir_all(work).with_context(|| format!("cannot empty {}", work.display()))?;
    }
    let places = Places::below(work);
    for folder in [work, &places.out, &places.outboxes] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    // There from the start: who waits for its lines need not wait for the file.
    std::fs::write(&places.ledger, "").with_context(|| format!("cannot write {}", places.ledger.display()))?;
    std::fs::write(&mark, "made by dualtrack demo\n").with_context(|| format!("cannot write {}", mark.display()))
}

/// Every regular file below `dir`, as paths relative to it, in order. Links are not followed.
pub fn list(dir: &Path, except: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read the folder {}", folder.display()))?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let skipped = SKIPPED.iter().any(|name| entry.file_name() == *name) || path == except;
            if kind.is_dir() && !skipped {
                folders.push(path);
            } else if kind.is_file() {
                found.push(path.strip_prefix(dir).unwrap_or(&path).to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Where the output of an input file lies.
pub fn output_of(out: &Path, input: &Path) -> PathBuf {
    let mut name = input.as_os_str().to_owned();
    name.push(".gz");
    out.join(name)
}
