//! Licences of everything that is linked, and no crate of ours outside the workspace's version table.

use std::collections::BTreeSet;

use cargo_metadata::{MetadataCommand, Package};
use repository_checks::root;

/// Licences that ask for no more than a notice, and MPL-2.0 (file-level copyleft: serde_avro_fast).
const ALLOWED: [&str; 14] = [
    "MIT",
    "MIT-0",
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "BSL-1.0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
];

/// Crates under another licence, each with the record that says why it is there all the same.
const EXCEPTIONS: [(&str, &str); 1] = [("serde_serializer_quick_unsupported", "docs/adr/005-a-licence-to-decide.md")];

// `A OR B` is fine if one of them is, `A AND B` if both are; a slash is an old spelling of OR.
fn is_fine(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|licence| ALLOWED.contains(&licence.trim())))
}

/// What is linked differs by platform; crates for others are never part of what is shipped.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

fn linked(platform: &str) -> Vec<Package> {
    let mut command = MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml"));
    command.other_options(["--filter-platform".to_owned(), platform.to_owned()]);
    command.exec().expect("cargo metadata").packages
}

#[test]
fn every_linked_crate_has_an_allowed_licence() {
    let packages: Vec<_> = PLATFORMS.into_iter().flat_map(linked).collect();
    let bad: BTreeSet<String> = packages
        .iter()
        .filter(|p| !p.license.as_deref().is_some_and(is_fine))
        .filter(|p| !EXCEPTIONS.iter().any(|(name, record)| p.name.as_str() == *name && root().join(record).exists()))
        .map(|p| format!("{} {}: {:?}", p.name, p.version, p.license))
        .collect();
    assert!(bad.is_empty(), "licences to look at:\n{bad:#?}");
}

#[test]
fn versions_stand_in_the_workspace_table() {
    let mut bad = Vec::new();
    for folder in ["crates", "tests"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder").flatten() {
            let manifest = entry.path().join("Cargo.toml");
            let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
            let mut in_dependencies = false;
            for line in text.lines() {
                if line.starts_with('[') {
                    in_dependencies = line.contains("dependencies");
                } else if in_dependencies
                    && line.contains('=')
                    && !line.starts_with('#')
                    && !line.contains("workspace = true")
                    // A crate's own tests turn its features on by naming it.
                    && !line.contains("path = \".\"")
                {
                    bad.push(format!("{}: {line}", manifest.display()));
                }
            }
        }
    }
    assert!(bad.is_empty(), "give these a line in [workspace.dependencies]:\n{}", bad.join("\n"));
}
