//! One process.

use std::ffi::OsStr;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use service_kit::{Clock as _, SystemClock};

use crate::until::LOOK_MS;

/// Longest time a process gets to end after SIGTERM, ms: 15 s are promised.
const END_MS: u64 = 20_000;

/// A process that was started here, in a process group of its own: a terminal's Ctrl-C reaches only who
/// started it, and ends it from there. Dropping it kills it.
pub struct Process {
    name: String,
    child: Child,
}

/// The program of this name in the folder of this one: they are built and installed together.
///
/// # Errors
/// It is not there; says how to build it.
pub fn program_beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let folders = own.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("{name} is not beside {}: build it with cargo build -p {name}", own.display()))
}

impl Process {
    /// Starts a program; `says`: where its stdout and stderr go. Of this process' environment it gets all
    /// but Dualtrack's own variables, and these.
    ///
    /// # Errors
    /// The system does not start it.
    pub fn start<S: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        environment: &[(String, String)],
        says: (Stdio, Stdio),
    ) -> anyhow::Result<Self> {
        let (stdout, stderr) = says;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("DUALTRACK_")) {
                command.env_remove(name);
            }
        }
        let child = command
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn();
        let child = child.with_context(|| format!("cannot start {name} ({})", program.display()))?;
        Ok(Self { name: name.to_owned(), child })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it prints, if that is piped; once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("cannot look after {}", self.name))
    }

    /// Fails if it ended by itself.
    ///
    /// # Errors
    /// It did.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        match self.ended()? {
            Some(status) => bail!("{} ended by itself: {status}", self.name),
            None => Ok(()),
        }
    }

    /// Ends it without a warning: no clean-up, no flush, nothing but what is durable already. Also one
    /// that is frozen.
    ///
    /// # Errors
    /// It had ended before.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.is_running()?;
        self.signal(Signal::KILL)?;
        let status = self.child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        ensure!(status.signal() == Some(9), "{} should have died by SIGKILL but ended with {status}", self.name);
        Ok(())
    }

    /// Stops all its threads where they stand (SIGSTOP), until [`Process::thaw`].
    ///
    /// # Errors
    /// It ended.
    pub fn freeze(&mut self) -> anyhow::Result<()> {
        self.is_running()?;
        self.signal(Signal::STOP)
    }

    /// Lets them go on.
    ///
    /// # Errors
    /// It ended.
    pub fn thaw(&mut self) -> anyhow::Result<()> {
        self.is_running()?;
        self.signal(Signal::CONT)
    }

    /// Asks it to end, and waits until it did; how many ms that took.
    ///
    /// # Errors
    /// It had ended before, it ended otherwise than well, or not in time.
    pub async fn stop(mut self) -> anyhow::Result<u64> {
        self.is_running()?;
        let began = SystemClock.boot_ms();
        self.signal(Signal::TERM)?;
        loop {
            let took = SystemClock.boot_ms() - began;
            if let Some(status) = self.ended()? {
                ensure!(status.success(), "{} ended with {status} after SIGTERM", self.name);
                return Ok(took);
            }
            ensure!(took < END_MS, "{} has not ended {END_MS} ms after SIGTERM", self.name);
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        kill_process(pid, signal).with_context(|| format!("cannot signal {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Of one that ended already these are errors that say nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Process {
        let says = (Stdio::null(), Stdio::null());
        Process::start("a sleeper", Path::new("/bin/sleep"), ["1000"], &[], says).expect("it starts")
    }

    fn state(id: u32) -> Option<char> {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        text.rsplit_once(") ")?.1.chars().next()
    }

    #[tokio::test]
    async fn frozen_thawed_and_killed() {
        let mut process = sleeper();
        let id = process.id();
        process.freeze().expect("it runs");
        crate::until("it stands still", 5_000, || async { Ok((state(id) == Some('T')).then_some(())) })
            .await
            .expect("T");
        process.thaw().expect("it runs");
        crate::until("it goes on", 5_000, || async { Ok((state(id) != Some('T')).then_some(())) }).await.expect("S");
        process.freeze().expect("it runs");
        process.kill().expect("also a frozen one dies");
        assert_eq!(state(id), None);
    }

    #[tokio::test]
    async fn whoever_ends_otherwise_than_asked_is_told() {
        let stopped = sleeper().stop().await.expect_err("sleep dies by SIGTERM").to_string();
        assert!(stopped.contains("a sleeper") && stopped.contains("SIGTERM"), "{stopped}");
        let mut process = sleeper();
        let pid = Pid::from_raw(process.id() as i32).expect("an id");
        kill_process(pid, Signal::KILL).expect("it runs");
        process.child.wait().expect("it ended");
        assert!(process.freeze().expect_err("it is gone").to_string().contains("ended by itself"));
    }
}
