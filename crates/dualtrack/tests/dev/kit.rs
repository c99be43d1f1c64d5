//! Real processes of `dualtrack dev`, and the command line against them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualtrack"));
    command.env_remove("DUALTRACK_URL").env_remove("DUALTRACK_PROFILE").env_remove("DUALTRACK_LOG");
    command
}

/// A process of `dualtrack dev` on a free port; killed when it is dropped.
pub struct Dev {
    child: Child,
    pub url: String,
    errors: PathBuf,
}

impl Dev {
    /// Starts one and waits until it is ready.
    pub fn start(dir: &Path, more: &[&str]) -> Self {
        Self::try_start(dir, more).unwrap_or_else(|why| panic!("dev did not start: {why}"))
    }

    /// Starts one; what it said on stderr if it ends instead.
    pub fn try_start(dir: &Path, more: &[&str]) -> Result<Self, String> {
        let errors = dir.with_extension("stderr");
        let file = std::fs::File::create(&errors).expect("a file");
        let mut child = program()
            .arg("dev")
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(dir)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut url = None;
        for line in lines.by_ref() {
            let line = line.expect("UTF-8");
            url = url.or_else(|| line.split([' ', ',']).find(|w| w.starts_with("http://")).map(str::to_owned));
            if line == "ready" {
                return Ok(Self { child, url: url.expect("the start line names the URL"), errors });
            }
        }
        let status = child.wait().expect("it ended");
        Err(format!("{status}: {}", std::fs::read_to_string(&errors).expect("readable")))
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("not 0");
        kill_process(pid, signal).expect("it is there");
    }

    /// As the machine's sudden end would.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("it ended");
    }

    /// Ends it politely; its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.child.wait().expect("it ended").code()
    }

    /// What it logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.errors).expect("readable")
    }

    /// Sends a request as it is written here, with these header lines; head and body of the answer.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").expect("http")).expect("it listens");
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n");
        stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).expect("it takes requests");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    /// What `GET /metrics` says.
    pub fn metrics(&self) -> String {
        self.ask("GET", "/metrics", "", "").1
    }

    /// `dualtrack task ARGS` against it.
    pub fn task(&self, args: &[&str]) -> Said {
        task(&self.url, args)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a command said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        Self { code: output.status.code().expect("no signal"), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Said {
    /// Its output, if it ended with this code.
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }
}

/// `dualtrack task ARGS`.
pub fn task(url: &str, args: &[&str]) -> Said {
    program().arg("task").args(args).args(["--url", url]).output().expect("the program starts").into()
}
