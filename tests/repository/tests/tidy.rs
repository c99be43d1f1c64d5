//! Tidiness as a test: file lengths, left-over marks, machine paths.

use std::path::{Path, PathBuf};

use repository_checks::root;

const MAX_LINES: usize = 420;

/// Files that are longer, with the length they may have: it only ever goes down.
const LARGER: [(&str, usize); 1] = [("crates/simulation/src/world.rs", 501)];

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            if !["target", ".git", ".dev", "fixtures", "logs", "__pycache__"].contains(&name.as_str()) {
                sources(&path, out);
            }
        } else if ["rs", "py", "sh", "toml", "md"].iter().any(|ext| name.ends_with(&format!(".{ext}"))) {
            out.push(path);
        }
    }
}

#[test]
fn files_are_small_and_finished() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let marks = [
        "to".to_owned() + "do!(",
        "unimple".to_owned() + "mented!(",
        "FIX".to_owned() + "ME",
        "/wo".to_owned() + "rk/",
    ];
    let mut findings = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("UTF-8 text");
        let lines = text.lines().count();
        let code = path.extension().is_some_and(|e| e == "rs" || e == "py");
        let limit = LARGER.iter().find(|(name, _)| path.ends_with(name)).map_or(MAX_LINES, |(_, limit)| *limit);
        if code && lines > limit {
            findings.push(format!("{}: {lines} lines, at most {limit}", path.display()));
        }
        for mark in &marks {
            if let Some(line) = text.lines().position(|l| l.contains(mark.as_str())) {
                findings.push(format!("{}:{}: {mark}", path.display(), line + 1));
            }
        }
        if code && text.contains(&("#[ig".to_owned() + "nore")) {
            findings.push(format!("{}: an ignored test", path.display()));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
