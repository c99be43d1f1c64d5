//! `docs/matrix.md` and `docs/mutations.md`, from code and from a run of the table.

use std::fmt::Write as _;

use task_core::CancelRule;
use task_events::{Kind, KindClass, writer_of};

use crate::explain::{idle_kinds, kind_of, why};
use crate::mutants::{Mutant, cancel_name};
use crate::table::{Fate, Line};

const GENERATED: &str = "<!-- Generated: cargo run -p model-search --bin mutation-table. A test fails when this is not what the code says. -->\n\n";

/// `docs/matrix.md`.
pub fn matrix() -> String {
    let mut out = String::from("# The matrix: which kind is accepted in which state\n\n");
    out += GENERATED;
    out += "All other checks of `docs/acceptance.md` apart. `x` accepted, `late` only from an attempt that TaskLost \
            closed; *unknown* is a task that is not open: never created, or closed and forgotten.\n\n";
    out += &crate::STANDARD.matrix.to_markdown();
    out += "\n## What a cancel request means\n\n| kind | accepted |\n|---|---|\n";
    for &kind in Kind::ALL.iter().filter(|k| matches!(k.class(), KindClass::TaskEvent | KindClass::Annotation)) {
        let rule = crate::STANDARD.cancel_by_kind[kind as usize];
        if rule != CancelRule::Either {
            let _ = writeln!(out, "| {kind} | {} a cancel request |", cancel_name(rule));
        }
    }
    out += "\nAll other kinds: either way.\n\n## Who writes what\n\n| kind | class | writer |\n|---|---|---|\n";
    for &kind in Kind::ALL {
        let class = match kind.class() {
            KindClass::TaskEvent => "task event",
            KindClass::Annotation => "annotation",
            KindClass::Report => "report",
            KindClass::Control => "control",
            KindClass::Seal => "seal",
        };
        let _ = writeln!(out, "| {kind} | {class} | {} |", writer_of(kind));
    }
    out
}

/// `docs/mutations.md`.
pub fn mutations(lines: &[Line]) -> String {
    let idle = idle_kinds(lines);
    let is_idle = |line: &&Line| kind_of(line).is_some_and(|k| idle.contains(&k));
    let caught = lines.iter().filter(|l| matches!(l.fate, Fate::Caught { .. })).count();
    let mut out = String::from("# Mutations: is every rule needed?\n\n");
    out += GENERATED;
    out += "Each line changes one thing of the contract and searches exhaustively (crates/model-search) until a law \
            breaks: an invariant, an answer taken back, a task nobody can move (*stuck*), an honest record that is never \
            accepted (*livelock*), or an honest history that no longer plays (*lost ability*). The history is a shortest \
            one of its search: the records in the order they landed, in the notation of the behaviour tests \
            (`model_search::notation`). What survives is compared with the standard rules on every record that met any \
            state in any search: where not one of them is judged differently, the reachable worlds are the same.\n\n";
    let _ = writeln!(
        out,
        "{} mutants: {caught} caught, {} the same contract, {} of them cells and cancel rules of kinds that never ask.\n",
        lines.len(),
        lines.len() - caught,
        lines.iter().filter(is_idle).count()
    );
    section(&mut out, lines, "Checks of the fold left out", |m| matches!(m, Mutant::Switch(_)));
    honest(&mut out, lines);
    section(&mut out, lines, "Duties of writers left out", |m| matches!(m, Mutant::Duty(..)));
    section(&mut out, lines, "Cancel rules changed", |m| matches!(m, Mutant::Cancel { .. }));
    section(&mut out, lines, "Cells of the matrix changed", |m| matches!(m, Mutant::Cell { .. }));
    out += "## The same contract\n\n| mutant | why nothing can tell it from the standard rules |\n|---|---|\n";
    for line in lines.iter().filter(|l| !matches!(l.fate, Fate::Caught { .. })).filter(|l| !is_idle(l)) {
        let reason = match line.fate {
            Fate::Harmless => "**gap**: other records are accepted, and no law breaks".to_owned(),
            Fate::Caught { .. } | Fate::Same | Fate::ReasonOnly => {
                why(line).unwrap_or_else(|| "**unexplained**".into())
            }
        };
        let _ = writeln!(out, "| {} | {reason} |", line.mutant.name());
    }
    out += "\n## Kinds that never ask\n\nTheir verdict depends neither on the state of a task nor on a cancel request, also \
            with any other check left out: ";
    out += &idle.iter().map(|k| k.as_str()).collect::<Vec<_>>().join(", ");
    out += ".\n";
    out
}

fn section(out: &mut String, lines: &[Line], title: &str, which: fn(&Mutant) -> bool) {
    let _ = writeln!(out, "## {title}\n\n| mutant | law broken | search | records | history |\n|---|---|---|--:|---|");
    for line in lines.iter().filter(|l| which(&l.mutant)) {
        if let Fate::Caught { config, finding } = &line.fate {
            let (name, history) = (line.mutant.name(), finding.history.replace('|', "·"));
            let _ = writeln!(out, "| {name} | {} | {config} | {} | `{history}` |", finding.what, finding.records());
        }
    }
    out.push('\n');
}

// Which checks honest writers need among themselves, and which only bugs and strangers make necessary.
fn honest(out: &mut String, lines: &[Line]) {
    *out += "### Honest writers alone\n\nWithout the rogue: what breaks when all writers keep the contract and only \
             time, copies and crashes are against them. *Nothing*: the other checks cover it, and it stands against bugs \
             and strangers.\n\n| mutant | law broken | search | records |\n|---|---|---|--:|\n";
    for line in lines.iter().filter(|l| matches!(l.mutant, Mutant::Switch(_))) {
        let _ = match &line.honest {
            Some((config, found)) => {
                writeln!(out, "| {} | {} | {config} | {} |", line.mutant.name(), found.what, found.records())
            }
            None => writeln!(out, "| {} | nothing | | |", line.mutant.name()),
        };
    }
    let (names, found) = crate::table::honest_without_all(lines);
    let _ = match found {
        Some((config, found)) => {
            let (history, n) = (found.history.replace('|', "·"), found.records());
            writeln!(out, "| without all of these | {} | {config} | {n}: `{history}` |", found.what)
        }
        None => writeln!(out, "| without all of these ({}) | nothing | | |", names.join(", ")),
    };
    out.push('\n');
}
