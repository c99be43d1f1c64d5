//! `dualtrack worker http` against a little server that answers as it is told: well, badly, slowly, at
//! length, and not to the end.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rest_client::Client;
use rest_client::contract::MAX_PAYLOAD_BYTES;
use task_events::TaskState;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::exec_kit::{code, create, ended};
use crate::kit::{DevProcess, flags};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request as it came: its head in lower case, and its body.
type Request = (String, String);

struct Receiver {
    url: String,
    had: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let had = Arc::new(Mutex::new(Vec::new()));
        let kept = had.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, kept.clone()));
            }
        });
        Self { url, had }
    }

    /// One that shows a certificate for `localhost`; and the certificate of who signed it, PEM.
    async fn start_tls() -> (Self, String) {
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::new(Vec::new()).expect("no names");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&authority_key).expect("a certificate");
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("a key");
        let own = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let own = own.signed_by(&key, &issuer).expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        // Named: which cryptography is the default depends on what else is linked.
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let config = config.with_single_cert(vec![own.der().clone()], key).expect("a pair");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let had = Arc::new(Mutex::new(Vec::new()));
        let kept = had.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // One that does not trust the certificate ends it here.
                if let Ok(stream) = acceptor.accept(stream).await {
                    tokio::spawn(answer(stream, kept.clone()));
                }
            }
        });
        (Self { url: format!("https://localhost:{port}/hook"), had }, root.pem())
    }

    fn had(&self, body: &str) -> Vec<Request> {
        self.had.lock().expect("kept").iter().filter(|(_, b)| b == body).cloned().collect()
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut text = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let bytes = stream.read(&mut buffer).await.ok().filter(|bytes| *bytes > 0)?;
        text.extend_from_slice(&buffer[..bytes]);
        let request = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse::<usize>().ok()?;
        if body.len() == length {
            return Some((head, body.to_owned()));
        }
    }
}

// The body says what to answer: `"STATUS"`, `"STATUS HEADER: VALUE"`, `"cut"`, `"slow"`, `"size N"`.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, had: Arc<Mutex<Vec<Request>>>) {
    let Some(request) = read(&mut stream).await else { return };
    let told = request.1.trim_matches('"').to_owned();
    let before = {
        let mut had = had.lock().expect("kept");
        had.push(request.clone());
        had.iter().filter(|(_, body)| *body == request.1).count()
    };
    let reply = match told.split_once(' ').unwrap_or((&told, "")) {
        ("cut", _) => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":".to_owned(),
        ("slow", _) => {
            // Until the worker gives up and closes the connection.
            let _ = stream.read(&mut [0; 1]).await;
            return;
        }
        ("size", n) => {
            let body = "a".repeat(n.parse().expect("a size"));
            format!("HTTP/1.1 200 OK\r\ncontent-length: {n}\r\n\r\n{body}")
        }
        // Well at the second time.
        (_, header) if before > 1 && header.starts_with("retry-after") => ok(),
        ("200", _) => ok(),
        (status, "") => format!("HTTP/1.1 {status} So\r\ncontent-length: 4\r\n\r\nwhy?"),
        (status, header) => format!("HTTP/1.1 {status} So\r\n{header}\r\ncontent-length: 4\r\n\r\nwhy?"),
    };
    let _ = stream.write_all(reply.as_bytes()).await;
}

fn ok() -> String {
    "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"ok\":1}".to_owned()
}

struct HttpWorker(Child);

impl HttpWorker {
    fn start(server: &str, url: &str, dir: &Path, name: &str, more: &[&str]) -> Self {
        let says = std::fs::File::create(dir.join(format!("{name}.says"))).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_dualtrack"))
            .env("DUALTRACK_WEBHOOK_SECRET", SECRET)
            .args(["worker", "http", "--server", server, "--url", url, "--type", "t", "--name", name])
            .args(["--timeout", "1s", "--slots", "8"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(says.try_clone().expect("a file"))
            .stderr(says)
            .spawn()
            .expect("the program starts");
        Self(child)
    }
}

impl Drop for HttpWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_answer_has_its_outcome() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let server = dev.ready();
    let client = Client::new(&server).expect("a URL");
    let receiver = Receiver::start().await;
    let _worker = HttpWorker::start(&server, &receiver.url, dir.path(), "plain", &[]);
    let too_large = format!("\"size {}\"", MAX_PAYLOAD_BYTES + 1);
    let mut tasks = Vec::new();
    for (told, expected, attempts) in [
        ("\"200\"", "", 1),
        ("\"302 location: http://127.0.0.1:1/\"", "HTTP_302", 1),
        ("\"404\"", "HTTP_404", 1),
        ("\"429\"", "HTTP_429", 2),
        ("\"500\"", "HTTP_500", 2),
        (too_large.as_str(), "RESULT_TOO_LARGE", 1),
        ("\"size 262144\"", "", 1),
        // Nobody knows what they did, and nobody said that twice does no harm.
        ("\"cut\"", "OUTCOME_UNKNOWN", 1),
        ("\"slow\"", "HTTP_TIMEOUT", 1),
    ] {
        tasks.push((create(&client, told.trim_matches('"'), 1, None).await, told, expected, attempts));
    }
    for (task, told, expected, attempts) in tasks {
        let view = ended(&client, task).await;
        let status = if expected.is_empty() { TaskState::Success } else { TaskState::FailedPermanently };
        assert_eq!((view.status, code(&view)), (status, (expected, attempts)), "{told}");
        if told == "\"200\"" {
            let result = client.result(task).await.expect("a result").result.expect("JSON");
            assert_eq!(result.get(), r#"{"ok":1}"#);
        }
        assert_eq!(receiver.had(told).len(), attempts as usize, "{told}");
        let [(head, body), ..] = &receiver.had(told)[..] else { panic!("no request for {told}") };
        let value = |name: &str| head.lines().find_map(|l| l.strip_prefix(&format!("{name}: ")));
        assert_eq!(value("dualtrack-task-id"), Some(task.to_string().as_str()));
        assert_eq!(value("dualtrack-exec-epoch"), Some("1"));
        assert_eq!(value("traceparent").and_then(|t| t.split('-').nth(1)), Some(view.trace_id.as_str()));
        // The reference implementation's own check, in the case in which it was sent.
        let (id, at) = (value("webhook-id").expect("an id"), value("webhook-timestamp").expect("a time"));
        let secret = standardwebhooks::Webhook::new(SECRET).expect("a key");
        let signature = secret.sign(id, at.parse().expect("seconds"), body.as_bytes()).expect("a signature");
        assert_eq!(value("webhook-signature"), Some(signature.to_lowercase().as_str()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_declared_harmless_is_sent_again_and_retry_after_is_heeded() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let server = dev.ready();
    let client = Client::new(&server).expect("a URL");
    let receiver = Receiver::start().await;
    let _worker = HttpWorker::start(&server, &receiver.url, dir.path(), "harmless", &["--idempotent"]);
    for (told, expected) in [("cut", "OUTCOME_UNKNOWN"), ("slow", "HTTP_TIMEOUT")] {
        let view = ended(&client, create(&client, told, 1, None).await).await;
        assert_eq!(code(&view), (expected, 2), "{told}");
    }
    let view = ended(&client, create(&client, "503 retry-after: 3", 3, None).await).await;
    assert_eq!((view.status, view.exec_epoch), (TaskState::Success, 2));
    let heads: Vec<_> = receiver.had("\"503 retry-after: 3\"");
    let at = |n: usize| {
        let (head, _): &Request = &heads[n];
        head.lines().find_map(|l| l.strip_prefix("webhook-timestamp: ")).expect("a time").parse::<i64>().expect("s")
    };
    assert!(at(1) - at(0) >= 2, "three seconds, counted in whole ones: {} and {}", at(0), at(1));
    // One message, sent twice: by its id a receiver knows that.
    let id = |n: usize| heads[n].0.lines().find(|l| l.starts_with("webhook-id")).expect("an id").to_owned();
    assert_eq!(id(0), id(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_https_only_a_certificate_that_is_good_for_the_host_is_trusted() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let server = dev.ready();
    let client = Client::new(&server).expect("a URL");
    let (receiver, root) = Receiver::start_tls().await;
    let file = dir.path().join("ca.pem");
    std::fs::write(&file, root).expect("a file");
    let trusted = ["--ca-file", file.to_str().expect("UTF-8")];
    let by_address = receiver.url.replace("localhost", "127.0.0.1");
    for (name, url, more, expected) in [
        ("trusting", &receiver.url, &trusted[..], ""),
        ("strange", &receiver.url, &[], "HTTP_CONNECT"),
        ("misnamed", &by_address, &trusted, "HTTP_CONNECT"),
    ] {
        let mut worker = HttpWorker::start(&server, url, dir.path(), name, more);
        let view = ended(&client, create(&client, "200", 0, None).await).await;
        assert_eq!(code(&view), (expected, 1), "{name}: {:?}", view.error);
        if let Some(error) = view.error {
            assert!(error.message.contains("certificate"), "{name}: {error:?}");
        }
        worker.0.kill().expect("killed");
        worker.0.wait().expect("its end");
    }
    assert_eq!(receiver.had("\"200\"").len(), 1);
    let nothing = dir.path().join("empty.pem");
    std::fs::write(&nothing, "").expect("a file");
    for (url, file, why) in [
        (receiver.url.as_str(), nothing.to_str().expect("UTF-8"), "no certificate"),
        (receiver.url.as_str(), "/nowhere.pem", "No such file"),
        ("http://127.0.0.1:1/", trusted[1], "not https"),
        ("ftp://127.0.0.1:1/", trusted[1], "only http:// and https://"),
    ] {
        let flags = ["worker", "http", "--type", "t", "--url", url, "--ca-file", file];
        let said = Command::new(env!("CARGO_BIN_EXE_dualtrack")).args(flags).output().expect("the program starts");
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.code() == Some(2) && text.contains(why), "{url} {file}: {text}");
    }
}
