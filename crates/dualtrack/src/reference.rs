//! `docs/configuration.md`, made of the commented defaults and the rules of every program. `make docs`
//! writes it anew.

use std::collections::BTreeSet;

use service_host::settings::{Documented, documented, table};
use service_host::{ProgramSettings, SettingsError, Sources};

use crate::dev;

const HEAD: &str = "\
# Settings of the programs

Generated from the `config.default.toml` of each program and from the rules in code; `make docs` writes it anew.

Later layers win: the defaults, a file (`--config FILE` or `DUALTRACK_CONFIG`, TOML), variables of the environment
(`DUALTRACK_SECTION__KEY`, two underscores), flags (`--set section.key=value` and those of their own). What is not
known is refused by name; of sections of other programs no variable is taken, so that one environment can serve all.
Durations end in `_ms`.

Passwords come from the environment or from files that only their owner can read, never from arguments or from a file of
settings, and are printed nowhere.

`dualtrack config print --service NAME` (or `--print-config` of the program itself) shows each value and where it came
from; `dualtrack config check --service NAME` (`--check-config`) every rule and whether it holds (exit code 2 if one does
not), with `--live` also what the engines are like (exit code 3 if they are not as they must be).
";

fn program<S: ProgramSettings>(name: &str, out: &mut String) -> Result<(), SettingsError> {
    *out += &format!("\n## {name}\n{}", table(&documented(S::DEFAULTS)));
    *out += "\nRules, with the defaults:\n\n";
    for rule in S::defaults()?.rules() {
        *out += &format!("- {}\n", rule.broken.rule());
    }
    Ok(())
}

fn page() -> Result<String, SettingsError> {
    let mut out = HEAD.to_owned();
    program::<dev::Settings>("dualtrack dev", &mut out)?;
    program::<dualtrack_coordinator::Settings>("dualtrack-coordinator", &mut out)?;
    program::<dualtrack_task_engine::Settings>("dualtrack-task-engine", &mut out)?;
    program::<dualtrack_auto_replay::Settings>("dualtrack-auto-replay", &mut out)?;
    Ok(out)
}

fn keys<S: ProgramSettings>() -> BTreeSet<String> {
    let all = Sources::default().explain::<S>().expect("the defaults load");
    all.into_iter().map(|setting| setting.key).collect()
}

fn every_key_is_documented<S: ProgramSettings>() {
    let documented = documented(S::DEFAULTS);
    for setting in &documented {
        assert!(setting.meaning.len() > 10, "{}.{} says nothing", setting.section, setting.key);
    }
    let named: BTreeSet<_> = documented.iter().map(|d| format!("{}.{}", d.section, d.key)).collect();
    assert_eq!(named, keys::<S>());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
fn the_page_is_generated_and_knows_every_key() {
    let fresh = page().expect("the defaults load");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &fresh).expect("writable");
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), fresh, "run `make docs`");
    every_key_is_documented::<dev::Settings>();
    every_key_is_documented::<dualtrack_coordinator::Settings>();
    every_key_is_documented::<dualtrack_task_engine::Settings>();
    every_key_is_documented::<dualtrack_auto_replay::Settings>();
}

// One thing is said one way: what several programs share has the same default and the same words.
#[test]
fn programs_say_the_same_of_what_they_share() {
    let coordinator = documented(dualtrack_coordinator::Settings::DEFAULTS);
    let others =
        [dualtrack_task_engine::Settings::DEFAULTS, dualtrack_auto_replay::Settings::DEFAULTS, dev::Settings::DEFAULTS];
    let shared = |d: &Documented| ["log", "store", "telemetry", "coordinator", "lock"].contains(&d.section.as_str());
    for other in others {
        let of_dev = other == dev::Settings::DEFAULTS;
        for setting in documented(other).iter().filter(|d| shared(d) && !(of_dev && d.section == "log")) {
            assert!(coordinator.contains(setting), "{setting:?} is said differently in the coordinator's defaults");
        }
    }
}
