//! `docs/configuration.md`, made of the commented defaults and the rules. `make docs` writes it anew.

use super::layers::{DEFAULTS, Sources};
use super::origins::variable;
use super::{DevError, Settings};

// A documented setting: section, key, default as TOML, meaning.
struct Documented {
    section: String,
    key: String,
    default: String,
    meaning: String,
}

// The defaults are written by us: a comment above each key, one line a value.
fn documented() -> Vec<Documented> {
    let (mut section, mut meaning, mut all) = (String::new(), Vec::new(), Vec::new());
    for line in DEFAULTS.lines() {
        if let Some(text) = line.strip_prefix('#') {
            meaning.push(text.trim());
        } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
            meaning.clear();
        } else if let Some((key, default)) = line.split_once(" = ") {
            let (section, key, default) = (section.clone(), key.to_owned(), default.to_owned());
            all.push(Documented { section, key, default, meaning: meaning.join(" ") });
            meaning.clear();
        }
    }
    all
}

// `docs/configuration.md`.
fn page() -> Result<String, DevError> {
    let mut out = String::from(
        "# Settings of the server\n\n\
         Generated from `crates/dualtrack/src/dev/config.default.toml` and from the rules in code; `make docs` writes it anew.\n\n\
         Later layers win: the defaults, a file (`--config FILE` or `DUALTRACK_CONFIG`, TOML), variables of the environment\n\
         (`DUALTRACK_SECTION__KEY`, two underscores), flags (`--set section.key=value` and those of their own). What is not\n\
         known is refused by name. `dualtrack config print` shows each value and where it came from, `dualtrack config check`\n\
         every rule and whether it holds; its exit code is 2 if one does not. Durations end in `_ms`.\n",
    );
    let mut section = String::new();
    for setting in documented() {
        if setting.section != section {
            section.clone_from(&setting.section);
            out += &format!("\n## [{section}]\n\n| key | default | variable | meaning |\n|---|---|---|---|\n");
        }
        let Documented { section, key, default, meaning } = setting;
        let variable = variable(&format!("{section}.{key}"));
        out += &format!("| `{key}` | `{default}` | `{variable}` | {meaning} |\n");
    }
    out += "\n## Rules\n\nWith the defaults:\n\n";
    for rule in Settings::defaults()?.rules() {
        out += &format!("- {}\n", rule.broken.rule());
    }
    Ok(out)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
fn the_page_is_generated_and_knows_every_key() {
    let fresh = page().expect("the defaults load");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &fresh).expect("writable");
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), fresh, "run `make docs`");
    let documented = documented();
    for setting in Sources::default().explain().expect("the defaults load") {
        let found = documented.iter().find(|d| format!("{}.{}", d.section, d.key) == setting.key);
        assert!(found.is_some_and(|found| found.meaning.len() > 10), "{} is not documented", setting.key);
    }
    assert_eq!(documented.len(), Sources::default().explain().expect("the defaults load").len());
}
