//! Generates the parts of documents that come from code, and finds the repository's root.

mod alarms;
mod events;

use std::path::PathBuf;

use task_core::{Cell, Column, STANDARD};
use task_events::{Kind, KindClass, writer_of};

pub use alarms::alarms;
pub use events::event_reference;

/// Root of the checkout.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The event table of ARCHITECTURE.md: kind, writer, class and the states it is accepted in.
pub fn event_table() -> String {
    let mut out = String::from("| kind | writer | class | accepted in |\n|---|---|---|---|\n");
    for &kind in Kind::ALL {
        let writer = writer_of(kind).as_str().to_lowercase().replace('_', "-");
        out += &format!("| {kind} | {writer} | {} | {} |\n", class_of(kind), accepted_in(kind));
    }
    out
}

const fn class_of(kind: Kind) -> &'static str {
    match kind.class() {
        KindClass::TaskEvent => "task event",
        KindClass::Annotation => "annotation",
        KindClass::Report => "report",
        KindClass::Control => "control",
        KindClass::Seal => "seal",
    }
}

fn accepted_in(kind: Kind) -> String {
    match kind.class() {
        KindClass::Control => "fence only".to_owned(),
        KindClass::Report => "event_sequence 0, fence only".to_owned(),
        KindClass::Seal => "always".to_owned(),
        KindClass::TaskEvent | KindClass::Annotation => Column::ALL
            .iter()
            .filter_map(|&column| match STANDARD.matrix.cell(kind, column) {
                Cell::No => None,
                Cell::Yes => Some(column.as_str().to_owned()),
                Cell::Late => Some(format!("{} (late)", column.as_str())),
            })
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// `text` with what stands between the markers `<!-- name -->` and `<!-- /name -->` replaced.
pub fn splice(text: &str, name: &str, content: &str) -> Option<String> {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let from = text.find(&open)? + open.len();
    let to = from + text[from..].find(&close)?;
    Some(format!("{}{content}{}", &text[..from], &text[to..]))
}
