//! Alerts and dashboards ask for metrics that the programs have, and alerts send people to sections of the
//! runbook that exist.

use std::collections::BTreeSet;

use deploy_checks::{documents, text};
use serde_json::Value;

// Of a name `dualtrack_…`, as it stands in a query; of a histogram its own name.
fn names(query: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = query.split(|c| !word(c)).filter(|name| name.starts_with("dualtrack_"));
    let ends = ["_bucket", "_sum", "_count"];
    words.map(|name| ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()).collect()
}

fn documented() -> BTreeSet<String> {
    text("docs/metrics.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect()
}

fn rules() -> Vec<Value> {
    let groups = documents("deploy/prometheus/alerts.yml").remove(0);
    let groups = groups["groups"].as_array().expect("groups");
    groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
}

#[test]
fn alerts_ask_for_what_there_is() {
    let known = documented();
    for rule in rules() {
        let asked = names(rule["expr"].as_str().expect("a query"));
        assert!(!asked.is_empty(), "{rule}");
        assert!(asked.is_subset(&known), "{}: {:?}", rule["alert"], asked.difference(&known));
    }
}

#[test]
fn alerts_send_people_to_a_section_of_the_runbook() {
    let runbook = text("deploy/runbook.md");
    // As hosts of Markdown make them.
    let anchor = |title: &str| -> String {
        let kept = title.trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-')
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    let titles = runbook.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    let sections: BTreeSet<String> = titles.map(|title| format!("#{}", anchor(title))).collect();
    for rule in rules() {
        let see = rule["annotations"]["see"].as_str().expect("a section");
        assert!(sections.contains(see), "{}: no section {see} in {sections:?}", rule["alert"]);
        assert!(rule["annotations"]["summary"].is_string() && rule["labels"]["severity"].is_string(), "{rule}");
    }
}

#[test]
fn the_dashboard_shows_what_there_is() {
    let known = documented();
    let board: Value = serde_json::from_str(&text("deploy/grafana/dashboards/dualtrack.json")).expect("JSON");
    let mut shown = BTreeSet::new();
    for panel in board["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            let asked = names(target["expr"].as_str().expect("a query"));
            assert!(asked.is_subset(&known), "{}: {:?}", panel["title"], asked.difference(&known));
            shown.extend(asked);
        }
    }
    assert!(shown.len() > 20, "{shown:?}");
}

#[test]
fn promtool_takes_the_rules() {
    let file = deploy_checks::root().join("deploy/prometheus/alerts.yml");
    let ran = std::process::Command::new("promtool").args(["check", "rules"]).arg(file).output();
    let ran = ran.expect("promtool is there: scripts/setup.sh installs the package prometheus");
    assert!(ran.status.success(), "{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
}
