//! Payloads in a directory: step outputs and results that survive the process. One file per item,
//! written beside its place, synced, then renamed.

use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use task_events::TaskId;
use worker_sdk::{PayloadKey, PayloadPort, PayloadUnavailable};

/// The directory.
#[derive(Clone)]
pub struct DirPayloads {
    dir: PathBuf,
}

impl DirPayloads {
    /// Payloads below `dir`, which exists.
    pub const fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn place(&self, task: TaskId, key: &PayloadKey) -> PathBuf {
        let name = match key {
            PayloadKey::Parameters => "parameters".to_owned(),
            PayloadKey::StepOutput(step) => format!("step-{step}"),
            PayloadKey::Result => "result".to_owned(),
            PayloadKey::ErrorText => "error".to_owned(),
        };
        self.dir.join(task.to_string()).join(name)
    }
}

/// Writes a file so that it is there whole or not at all, also after a crash.
pub fn write_whole(place: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut beside = place.as_os_str().to_owned();
    beside.push(".part");
    let mut file = std::fs::File::create(&beside)?;
    file.write_all(content)?;
    file.sync_data()?;
    std::fs::rename(&beside, place)?;
    std::fs::File::open(folder)?.sync_all()
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, PayloadUnavailable> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|why| PayloadUnavailable(why.to_string())),
        Err(why) => Err(PayloadUnavailable(why.to_string())),
    }
}

impl PayloadPort for DirPayloads {
    fn put(
        &self,
        task_id: TaskId,
        key: PayloadKey,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), PayloadUnavailable>> + Send + 'static {
        let place = self.place(task_id, &key);
        off_the_runtime(move || write_whole(&place, &bytes))
    }

    fn get(
        &self,
        task_id: TaskId,
        key: PayloadKey,
    ) -> impl Future<Output = Result<Option<Bytes>, PayloadUnavailable>> + Send + 'static {
        let place = self.place(task_id, &key);
        off_the_runtime(move || match std::fs::read(&place) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why),
        })
    }
}
