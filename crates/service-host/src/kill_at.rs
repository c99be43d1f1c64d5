//! Builds with the feature `failpoints` only: the process ends itself at a named fail point, for
//! tests that start it again (tests/fail_points).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use crate::settings::SettingsError;

/// `NAME:COUNT`: SIGKILL at the COUNT-th evaluation of the point NAME, counted from 1.
const VARIABLE: &str = "DUALTRACK_KILL_AT";

/// Arms the point that the variable names, and takes the variable out: it is no setting.
pub fn arm(mut environment: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, SettingsError> {
    let Some(told) = environment.remove(VARIABLE) else { return Ok(environment) };
    let parts = told.rsplit_once(':').and_then(|(point, count)| Some((point, count.parse().ok()?)));
    let refusal =
        || SettingsError::Layer(format!("{VARIABLE} = {told}: it must be NAME:COUNT, such as owner::after_append:7"));
    let (point, count) = parts.filter(|(_, count)| *count > 0).ok_or_else(refusal)?;
    let left = AtomicU64::new(count);
    let evaluated = move || {
        if left.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Nothing after this line runs, in no thread.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    };
    fail::cfg_callback(point, evaluated).map_err(SettingsError::Layer)?;
    Ok(environment)
}
