//! `dualtrack worker http`.

use std::path::PathBuf;

use clap::Args;
use reqwest::{Certificate, Url};
use worker_sdk::http::with_causes;

use super::ServeArgs;
use crate::cli::times::duration_ms;
use crate::cli::{Common, Failure};
use crate::worker::http::{Http, Secret, Settings};
use crate::worker::serve::{Serving, ending, handlers};

/// Where a secret may stand besides a file.
const SECRET: &str = "DUALTRACK_WEBHOOK_SECRET";
/// Time for an answer that is under way when the worker must end it, ms.
const GRACE_MS: u64 = 1_000;

/// What the help says last.
pub const HELP: &str = "\
The payload is the body of a POST, the task is in its headers (dualtrack-task-id, -run, -exec-epoch,
-execution-id, -deadline, traceparent, idempotency-key). With a secret (whsec_…, in --secret-file or in
DUALTRACK_WEBHOOK_SECRET) it is signed as Standard Webhooks are. 2xx is success and the body the result;
3xx and 4xx fail for good, but for 408, 425 and 429; 5xx is tried again. docs/guide/workers.md has the
rest.

Example:
  dualtrack worker http --type invoice --url http://127.0.0.1:8080/tasks --secret-file whsec.txt";

/// Arguments of `worker http`.
#[derive(Clone, Debug, Args)]
pub struct HttpArgs {
    /// Server whose tasks are posted [default: as of other commands without --url]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    serve: ServeArgs,
    // Takes the place of the option that names the server elsewhere, and so has its type.
    /// Where to post to
    #[arg(long, value_name = "URL", required = true)]
    url: Option<String>,
    /// Certificates (PEM) of authorities that are trusted besides the system's, for https
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// File with the secret that signs requests
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Longest wait for a connection
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "5s", value_parser = duration_ms)]
    connect_timeout: u64,
    /// Longest wait for the whole answer
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "60s", value_parser = duration_ms)]
    timeout: u64,
    /// The receiver does no harm when it gets a request twice: unknown outcomes are tried again
    #[arg(long)]
    idempotent: bool,
    /// Longest time for which a failure with a Retry-After is held back
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "60s", value_parser = duration_ms)]
    max_hold: u64,
}

/// Works.
pub async fn run(args: HttpArgs, common: Common) -> Result<(), Failure> {
    let text = args.url.unwrap_or_default();
    let to = Url::parse(&text).map_err(|why| Failure::Usage(format!("--url {text}: {why}")))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(Failure::Usage(format!("--url {to}: only http:// and https:// are supported")));
    }
    if to.scheme() == "http" && args.ca_file.is_some() {
        return Err(Failure::Usage(format!("--ca-file: {to} is not https, nobody shows a certificate there")));
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Err(Failure::Usage(
            "--url: a URL with a password would be seen by everybody on the machine".to_owned(),
        ));
    }
    let secret = secret(args.secret_file)?;
    let signed = if secret.is_some() { "signed" } else { "unsigned" };
    let does = format!("POST {to}, {signed}");
    let (end, ending) = ending();
    let settings = Settings {
        url: to,
        authorities: args.ca_file.map_or(Ok(Vec::new()), authorities)?,
        secret,
        connect_timeout_ms: args.connect_timeout,
        timeout_ms: args.timeout,
        idempotent: args.idempotent,
        max_hold_ms: args.max_hold,
    };
    let http = Http::new(settings, ending).map_err(|why| Failure::Local(why.to_string()))?;
    let handlers = handlers(&args.serve, move |context| http.clone().run(context))?;
    Serving { url: common.at(args.server).url()?, args: args.serve, handlers, does, grace_ms: GRACE_MS }.run(end).await
}

fn authorities(file: PathBuf) -> Result<Vec<Certificate>, Failure> {
    let unusable = |why: String| Failure::Usage(format!("--ca-file {}: {why}", file.display()));
    let text = std::fs::read(&file).map_err(|why| unusable(why.to_string()))?;
    let found = Certificate::from_pem_bundle(&text).map_err(|why| unusable(with_causes(&why)))?;
    if found.is_empty() { Err(unusable("it has no certificate in PEM form".to_owned())) } else { Ok(found) }
}

fn secret(file: Option<PathBuf>) -> Result<Option<Secret>, Failure> {
    let usage = |why: crate::worker::http::SecretError| Failure::Usage(why.to_string());
    if let Some(path) = file {
        return Secret::read(path).map(Some).map_err(usage);
    }
    let found = std::env::vars_os().find(|(name, _)| name == SECRET);
    found.map(|(_, text)| Secret::new(&text.to_string_lossy(), SECRET).map_err(usage)).transpose()
}
