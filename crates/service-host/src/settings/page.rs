//! The commented defaults as documentation: each key with its default, its variable and its meaning.

use super::origins::variable;

/// A documented setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documented {
    /// Section.
    pub section: String,
    /// Key in it.
    pub key: String,
    /// Default as TOML.
    pub default: String,
    /// What the comment above it says.
    pub meaning: String,
}

/// What commented defaults say. They are written by us: a comment above each key, one line a value.
pub fn documented(defaults: &str) -> Vec<Documented> {
    let (mut section, mut meaning, mut all) = (String::new(), Vec::new(), Vec::new());
    for line in defaults.lines() {
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

/// Tables of Markdown, one for each section.
pub fn table(settings: &[Documented]) -> String {
    let (mut out, mut last) = (String::new(), "");
    for Documented { section, key, default, meaning } in settings {
        if section != last {
            last = section;
            out += &format!("\n### [{section}]\n\n| key | default | variable | meaning |\n|---|---|---|---|\n");
        }
        let variable = variable(&format!("{section}.{key}"));
        out += &format!("| `{key}` | `{default}` | `{variable}` | {meaning} |\n");
    }
    out
}
