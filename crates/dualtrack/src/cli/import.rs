//! `dualtrack task create --from FILE`: one task for each line, streamed.
//!
//! A file is looked through first (`survey`): nothing is sent of one that cannot be read. Then lines go
//! out in batches, several at a time (`batches`, `send`), and each outcome is told in the file's order
//! (`telling`). The key of a line is the hash of the file's name without folders, the line's number and
//! the line, so that sending the file again, from any machine, creates nothing twice for as long as the
//! server keeps keys; after that it is refused without `--again` (`before`).

mod arguments;
mod batches;
mod before;
mod columns;
mod jsonl;
mod outcome;
mod quotes;
mod record;
mod send;
mod source;
mod survey;
mod table;
mod telling;

use std::path::Path;

use futures::future::{Either, select};
use futures::stream::{StreamExt as _, poll_fn};
use rest_client::Client;
use rest_client::contract::CreateRequest;
use service_host::Signals;
use service_kit::{Clock as _, Shutdown, SystemClock};

use super::failure::{complain, note};
use super::{Common, Failure};
pub use arguments::{HELP, ImportArgs};

use arguments::Format;
use batches::Batch;
use before::{Asking, Earlier};
use jsonl::Jsonl;
use record::{Broken, Maker, Records};
use send::Sending;
use source::Source;
use survey::{Survey, survey};
use table::Table;
use telling::{Rejects, Telling};

/// Creates a task for each line.
///
/// # Errors
/// What cannot be read, a server that is away, lines that were rejected or are not settled.
pub async fn run(from: &Path, args: ImportArgs, defaults: CreateRequest, common: &Common) -> Result<(), Failure> {
    let import = Import::new(from, args, defaults)?;
    let survey = if import.source.is_file() { Some(import.survey()?) } else { None };
    if let Some(survey) = &survey {
        if survey.tasks == 0 && survey.refused == 0 {
            note(&format!("{} has no lines that make a task", import.source.shown()));
        }
        import.accept(survey)?;
    }
    let Some(records) = import.open()? else { return import.tell(common, None, None)?.end() };
    let client = common.client()?;
    // A server that is not there at all is no matter of patience.
    client.health().await.map_err(|error| Failure::call(error, ""))?;
    let header = records.0.header().map(<[u8]>::to_vec);
    let telling =
        import.tell(common, survey.as_ref().map(|survey| survey.tasks + survey.refused), header.as_deref())?;
    import.send(client, survey, records, telling).await
}

struct Import {
    source: Source,
    format: Format,
    name: String,
    args: ImportArgs,
    defaults: CreateRequest,
}

type Opened = (Box<dyn Records>, Maker);

impl Import {
    fn new(from: &Path, args: ImportArgs, defaults: CreateRequest) -> Result<Self, Failure> {
        let own = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let format = args
            .format
            .or_else(|| Format::by_name(&own))
            .ok_or_else(|| Failure::Usage(format!("{}: is it --format jsonl or --format csv?", from.display())))?;
        let source = Source::new(from, args.encoding.as_deref()).map_err(Failure::Usage)?;
        let name = args.name.clone().unwrap_or(own);
        Ok(Self { source, format, name, args, defaults })
    }

    fn open(&self) -> Result<Option<Opened>, Failure> {
        let opened = self.source.open().map_err(Failure::Usage)?;
        let maker = Maker::new(self.name.clone(), self.defaults.clone(), opened.is_translated);
        let records: Box<dyn Records> = match self.format {
            Format::Jsonl => Box::new(Jsonl::new(opened.text)),
            Format::Csv => {
                let table = Table::open(opened.text, self.args.delimiter, self.args.payload_columns);
                match table.map_err(|broken| self.broken(&broken, "nothing was sent"))? {
                    Some(table) => Box::new(table),
                    None => return Ok(None),
                }
            }
        };
        Ok(Some((records, maker)))
    }

    fn survey(&self) -> Result<Survey, Failure> {
        let found = match self.open()? {
            Some((mut records, mut maker)) => survey(&mut *records, &mut maker)
                .map_err(|broken| self.broken(&broken, "nothing was sent; once it is repaired, run the same again"))?,
            None => Survey::default(),
        };
        if self.source.is_unchanged() {
            return Ok(found);
        }
        let shown = self.source.shown();
        Err(Failure::Usage(format!(
            "{shown} is still being written: nothing was sent; run the same again once it is whole"
        )))
    }

    // Unless told otherwise, a file is sent when all of it can be.
    fn accept(&self, survey: &Survey) -> Result<(), Failure> {
        if survey.refused == 0 || self.args.keep_going {
            return Ok(());
        }
        survey.shown.iter().for_each(|text| note(&super::screen::plain(text)));
        let more = survey.refused - survey.shown.len() as u64;
        if more > 0 {
            note(&format!("… and {more} more"));
        }
        let (shown, refused, tasks) = (self.source.shown(), survey.refused, survey.tasks);
        Err(Failure::Usage(format!(
            "{refused} lines of {shown} cannot be sent, {tasks} could: nothing was sent.\n  Repair them where they stand and \
             run the same again, or send the others with --keep-going (--failed-to FILE keeps these)"
        )))
    }

    fn tell(&self, common: &Common, ahead: Option<u64>, header: Option<&[u8]>) -> Result<Telling, Failure> {
        let rejects = self.args.failed_to.clone().map(|path| Rejects::new(path, header));
        Ok(Telling::new(common.output, ahead, rejects.transpose().map_err(Failure::Usage)?))
    }

    fn broken(&self, broken: &Broken, then: &str) -> Failure {
        let shown = self.source.shown();
        Failure::Usage(match broken.line {
            0 => format!("{shown}: {}; {then}", broken.what),
            line => format!("{shown}: line {line} {}; {then}", broken.what),
        })
    }

    // What the keys of an earlier sending leave of the time; refused if that is nothing.
    async fn before(&self, client: &Client, marks: &[String]) -> Result<Option<i64>, Failure> {
        let earlier = before::earlier(client, marks).await.map_err(|why| match why {
            Asking::Call(error) => Failure::call(error, ""),
            Asking::Silent(partition) => Failure::Local(format!(
                "partition {partition} does not answer, so nobody can tell whether this file was sent before: nothing \
                 was sent; try again in a moment"
            )),
        })?;
        match earlier {
            Some(_) if self.args.again => Ok(None),
            Some(earlier) if earlier.until() <= SystemClock.wall_ms() => Err(Failure::Usage(earlier.words(&self.name))),
            earlier => Ok(earlier.as_ref().map(Earlier::until)),
        }
    }

    async fn send(
        &self,
        client: Client,
        survey: Option<Survey>,
        (records, maker): Opened,
        mut telling: Telling,
    ) -> Result<(), Failure> {
        let local = |why: std::io::Error| Failure::Local(why.to_string());
        let mut batches = batches::read(self.source.clone(), records, maker, self.args.keep_going).map_err(local)?;
        // Where there was no file to look through, the first lines stand for it.
        let first = if survey.is_some() { None } else { batches.recv().await };
        let marks = match (survey, &first) {
            (Some(survey), _) => survey.marks,
            (None, Some(Ok(lines))) => survey::marks(lines),
            (None, Some(Err(_)) | None) => Vec::new(),
        };
        let until = self.before(&client, &marks).await?;
        let stop = Shutdown::default();
        let sending = Sending::new(client, stop.clone(), self.args.patience, until);
        let rest = poll_fn(move |cx| batches.poll_recv(cx));
        let all = futures::stream::iter(first).chain(rest).take_until(stop.requested());
        let mut broken = None;
        let work = settle(&sending, all, usize::from(self.args.parallel), &mut telling, &mut broken);
        let signal = until_stopped(work, &stop).await?;
        telling.end()?;
        self.judge(&telling, broken, signal)
    }

    fn judge(&self, telling: &Telling, broken: Option<Broken>, signal: Option<i32>) -> Result<(), Failure> {
        let totals = telling.totals;
        let again = "run the same command again: what was created is not created twice";
        if let Some(signal) = signal {
            complain(&format!("interrupted with {} lines settled; {again}", totals.settled()));
            return Err(stopped(signal));
        }
        if let Some(broken) = broken {
            let then = format!("{} lines before it were settled, nothing after it was sent", totals.settled());
            return Err(self.broken(&broken, &then));
        }
        let open = totals.unknown + totals.not_sent;
        if open > 0 {
            complain(&format!("{open} lines are not settled; {again}"));
            return Err(Failure::Said(if totals.unknown > 0 { 5 } else { 4 }));
        }
        if totals.rejected > 0 {
            complain(&format!("{} lines were rejected: repair them where they stand and {again}", totals.rejected));
            return Err(Failure::Said(3));
        }
        Ok(())
    }
}

// Runs the work to its end; the number of the signal that ended it early.
async fn until_stopped(
    work: impl Future<Output = Result<(), Failure>>,
    stop: &Shutdown,
) -> Result<Option<i32>, Failure> {
    let mut signals = Signals::listen().map_err(|why| Failure::Local(why.to_string()))?;
    let mut work = Box::pin(work);
    let signal = match select(&mut work, Box::pin(signals.received())).await {
        Either::Left((done, _)) => return done.map(|()| None),
        Either::Right((signal, _)) => signal,
    };
    stop.request();
    note("dualtrack: stopping; what is under way is waited for, a second Ctrl-C ends it at once");
    match select(&mut work, Box::pin(signals.received())).await {
        Either::Left((done, _)) => done.map(|()| Some(signal)),
        Either::Right(_) => Err(stopped(signal)),
    }
}

async fn settle(
    sending: &Sending,
    batches: impl futures::Stream<Item = Batch>,
    parallel: usize,
    telling: &mut Telling,
    broken: &mut Option<Broken>,
) -> Result<(), Failure> {
    let settled = batches.map(|batch| async move {
        match batch {
            Ok(lines) => Ok(sending.settle(lines).await),
            Err(why) => Err(why),
        }
    });
    let mut settled = std::pin::pin!(settled.buffered(parallel));
    while let Some(batch) = settled.next().await {
        match batch {
            Ok(lines) => {
                for line in &lines {
                    telling.settled(line).map_err(Failure::Local)?;
                }
            }
            Err(why) => *broken = Some(why),
        }
    }
    Ok(())
}

fn stopped(signal: i32) -> Failure {
    Failure::Said(u8::try_from(128 + signal).unwrap_or(1))
}
