//! A program of ours that answers HTTP: its start line says where.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use rest_client::Client;
use service_kit::{Clock as _, SystemClock};

use crate::process::Process;
use crate::until::LOOK_MS;

/// Longest time from a start to the first good answer of `/readyz`, ms.
const READY_MS: u64 = 60_000;

/// How a program is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What it is called in messages.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without `--listen`.
    pub arguments: Vec<OsString>,
    /// Variables of Dualtrack's; it gets no others of those.
    pub environment: Vec<(String, String)>,
    /// Where it listens, `IP:PORT`; port 0 takes a free one.
    pub listen: String,
    /// Where what it says of itself goes; appended to.
    pub log: PathBuf,
}

/// A running program that answers HTTP.
pub struct Served {
    launch: Launch,
    process: Process,
    /// Where it answers.
    pub url: String,
}

impl Served {
    /// Starts a program and waits until it is ready.
    ///
    /// # Errors
    /// It ended instead, or was not ready within a minute.
    pub async fn start(launch: Launch) -> anyhow::Result<Self> {
        let mut served = Self::launch(launch)?;
        served.ready().await?;
        Ok(served)
    }

    /// The same without the wait: once its start line names its address. Blocks until then.
    ///
    /// # Errors
    /// It ended instead.
    pub fn launch(launch: Launch) -> anyhow::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(&launch.log);
        let log = log.with_context(|| format!("cannot open {}", launch.log.display()))?;
        let listen = [OsString::from("--listen"), launch.listen.clone().into()];
        let arguments = launch.arguments.iter().cloned().chain(listen);
        let says = (Stdio::piped(), log.into());
        let mut process = Process::start(&launch.name, &launch.program, arguments, &launch.environment, says)?;
        let out = process.stdout().with_context(|| format!("{} has no output", launch.name))?;
        let mut lines = BufReader::new(out).lines();
        let url = loop {
            let Some(line) = lines.next().transpose()? else {
                let status = process.ended()?.map_or_else(|| "its output is closed".to_owned(), |s| s.to_string());
                bail!("{} ended before it was up: {status}; {} says why", launch.name, launch.log.display());
            };
            if let Some(at) = line.find("http://") {
                break line[at..].split([' ', ',']).next().unwrap_or_default().to_owned();
            }
        };
        // What else it says is nobody's, but must not fill the pipe.
        std::thread::spawn(move || lines.by_ref().for_each(drop));
        Ok(Self { launch, process, url })
    }

    /// Waits until `/readyz` says so.
    ///
    /// # Errors
    /// It ended, or was not ready within a minute.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        let client = Client::new(&self.url)?;
        let until = SystemClock.boot_ms() + READY_MS;
        while !client.ready().await.is_ok_and(|health| health.status == 200) {
            self.is_running()?;
            let (name, log) = (&self.launch.name, self.launch.log.display());
            ensure!(SystemClock.boot_ms() < until, "{name} is not ready after {READY_MS} ms; {log} says more");
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
        Ok(())
    }

    /// How it was started, with the address that it got: started so again it is at the same place.
    pub fn again(&self) -> Launch {
        Launch { listen: self.address().to_owned(), ..self.launch.clone() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.launch.name
    }

    /// `IP:PORT` of its URL.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Fails if it ended by itself.
    ///
    /// # Errors
    /// It did.
    pub fn is_running(&mut self) -> anyhow::Result<()> {
        self.process.is_running()
    }

    /// SIGKILL; how to start it again.
    ///
    /// # Errors
    /// It had ended before.
    pub fn kill(self) -> anyhow::Result<Launch> {
        let again = self.again();
        self.process.kill()?;
        Ok(again)
    }

    /// SIGTERM: it answers what is in flight and hands over. How many ms that took, and how to start it
    /// again.
    ///
    /// # Errors
    /// See [`Process::stop`].
    pub async fn stop(self) -> anyhow::Result<(u64, Launch)> {
        let again = self.again();
        Ok((self.process.stop().await?, again))
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// It ended.
    pub fn freeze(&mut self) -> anyhow::Result<()> {
        self.process.freeze()
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// It ended.
    pub fn thaw(&mut self) -> anyhow::Result<()> {
        self.process.thaw()
    }
}
