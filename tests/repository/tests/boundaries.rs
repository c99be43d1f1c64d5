//! Who may depend on whom: compared with the committed graph, so that a shortcut between services
//! is a failing test and a deliberate change is a line in a review.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, MetadataCommand};
use repository_checks::root;

fn edges() -> BTreeSet<(String, String)> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata works in the checkout");
    let ours: BTreeSet<String> = metadata.packages.iter().map(|p| p.name.to_string()).collect();
    metadata
        .packages
        .iter()
        .flat_map(|p| {
            p.dependencies
                .iter()
                .filter(|d| d.kind == DependencyKind::Normal && ours.contains(&d.name))
                .map(|d| (p.name.to_string(), d.name.clone()))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
fn the_graph_is_the_committed_one() {
    let path = root().join("tests/repository/boundaries.txt");
    let found: String = edges().iter().map(|(from, to)| format!("{from} -> {to}\n")).collect();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &found).expect("writable");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, committed, "dependencies between our crates changed; if that is meant, run `make docs`");
}

#[test]
fn services_know_nothing_of_each_other_and_rules_do_no_io() {
    const SERVICES: [&str; 7] = [
        "coordinator",
        "task-engine",
        "auto-replay",
        "audit-report",
        "dualtrack-coordinator",
        "dualtrack-task-engine",
        "dualtrack-auto-replay",
    ];
    // The only shipped place that links several services, and the simulator; the edge is a part of
    // the coordinator that the simulator need not link, and each program links its own service.
    const LINKERS: [&str; 2] = ["dualtrack", "simulation"];
    const PARTS: [(&str, &str); 4] = [
        ("coordinator-edge", "coordinator"),
        ("dualtrack-coordinator", "coordinator"),
        ("dualtrack-task-engine", "task-engine"),
        ("dualtrack-auto-replay", "auto-replay"),
    ];
    for (from, to) in edges() {
        let to_service = SERVICES.contains(&to.as_str());
        let is_part = PARTS.contains(&(from.as_str(), to.as_str()));
        assert!(!to_service || is_part || LINKERS.contains(&from.as_str()), "{from} depends on the service {to}");
        if from == "task-core" {
            assert!(["task-events", "worker-protocol"].contains(&to.as_str()), "task-core depends on {to}");
        }
        assert_ne!((from.as_str(), to.as_str()), ("worker-sdk", "event-log"), "workers never see the topic");
    }
}

#[test]
fn the_rules_link_no_runtime() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).exec().expect("cargo metadata");
    let resolve = metadata.resolve.expect("a resolved graph");
    let start = metadata.packages.iter().find(|p| p.name.as_str() == "task-core").expect("task-core").id.clone();
    let (mut seen, mut todo) = (BTreeSet::new(), vec![start]);
    while let Some(id) = todo.pop() {
        if seen.insert(id.clone()) {
            let node = resolve.nodes.iter().find(|n| n.id == id).expect("every node is resolved");
            let normal = node.deps.iter().filter(|d| d.dep_kinds.iter().any(|k| k.kind == DependencyKind::Normal));
            todo.extend(normal.map(|d| d.pkg.clone()));
        }
    }
    let names: BTreeSet<_> =
        metadata.packages.iter().filter(|p| seen.contains(&p.id)).map(|p| p.name.as_str()).collect();
    for banned in ["tokio", "rdkafka", "redis", "scylla", "axum", "rustix"] {
        assert!(!names.contains(banned), "task-core links {banned}");
    }
}
