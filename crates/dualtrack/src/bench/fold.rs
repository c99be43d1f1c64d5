//! The fold rate: measured by task-core's own bench, whose output is read here.

use anyhow::Context as _;

use super::Run;
use super::figure::{Figure, Group, Target};

/// What the figure is called.
const NAME: &str = "fold (decode + apply + hash, 100,000 open), one core";

/// Reads the figure from what the bench printed.
pub fn take(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    let Some(place) = &run.args.fold else {
        return Ok(vec![Figure::missing(Group::Fold, NAME, "give --fold what the bench printed; `make bench` does")]);
    };
    let text = std::fs::read_to_string(place).with_context(|| format!("cannot read {}", place.display()))?;
    let folded = rate(&text, "decode + apply + hash  ").context("no fold rate in what the bench printed")?;
    let decoded = rate(&text, "decode alone").context("no decoding rate in what the bench printed")?;
    let mut figure = Figure::new(Group::Fold, NAME, folded, "records/s").target(Target::AtLeast(1e6)).beside(
        "decode alone, records/s",
        decoded,
        folded,
    );
    if let Some(rows) = rate(&text, "decode + apply + hash, rows kept") {
        figure = figure.note(format!("with the rows that an owner keeps: {rows:.0} records/s"));
    }
    Ok(vec![figure])
}

// `NAME    123456 records/s`
fn rate(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("records/s")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn rates_are_read_by_name() {
        let text = "decode alone                 2600000 records/s\ndecode + apply + hash          1200000 records/s\n  \
                    0.46 of decode alone\ndecode + apply + hash, rows kept          900000 records/s\n";
        assert_eq!(rate(text, "decode alone"), Some(2_600_000.0));
        assert_eq!(rate(text, "decode + apply + hash  "), Some(1_200_000.0));
        assert_eq!(rate(text, "decode + apply + hash, rows kept"), Some(900_000.0));
        assert_eq!(rate(text, "nothing"), None);
    }
}
