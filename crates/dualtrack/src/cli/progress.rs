//! A bar for what goes on for long: on standard error, and only where people watch.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A bar over so many of these, if that is known; hidden where standard error is no terminal.
pub fn bar(ahead: Option<u64>, what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let target = ProgressDrawTarget::stderr();
    let template = match ahead {
        Some(_) => "{wide_bar} {pos}/{len} {rate} {eta} left".to_owned(),
        None => format!("{{spinner}} {{pos}} {what} {{rate}}"),
    };
    let bar = ProgressBar::with_draw_target(ahead, target);
    // A template that is fixed here; without it the bar's own.
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style.with_key("rate", rate)),
        Err(_) => bar,
    }
}

// Whole ones a second: the bar's own form has twelve digits behind the point, and breaks narrow lines.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A bar that cannot be drawn now is drawn the next time.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}
