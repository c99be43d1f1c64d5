//! What the command line takes from its surroundings: variables of the environment, read once.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Variables of the environment.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    variables: BTreeMap<String, String>,
}

impl Surroundings {
    /// Those of this process. Names and values that are not UTF-8 are none of ours.
    pub fn here() -> Self {
        let all = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Self { variables: all.collect() }
    }

    /// A variable, if it is there and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Folder of the program's own settings: `$XDG_CONFIG_HOME/dualtrack`, else
    /// `$HOME/.config/dualtrack`. The XDG rules say to ignore a relative path.
    pub fn config_dir(&self) -> Option<PathBuf> {
        let absolute = |name| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
        Some(base.join("dualtrack"))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Surroundings {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self { variables: pairs.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_follows_the_xdg_rules() {
        let dir = |pairs: [(&str, &str); 2]| Surroundings::from(pairs).config_dir();
        assert_eq!(dir([("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), Some("/x/dualtrack".into()));
        assert_eq!(dir([("HOME", "/h"), ("XDG_CONFIG_HOME", "")]), Some("/h/.config/dualtrack".into()));
        assert_eq!(dir([("HOME", "/h"), ("XDG_CONFIG_HOME", "x")]), Some("/h/.config/dualtrack".into()));
        assert_eq!(dir([("HOME", ""), ("OTHER", "/x")]), None);
    }
}
