//! Reads what `deploy/` holds, and what the programs say of themselves, for the tests beside this.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Top of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the checkout.
///
/// # Panics
/// If it cannot be read.
pub fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a YAML file, anchors and merge keys resolved.
///
/// # Panics
/// If it is no YAML.
pub fn documents(path: impl AsRef<Path>) -> Vec<Value> {
    serde_saphyr::from_multiple(&text(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// The services, with the settings each knows.
const SERVICES: [(&str, &str); 3] = [
    ("dualtrack-coordinator", "crates/dualtrack-coordinator/config.default.toml"),
    ("dualtrack-task-engine", "crates/dualtrack-task-engine/config.default.toml"),
    ("dualtrack-auto-replay", "crates/dualtrack-auto-replay/config.default.toml"),
];

/// Names of the variables a program reads: `DUALTRACK_SECTION__KEY` of each key of its commented
/// default file, which names every setting there is. `dualtrack` itself prepares the engines for all
/// services and so reads what any of them does.
///
/// # Panics
/// If there is no such program, or its file is no TOML.
pub fn variables(program: &str) -> BTreeSet<String> {
    let files: Vec<&str> =
        SERVICES.iter().filter(|(name, _)| program == "dualtrack" || *name == program).map(|(_, file)| *file).collect();
    assert!(!files.is_empty(), "no program {program}");
    let mut found = BTreeSet::new();
    for file in files {
        let sections: toml::Table = text(file).parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        for (section, keys) in &sections {
            for key in keys.as_table().into_iter().flat_map(toml::Table::keys) {
                found.insert(format!("DUALTRACK_{}__{}", section.to_uppercase(), key.to_uppercase()));
            }
        }
    }
    found
}

/// Paths of `wanted` that are not in `found`, or are something else there: what was lost between
/// decoding into a type and encoding again, because the type does not know it.
pub fn lost(wanted: &Value, found: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare("", wanted, found, &mut paths);
    paths
}

fn compare(path: &str, wanted: &Value, found: &Value, lost: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            for (key, value) in wanted {
                let path = format!("{path}/{key}");
                match found.get(key) {
                    Some(other) => compare(&path, value, other, lost),
                    // An empty selector and no selector are one thing to these types.
                    None if value.as_object().is_some_and(serde_json::Map::is_empty) => {}
                    None => lost.push(path),
                }
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (index, (value, other)) in wanted.iter().zip(found).enumerate() {
                compare(&format!("{path}/{index}"), value, other, lost);
            }
        }
        (wanted, found) if wanted == found => {}
        (wanted, found) => lost.push(format!("{path}: {wanted} became {found}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_type_does_not_know_is_found() {
        let wanted = json!({ "spec": { "replicas": 3, "replica": 2, "list": [{ "a": 1 }] } });
        let found = json!({ "spec": { "replicas": 3, "list": [{ "a": 2 }] }, "more": 1 });
        assert_eq!(lost(&wanted, &found), ["/spec/list/0/a: 1 became 2", "/spec/replica"]);
    }
}
