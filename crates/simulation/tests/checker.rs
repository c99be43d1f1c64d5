//! The independent checker reads what lay in the logs of some seeds: it agrees with the production
//! fold record by record, and finds nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use simulation::run_range;

fn checker() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/checker/check.py")
}

fn check(folder: &Path, name: &str) {
    let output = Command::new("python3")
        .arg(checker())
        .arg(folder.join(format!("{name}.dtlog")))
        .arg("--compare")
        .arg(folder.join(format!("{name}.verdicts.jsonl")))
        .arg("--complete")
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{name}: {text}{errors}");
    assert!(text.contains(" records, "), "{name}: {text}");
}

#[test]
fn it_agrees_with_the_fold_and_finds_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, failures) = run_range((600, 611), 2, None, false, |report, world| {
        world.dump(folder.path(), &format!("seed-{}", report.seed)).expect("a dump");
    });
    assert!(failures.is_empty(), "{failures:?}");
    for seed in 600..=611 {
        check(folder.path(), &format!("seed-{seed}"));
    }
}
