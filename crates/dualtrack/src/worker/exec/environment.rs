//! What a program gets to see: nothing of the worker's environment but what is harmless or asked for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;

use worker_sdk::Context;

/// Passed on unless the worker has no such variable; `LC_` stands for all that begin so.
pub const PASSED: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_", "TZ", "TMPDIR", "TERM"];

/// Variables that every program of a worker gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed(Vec<(OsString, OsString)>);

impl Passed {
    /// What of the worker's own `environment` is passed on.
    ///
    /// # Errors
    /// A variable that was asked for is not there.
    pub fn new(environment: BTreeMap<OsString, OsString>, asked: &[OsString]) -> Result<Self, String> {
        if let Some(missing) = asked.iter().find(|name| !environment.contains_key(*name)) {
            return Err(format!("--env {}: the worker's environment has no such variable", missing.display()));
        }
        let harmless = |name: &OsStr| {
            let name = name.to_string_lossy();
            PASSED.iter().any(|passed| match passed.strip_suffix('_') {
                Some(_) => name.starts_with(passed),
                None => name == *passed,
            })
        };
        Ok(Self(environment.into_iter().filter(|(name, _)| harmless(name) || asked.contains(name)).collect()))
    }

    /// Folder for temporary files, if one is named.
    pub fn temporary(&self) -> Option<OsString> {
        self.0.iter().find(|(name, _)| name == "TMPDIR").map(|(_, folder)| folder.clone())
    }

    /// The whole environment of a program, for one attempt.
    pub fn for_attempt(&self, context: &Context) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all: BTreeMap<Vec<u8>, Vec<u8>> =
            self.0.iter().map(|(name, value)| (name.clone().into_vec(), value.clone().into_vec())).collect();
        let own = [
            ("DUALTRACK_TASK_ID", context.task_id().to_string()),
            ("DUALTRACK_TASK_TYPE", context.task_type().to_owned()),
            ("DUALTRACK_RUN", context.run_no().to_string()),
            ("DUALTRACK_EXEC_EPOCH", context.exec_epoch().to_string()),
            ("DUALTRACK_ATTEMPT", context.exec_epoch().to_string()),
            ("DUALTRACK_EXECUTION_ID", context.execution_id().to_string()),
            ("DUALTRACK_START_TO_CLOSE_MS", context.start_to_close_ms().to_string()),
            ("DUALTRACK_TRACE_ID", context.trace_id().to_owned()),
        ];
        let reference = context.payload_ref().map(|at| {
            let hash = context.payload_hash().to_string();
            [("DUALTRACK_PAYLOAD_REF", at.to_owned()), ("DUALTRACK_PAYLOAD_SHA256", hash)]
        });
        let parent = context.traceparent().map(|parent| ("TRACEPARENT", parent.to_string()));
        let own = own.into_iter().chain(parent).chain(reference.into_iter().flatten());
        // A name or value with a zero byte could not be passed on at all.
        all.extend(own.filter(|(_, value)| !value.contains('\0')).map(|(name, value)| (name.into(), value.into())));
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_with_the_worker() {
        let environment: BTreeMap<OsString, OsString> =
            ["PATH", "LC_ALL", "LCD", "AWS_SECRET", "DUALTRACK_URL", "EXTRA"].map(|n| (n.into(), "v".into())).into();
        let names = |passed: Passed| passed.0.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(Passed::new(environment.clone(), &[]).unwrap()), ["LC_ALL", "PATH"]);
        assert_eq!(names(Passed::new(environment.clone(), &["EXTRA".into()]).unwrap()), ["EXTRA", "LC_ALL", "PATH"]);
        assert!(Passed::new(environment, &["NOPE".into()]).unwrap_err().contains("NOPE"));
    }
}
