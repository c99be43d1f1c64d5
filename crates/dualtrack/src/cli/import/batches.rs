//! Lines in batches, read on a thread of their own: a source that is slow, such as a pipe, keeps nobody
//! from answering Ctrl-C, and one that is fast waits for the server.

use std::thread;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::record::{Broken, Line, Maker, Records};
use super::source::Source;

/// Most lines in a batch; the server takes 1,000.
const BATCH_LINES: usize = 500;

/// Most text in a batch, bytes: a quarter of what the server takes, since JSON may be longer.
const BATCH_BYTES: usize = 1024 * 1024;

/// Batches that wait to be sent.
const WAITING: usize = 2;

/// A batch, or why there are no more.
pub type Batch = Result<Vec<Line>, Broken>;

/// Starts to read. What comes last says why, unless the source simply ended.
///
/// # Errors
/// The system gives no thread.
pub fn read(
    source: Source,
    records: Box<dyn Records>,
    maker: Maker,
    keep_going: bool,
) -> std::io::Result<Receiver<Batch>> {
    let (tell, batches) = channel(WAITING);
    let reader = Reader { source, records, maker, keep_going, last: 0 };
    // Not joined: it may be waiting for a pipe that never ends when the command does.
    thread::Builder::new().name("lines".to_owned()).spawn(move || reader.run(&tell))?;
    Ok(batches)
}

struct Reader {
    source: Source,
    records: Box<dyn Records>,
    maker: Maker,
    keep_going: bool,
    last: u64,
}

impl Reader {
    fn run(mut self, tell: &Sender<Batch>) {
        loop {
            let (batch, why) = self.batch();
            let ends = why.is_some() || batch.is_empty();
            if !self.source.is_unchanged() {
                let what = "the file was changed while it was read: nothing from this line on was sent. \
                            Once it is whole, run the same command again: what was sent is not sent twice";
                let _ = tell.blocking_send(Err(Broken { line: self.last + 1, what: what.to_owned() }));
                return;
            }
            if !batch.is_empty() {
                self.last = batch.last().map_or(self.last, |line| line.line);
                if tell.blocking_send(Ok(batch)).is_err() {
                    return;
                }
            }
            if let Some(why) = why {
                let _ = tell.blocking_send(Err(why));
            }
            if ends {
                return;
            }
        }
    }

    // As many lines as fit, and what ended them early.
    fn batch(&mut self) -> (Vec<Line>, Option<Broken>) {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < BATCH_LINES && bytes < BATCH_BYTES {
            match self.records.next() {
                Ok(None) => break,
                Err(why) => return (lines, Some(why)),
                Ok(Some(record)) => {
                    let line = self.maker.make(record);
                    if let (Err(problem), false) = (&line.task, self.keep_going) {
                        let what = format!("{} ({}). With --keep-going it is left out", problem.detail, problem.code);
                        return (lines, Some(Broken { line: line.line, what }));
                    }
                    bytes += line.text.len();
                    lines.push(line);
                }
            }
        }
        (lines, None)
    }
}
