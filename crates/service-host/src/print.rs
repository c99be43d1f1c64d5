//! What a program prints: answers on standard output, why it does not go on on standard error; and
//! settings as people and programs read them.

use std::io::Write as _;

use crate::process::RunError;
use crate::prover::Finding;
use crate::settings::{Rule, Setting};

/// Prints beside other work; what cannot be printed is no reason to stop.
pub fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints what was asked for; a reader that went away is nobody's error.
///
/// # Errors
/// It cannot be written: the disk is full.
pub fn print(text: &str) -> Result<(), RunError> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => Err(RunError::Output(why)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Says why the program does not go on, for whoever started it.
pub fn complain(program: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "{program}: {why}");
}

impl Setting {
    /// Settings as TOML that can be used as a file, the origin of each as a comment.
    pub fn as_toml(settings: &[Self]) -> String {
        let (mut text, mut last) = (String::new(), "");
        for setting in settings {
            let (section, key) = setting.key.split_once('.').unwrap_or(("", &setting.key));
            if section != last {
                text += &format!("{}[{section}]\n", if last.is_empty() { "" } else { "\n" });
                last = section;
            }
            let line = format!("{key} = {}", setting.value);
            text += &format!("{line:<40} # {}\n", setting.from);
        }
        text
    }

    /// The same as JSON: by key, value and origin.
    pub fn as_json(settings: &[Self]) -> String {
        let told = |setting: &Self| {
            let told = serde_json::json!({ "value": setting.value, "from": setting.from.to_string() });
            (setting.key.clone(), told)
        };
        format!("{:#}\n", serde_json::Value::Object(settings.iter().map(told).collect()))
    }
}

/// Prints every rule and whether it holds. `false`: one does not.
///
/// # Errors
/// It cannot be written.
pub fn tell_rules(program: &str, rules: &[Rule]) -> Result<bool, RunError> {
    let broken = rules.iter().filter(|rule| !rule.holds).count();
    for rule in rules {
        let word = if rule.holds { "holds  " } else { "BROKEN " };
        print(&format!("{word} {}\n", rule.broken.rule().replace('`', "")))?;
    }
    if broken == 0 {
        print(&format!("all {} rules hold\n", rules.len()))?;
        return Ok(true);
    }
    let all = rules.len();
    complain(program, &format!("{broken} of {all} rules do not hold: it would not start with these settings"));
    Ok(false)
}

/// Prints what the engines are like. `false`: something must be changed.
pub(crate) fn tell_findings(program: &str, findings: &[Finding]) -> Result<bool, RunError> {
    for finding in findings {
        print(&format!("{} {finding}\n", if finding.refuses { "BROKEN " } else { "ALARM  " }))?;
    }
    let refused = findings.iter().filter(|finding| finding.refuses).count();
    if refused == 0 {
        print("the engines are as they must be\n")?;
        return Ok(true);
    }
    complain(program, &format!("{refused} settings of the engines must be changed before it starts"));
    Ok(false)
}
