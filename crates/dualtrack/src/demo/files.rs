//! The demo's input: the files of a directory tree.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Folders that hold no input of anybody's: version control, builds, downloads, caches.
const SKIPPED: [&str; 6] = [".git", "target", ".dev", "node_modules", "__pycache__", ".venv"];

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
