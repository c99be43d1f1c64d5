//! Secrets: never printed, never in a dump of settings, wiped from memory when they are dropped.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::SettingsError;

/// Largest file of a secret, bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// A password. Empty: there is none.
#[derive(Clone, Default)]
pub struct Secret(SecretString);

impl Secret {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }

    /// The secret itself, for whoever must send it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// This one, else the one in the file that `key` names: its first line. The file must not be
    /// readable by others; its group may read it only if it is somebody else's, as a mounted secret is.
    ///
    /// # Errors
    /// Names the key, the file and what is wrong with it.
    pub fn or_file(&self, key: &str, file: &Path) -> Result<Self, SettingsError> {
        if file.as_os_str().is_empty() || !self.is_empty() {
            return Ok(self.clone());
        }
        let whole = Self::whole(key, file)?;
        let line = whole.expose().lines().next().unwrap_or_default();
        if line.is_empty() {
            return Err(refused(key, file, "its first line is empty"));
        }
        Ok(Self::from(line.to_owned()))
    }

    /// Everything in the file that `key` names, which only its owner can read; see [`Secret::or_file`].
    ///
    /// # Errors
    /// Names the key, the file and what is wrong with it.
    pub fn whole(key: &str, file: &Path) -> Result<Self, SettingsError> {
        let refuse = |rule| refused(key, file, rule);
        let about = std::fs::metadata(file).map_err(|_| refuse("the file cannot be read"))?;
        if !about.is_file() || about.len() > MAX_BYTES {
            return Err(refuse("it must be a file of at most 64 KiB"));
        }
        let own = about.uid() == rustix::process::geteuid().as_raw();
        let forbidden = if own { 0o077 } else { 0o037 };
        if about.mode() & forbidden != 0 {
            return Err(refuse("others can read or change the file: chmod 600"));
        }
        let text = std::fs::read_to_string(file).map_err(|_| refuse("the file cannot be read, or is no UTF-8"))?;
        Ok(Self::from(text))
    }

    /// For clients that take it so; `None` if there is none.
    pub fn text(&self) -> Option<SecretString> {
        (!self.is_empty()).then(|| self.0.clone())
    }
}

fn refused(key: &str, file: &Path, rule: &'static str) -> SettingsError {
    SettingsError::Setting { key: key.to_owned(), value: file.display().to_string(), rule }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "(none)" } else { "***" })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(if self.is_empty() { "" } else { "***" })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_of_a_secret_is_its_owners_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("password");
        std::fs::write(&file, "obviously-fake\nsecond line\n").expect("a file");
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("its mode");
        let read = || Secret::default().or_file("log.password_file", &file);
        for open in [0o644, 0o640, 0o620, 0o604] {
            mode(open);
            let why = read().expect_err("refused").to_string();
            assert!(why.contains("log.password_file") && why.contains("chmod 600"), "{open:o}: {why}");
        }
        mode(0o600);
        assert_eq!(read().expect("it is private").expose(), "obviously-fake");
        std::fs::write(&file, "\n").expect("a file");
        assert!(read().expect_err("refused").to_string().contains("empty"));
        let nowhere = Secret::default().or_file("log.password_file", Path::new("/no/such"));
        assert!(nowhere.expect_err("refused").to_string().contains("/no/such"));
    }

    #[test]
    fn one_that_is_set_needs_no_file() {
        let set = Secret::from("x".to_owned());
        assert_eq!(set.or_file("k", Path::new("/no/such")).expect("not read").expose(), "x");
        assert!(Secret::default().or_file("k", Path::new("")).expect("there is none").is_empty());
        assert_eq!((format!("{set:?}"), serde_json::to_string(&set).expect("JSON")), ("***".into(), "\"***\"".into()));
    }
}
