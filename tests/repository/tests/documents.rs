//! Generated parts of documents equal what the code generates. `make docs` writes them anew.

use repository_checks::{event_table, root, splice};

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
fn the_event_table_is_generated() {
    let path = root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).expect("ARCHITECTURE.md is there");
    let fresh = splice(&text, "event-table", &event_table()).expect("ARCHITECTURE.md has the markers of event-table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &fresh).expect("ARCHITECTURE.md is writable");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), fresh, "run `make docs`");
}
