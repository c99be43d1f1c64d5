//! Names of the alarms that the programs raise, read off their sources.

use std::collections::BTreeSet;
use std::path::Path;

/// Names in calls of `alarm("…"` and in `owner/alarm.rs`, of everything under `crates/*/src` but tests.
///
/// # Panics
/// The checkout cannot be read.
pub fn alarms(root: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let root = root.canonicalize().expect("the checkout is there");
    let crates = std::fs::read_dir(root.join("crates")).expect("crates are there");
    for of in crates {
        read(&of.expect("an entry").path().join("src"), &mut names);
    }
    assert!(names.len() > 20, "alarms are not found any more: {names:?}");
    names
}

fn read(dir: &Path, names: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, names);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("metrics.rs") && !is_test(&path) {
            let text = std::fs::read_to_string(&path).expect("it can be read");
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            names.extend(text.split("alarm(").skip(1).filter_map(literal));
            if path.ends_with("owner/alarm.rs") {
                names.extend(
                    text.lines().filter_map(|line| literal(line.trim().strip_prefix("Self::")?.split_once("=> ")?.1)),
                );
            }
        }
    }
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.parent().is_some_and(|of| of.ends_with("tests"))
}

// The text literal that stands first.
fn literal(text: &str) -> Option<String> {
    let (name, _) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_').then(|| name.to_owned())
}
