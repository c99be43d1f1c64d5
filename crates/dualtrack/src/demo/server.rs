//! What the demo and the benchmarks run on: `dualtrack dev` as a process, which is this program again, or
//! separate processes on engines that the environment names.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, bail};
use futures::future::{Either, select};
use service_host::Signals;
use stack_control::{Engines, Launch};

/// Runs what starts processes until it ends or a signal comes: what is broken off is dropped, and so ends
/// its processes.
///
/// # Errors
/// Those of what runs; or it was broken off.
pub async fn until_stopped<T>(
    signals: &mut Signals,
    what: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    match select(Box::pin(what), Box::pin(signals.received())).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => bail!("broken off"),
    }
}

/// The engines that the environment names, as `make stack` writes it.
pub fn engines() -> Engines {
    let engine = |name: &str| ["LOG", "STORE", "LOCK"].iter().any(|of| name.starts_with(&format!("DUALTRACK_{of}__")));
    let variables = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    Engines(variables.filter(|(name, _)| engine(name)).collect())
}

/// How `dualtrack dev` is started with these settings. What it logs goes to `server.log` beside them.
pub fn dev(settings: &Path, listen: &str) -> anyhow::Result<Launch> {
    Ok(Launch {
        name: "the server".to_owned(),
        program: std::env::current_exe().context("cannot find this program")?,
        arguments: vec![OsString::from("dev"), "--config".into(), settings.as_os_str().to_owned()],
        environment: Vec::new(),
        listen: listen.to_owned(),
        log: settings.with_file_name("server.log"),
    })
}
