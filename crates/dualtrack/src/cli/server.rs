//! Which server is asked, and who said so: `--url`, else `--profile`, else `DUALTRACK_URL`, else
//! `DUALTRACK_PROFILE`, else the profile file's `default`, else the built-in address.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use super::Failure;
use super::surroundings::Surroundings;

/// Name of the file of profiles, in the folder of the program's settings.
const FILE: &str = "profiles.toml";

/// The server this process asks: what an error says of its URL.
static ASKED: OnceLock<Server> = OnceLock::new();

/// A server's URL and where it was taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// URL.
    pub url: String,
    /// Who named it.
    pub from: Origin,
}

/// Who named a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `--url`.
    Flag,
    /// `DUALTRACK_URL`.
    Variable,
    /// A profile.
    Profile {
        /// Its name.
        name: String,
        /// The file it stands in.
        file: PathBuf,
        /// Who named the profile.
        by: &'static str,
    },
    /// Nobody: it is the built-in one.
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("named by --url"),
            Self::Variable => f.write_str("named by the variable DUALTRACK_URL"),
            Self::Profile { name, file, by } => {
                write!(f, "of the profile {name:?} in {}, named by {by}", file.display())
            }
            Self::BuiltIn => f.write_str("the built-in one, since nobody named another"),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profiles {
    default: Option<String>,
    #[serde(default)]
    profile: BTreeMap<String, Profile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    url: String,
}

/// Decides; the decision is remembered for [`asked`].
///
/// # Errors
/// A profile that is not there, with those there are; a file that cannot be read.
pub fn choose(url: Option<&str>, profile: Option<&str>, around: &Surroundings) -> Result<Server, Failure> {
    let server = decide(url, profile, around)?;
    Ok(ASKED.get_or_init(|| server).clone())
}

/// The server that was chosen, once one was.
pub fn asked() -> Option<&'static Server> {
    ASKED.get()
}

fn decide(url: Option<&str>, profile: Option<&str>, around: &Surroundings) -> Result<Server, Failure> {
    let file = around.config_dir().map(|dir| dir.join(FILE));
    if let Some(url) = url {
        return Ok(Server { url: url.to_owned(), from: Origin::Flag });
    }
    if let Some(name) = profile {
        return named(name, "--profile", file.as_deref());
    }
    if let Some(url) = around.get("DUALTRACK_URL") {
        return Ok(Server { url: url.to_owned(), from: Origin::Variable });
    }
    if let Some(name) = around.get("DUALTRACK_PROFILE") {
        return named(name, "the variable DUALTRACK_PROFILE", file.as_deref());
    }
    let default = match file.as_deref().filter(|file| file.exists()) {
        Some(file) => read(file)?.default,
        None => None,
    };
    match default {
        Some(name) => named(&name, "its `default`", file.as_deref()),
        None => Ok(Server { url: dualtrack::dev::DEFAULT_URL.to_owned(), from: Origin::BuiltIn }),
    }
}

fn named(name: &str, by: &'static str, file: Option<&Path>) -> Result<Server, Failure> {
    let Some(file) = file else {
        let text = format!("profile {name:?} ({by}): there is no home folder to look for {FILE} in; use --url");
        return Err(Failure::Usage(text));
    };
    if !file.exists() {
        let text = format!(
            "profile {name:?} ({by}): there is no file {}; make it, with\n  [profile.{name}]\n  url = \"http://HOST:PORT\"",
            file.display()
        );
        return Err(Failure::Usage(text));
    }
    let mut profiles = read(file)?.profile;
    match profiles.remove(name) {
        Some(Profile { url }) => {
            Ok(Server { url, from: Origin::Profile { name: name.to_owned(), file: file.to_owned(), by } })
        }
        None => {
            let names: Vec<_> = profiles.keys().map(String::as_str).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let text = format!("profile {name:?} ({by}) is not in {}; there are: {there}", file.display());
            Err(Failure::Usage(text))
        }
    }
}

fn read(file: &Path) -> Result<Profiles, Failure> {
    let text = std::fs::read_to_string(file).map_err(|why| Failure::Usage(format!("{}: {why}", file.display())))?;
    toml::from_str(&text).map_err(|why| {
        let why = why.to_string();
        Failure::Usage(format!("{} cannot be used as a file of profiles: {}", file.display(), why.trim_end()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(outcome: Result<Server, Failure>) -> String {
        match outcome {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_come_before_variables_and_a_url_before_a_profile() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path().to_str().expect("UTF-8");
        std::fs::create_dir(dir.path().join("dualtrack")).expect("a folder");
        let file = dir.path().join("dualtrack/profiles.toml");
        let text = "default = 'c'\n[profile.a]\nurl = 'http://a'\n[profile.B]\nurl = 'http://b'\n[profile.c]\nurl='http://c'\n";
        std::fs::write(&file, text).expect("a file");
        let all =
            [("XDG_CONFIG_HOME", home), ("DUALTRACK_URL", "http://v"), ("DUALTRACK_PROFILE", "B")].map(|pair| pair);
        let url = |url, profile, around: &Surroundings| decide(url, profile, around).expect("a server").url;
        let around = Surroundings::from(all);
        assert_eq!(url(Some("http://f"), Some("a"), &around), "http://f");
        assert_eq!(url(None, Some("a"), &around), "http://a");
        assert_eq!(url(None, None, &around), "http://v");
        let around = Surroundings::from([all[0], all[2]]);
        assert_eq!(url(None, None, &around), "http://b");
        let around = Surroundings::from([all[0]]);
        let server = decide(None, None, &around).expect("a server");
        assert_eq!(server.url, "http://c");
        assert!(server.from.to_string().contains("profiles.toml"), "{}", server.from);
        assert_eq!(decide(None, None, &Surroundings::default()).expect("built in").from, Origin::BuiltIn);

        let wrong = refusal(decide(None, Some("prod"), &around));
        assert!(wrong.contains("B, a, c") && wrong.contains("--profile"), "{wrong}");
        std::fs::write(&file, "[profile.a]\nurl = 'http://a'\nurll = 'x'\n").expect("a file");
        let typo = refusal(decide(None, Some("a"), &around));
        assert!(typo.contains("urll") && typo.contains("line 3"), "{typo}");
        std::fs::remove_file(&file).expect("removed");
        let none = refusal(decide(None, Some("a"), &around));
        assert!(none.contains("profiles.toml") && none.contains("[profile.a]"), "{none}");
    }
}
