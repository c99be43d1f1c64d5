//! The `attempt_token` as workers see it: `r`, the run, a point, and the owner's own token. A single
//! report names no run; this does, and nobody else makes or reads it.

use rest_contract::Problem;
use task_events::{RunNo, Text};

use super::fields::invalid;

/// The token to give out.
pub(super) fn outer(run: RunNo, owners: &str) -> Text {
    Text::from(format!("r{run}.{owners}"))
}

/// The run in a token that came back.
///
/// # Errors
/// It is none of ours.
pub(super) fn run_of(below: &str, token: &str) -> Result<RunNo, Problem> {
    let number = token.strip_prefix('r').and_then(|rest| rest.split_once('.')).map(|(number, _)| number);
    let run = number.and_then(|text| text.parse::<u32>().ok().filter(|n| n.to_string() == *text));
    run.filter(|n| *n > 0).map(RunNo).ok_or_else(|| {
        let pointer = format!("{below}/attempt_token");
        invalid(pointer, "is not the token that came with the assignment").value(token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_out_comes_back() {
        let token = outer(RunNo(7), "a.b");
        assert_eq!((token.as_str(), run_of("", &token).unwrap()), ("r7.a.b", RunNo(7)));
        for wrong in ["", "r", "r.", "r0.a", "r-1.a", "r01.a", "r+1.a", "7.a", "r4294967296.a", "r7"] {
            let problem = run_of("/reports/2", wrong).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some("/reports/2/attempt_token"), "{wrong}");
        }
    }
}
