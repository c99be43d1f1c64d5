//! What goes wrong with Redis, in words that say what to do.

use redis::{ErrorKind, RedisError};

use crate::LockUnavailable;

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No answer in time: whether it was done is unknown.
    Silent(String),
    /// No connection, or it broke.
    Lost(String),
    /// The server will not do it.
    Refused(String),
    /// What stands under the key is of another type.
    WrongType,
}

/// Codes of refusals, and what to do about them.
const REFUSALS: [(&str, &str); 11] = [
    ("READONLY", "it is a replica: point the address to the primary, or promote this one (REPLICAOF NO ONE)"),
    ("OOM", "its memory is used up: raise maxmemory, and keep maxmemory-policy at noeviction"),
    ("LOADING", "it is still loading its data: wait until it is done"),
    ("MISCONF", "it cannot save its data and takes no writes: see to its disk, or save nothing (CONFIG SET save \"\")"),
    ("NOAUTH", "it asks for a password: set the password of the lock server"),
    ("WRONGPASS", "it does not take this user and password: compare them with ACL LIST on the server"),
    ("NOPERM", "the user may not do this: ACL SETUSER … ~task:* with the commands in docs/guide/operations.md"),
    ("MASTERDOWN", "it is a replica without its primary: point the address to the primary"),
    ("CLUSTERDOWN", "its cluster is down"),
    ("MOVED", "it is a node of a cluster: point the address to a server that stands alone or with replicas"),
    ("BUSY", "a script of somebody else keeps it busy: SCRIPT KILL on the server"),
];

impl Failure {
    pub(super) fn of(why: &RedisError, address: &str, timeout_ms: u128) -> Self {
        if why.is_timeout() {
            return Self::Silent(format!("no answer from {address} within {timeout_ms} ms"));
        }
        if why.is_connection_refusal() {
            return Self::Lost(format!("nobody listens at {address}: is the server running?"));
        }
        let text = why.to_string();
        // Before version 7 an error inside a script carries its code in its text.
        let is = |code: &str| why.code() == Some(code) || text.contains(code);
        if is("WRONGTYPE") {
            return Self::WrongType;
        }
        match REFUSALS.iter().find(|(code, _)| is(code)) {
            Some((code, advice)) => Self::Refused(format!("{address} says {code}: {advice}")),
            None if why.kind() == ErrorKind::AuthenticationFailed => Self::Refused(format!(
                "{address} does not take this user and password ({text}): compare them with ACL LIST on the server"
            )),
            None if why.is_io_error() => Self::Lost(format!("the connection to {address} broke: {text}")),
            None => Self::Refused(format!("{address} says {text}")),
        }
    }

    /// As users of the port hear it; `key` is what was asked for.
    pub(super) fn unavailable(self, key: &str) -> LockUnavailable {
        match self {
            Self::Silent(text) => LockUnavailable::Away(format!("{text}: whether it was done is unknown")),
            Self::Lost(text) => LockUnavailable::Away(text),
            Self::Refused(text) => LockUnavailable::Refused(text),
            Self::WrongType => LockUnavailable::Key(format!(
                "{key} holds something of another type: find out who writes it, then delete it (DEL {key})"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::{RedisError, parse_redis_value};

    use super::*;

    fn said(line: &str) -> Failure {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("a reply");
        let why: RedisError = value.extract_error().expect_err("an error");
        Failure::of(&why, "redis://h", 500)
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        for (line, part) in [
            ("LOADING Redis is loading the dataset in memory", "wait until it is done"),
            ("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to", "disk"),
            ("NOAUTH Authentication required.", "password"),
            ("MASTERDOWN Link with MASTER is down", "primary"),
            ("MOVED 3999 127.0.0.1:6381", "stands alone"),
            ("BUSY Redis is busy running a script", "SCRIPT KILL"),
            ("ERR something new", "something new"),
        ] {
            let failure = said(line);
            assert!(matches!(&failure, Failure::Refused(text) if text.contains(part)), "{line}: {failure:?}");
        }
    }

    #[test]
    fn a_code_inside_a_scripts_error_counts() {
        let old = "ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation against a key";
        assert_eq!(said(old), Failure::WrongType);
        assert_eq!(said("WRONGTYPE Operation against a key holding the wrong kind of value"), Failure::WrongType);
    }
}
