//! Reports of workers: start, steps, results (design.md §5 *live*, *late*; §8 answers).

use task_core::decide::{self, Fate, View};
use task_core::{Closed, Record};
use task_events::{TaskId, TaskState};
use worker_protocol::{Report, ReportAnswer, ReportBody};

use super::work::Job;
use super::{Alarm, Answer, Command, Now, Owner};

fn answer(answer: ReportAnswer) -> Answer {
    Answer::Report(answer)
}

impl Owner {
    /// A report, at first or after its record died.
    pub(super) fn report(&mut self, now: Now, job: Job) {
        let Command::Report(report) = &job.command else { return };
        let report = report.clone();
        let Some((task, _)) = report.attempt.execution_id.parts() else {
            // No id of ours can have these bits: there is nothing it could be about.
            return self.reply(job.token, answer(ReportAnswer::Fenced));
        };
        if task.partition() != self.partition() {
            return self.reply(job.token, answer(ReportAnswer::Unavailable));
        }
        if self.wait_for(task, &job) {
            return;
        }
        if self.is_ahead(task, report.attempt.exec_epoch) {
            return self.reply(job.token, answer(ReportAnswer::Unavailable));
        }
        let Some(slot) = self.fold.tasks.get(task) else { return self.about_task(now, job, task) };
        let Some(row) = slot.row.as_deref() else { return };
        let view = View { core: &slot.core, row };
        match decide::classify(view, &report) {
            Fate::Counts => match decide::report(view, report.clone()) {
                Ok(drafts) => self.append_for(now, job, drafts, answer(ReportAnswer::Accepted)),
                Err(_) => self.fence(now, job, &report, task),
            },
            Fate::Duplicate => {
                // STARTING that is answered renews the worker's lease, so it renews the owner's too.
                if matches!(report.body, ReportBody::Starting { .. }) && self.is_current(now) {
                    self.sign_of_life(now, task);
                }
                self.answer_from_memory(now, job, answer(ReportAnswer::Duplicate));
            }
            Fate::TooEarly => self.answer_from_memory(now, job, answer(ReportAnswer::TooEarly)),
            Fate::Fenced => self.fence(now, job, &report, task),
        }
    }

    /// A report of a closed task, or of one nobody knows.
    pub(super) fn report_closed(&mut self, now: Now, job: Job, task: TaskId, closed: Option<&Closed>) {
        let Command::Report(report) = &job.command else { return };
        let report = report.clone();
        if let Some(closed) = closed {
            if report.attempt.exec_epoch > closed.core.exec_epoch {
                return self.reply(job.token, answer(ReportAnswer::Unavailable));
            }
            if decide::classify_closed(closed, &report) == Fate::Duplicate {
                return self.answer_from_memory(now, job, answer(ReportAnswer::Duplicate));
            }
            let same = closed.core.execution_id == report.attempt.execution_id;
            if same && closed.core.state == TaskState::Success && matches!(report.body, ReportBody::Success { .. }) {
                self.alarm(Alarm::ResultConflict(task));
            }
        }
        self.fence(now, job, &report, task);
    }

    // A terminal report that counts for nothing is made visible, once per execution.
    fn fence(&mut self, now: Now, job: Job, report: &Report, task: TaskId) {
        let execution = report.attempt.execution_id;
        let trace = self.fold.tasks.get(task).and_then(|s| s.row.as_ref()).map(|r| (r.trace_id.clone(), r.sampling));
        // An id that was never minted is nobody's report.
        let known = task <= self.fold.highest && !self.fold.noted.contains(execution);
        let draft =
            known.then(|| decide::rejected_report(report, task, trace.unwrap_or_default(), "not_live")).flatten();
        match draft {
            None => self.answer_from_memory(now, job, answer(ReportAnswer::Fenced)),
            Some(draft) => self.append_for(now, job, vec![draft], answer(ReportAnswer::Fenced)),
        }
    }

    /// A request's record was read back as accepted: what else it means to the owner.
    pub(super) fn reported(&mut self, now: Now, job: &Job, record: &Record) {
        if let (Command::Report(report), Some(task)) = (&job.command, record.event.task_id)
            && !report.body.is_terminal()
            && self.fold.tasks.get(task).is_some_and(|slot| slot.core.is_live(report.attempt))
        {
            self.sign_of_life(now, task);
            if let ReportBody::Step(done) = &report.body {
                self.step_done(task, &done.step);
            }
        }
    }
}
