//! Generated documents, and generated parts of others, equal what the code generates. `make docs`
//! writes them anew.

use std::path::Path;

use repository_checks::{alarms, event_reference, event_table, root, splice};

#[test]
fn the_event_table_is_generated() {
    let path = root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).expect("ARCHITECTURE.md is there");
    let fresh = splice(&text, "event-table", &event_table()).expect("ARCHITECTURE.md has the markers of event-table");
    is_fresh(&path, &fresh);
}

#[test]
fn the_event_reference_is_generated() {
    is_fresh(&root().join("docs/events.md"), &event_reference());
}

// Whoever is woken by an alarm looks it up.
#[test]
fn every_alarm_is_in_the_operations_guide() {
    let guide = std::fs::read_to_string(root().join("docs/guide/operations.md")).expect("the guide is there");
    let missing: Vec<String> =
        alarms(&root()).into_iter().filter(|name| !guide.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/guide/operations.md says nothing of {missing:?}");
}

#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
fn is_fresh(path: &Path, fresh: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, fresh).expect("it is writable");
    }
    let committed = std::fs::read_to_string(path).expect("it is there: run `make docs`");
    assert!(committed == fresh, "{}: run `make docs`", path.display());
}
