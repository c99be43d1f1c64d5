//! The command `dualtrack config`: what a server would be started with, and whether it could be.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::command::LayerArgs;
use super::command::{complain, say};
use super::origins::Setting;
use super::{DevError, Settings};

/// Arguments of `dualtrack config`.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ConfigCommand {
    /// Hold the settings against every rule; exit code 2 if one does not hold
    #[command(
        after_help = "Example:\n  dualtrack config check --config production.toml --set coordinator.lease_ms=90000"
    )]
    Check {
        #[command(flatten)]
        layers: LayerArgs,
    },
    /// Print each setting, its value, and where that came from
    #[command(after_help = "Example:\n  DUALTRACK_LOCK__TTL_MS=20000 dualtrack config print")]
    Print {
        #[command(flatten)]
        layers: LayerArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs it. Exit codes: 0, or 2 for settings that cannot work.
pub fn config(args: &ConfigArgs) -> ExitCode {
    let outcome = match &args.command {
        ConfigCommand::Check { layers } => layers.sources().load().map(|settings| check(&settings)),
        ConfigCommand::Print { layers, json } => layers.sources().explain().map(|settings| {
            say(&if *json { as_json(&settings) } else { as_toml(&settings) });
            ExitCode::SUCCESS
        }),
    };
    outcome.unwrap_or_else(|why: DevError| {
        complain(&why.to_string());
        ExitCode::from(2)
    })
}

fn check(settings: &Settings) -> ExitCode {
    let rules = settings.rules();
    let broken = rules.iter().filter(|rule| !rule.holds).count();
    for rule in &rules {
        say(&format!("{} {}\n", if rule.holds { "holds  " } else { "BROKEN " }, rule.broken.rule().replace('`', "")));
    }
    if broken == 0 {
        say(&format!("all {} rules hold\n", rules.len()));
        return ExitCode::SUCCESS;
    }
    complain(&format!("{broken} of {} rules do not hold: a server would not start with these settings", rules.len()));
    ExitCode::from(2)
}

// TOML that can be used as a file, the origin as a comment.
fn as_toml(settings: &[Setting]) -> String {
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

fn as_json(settings: &[Setting]) -> String {
    let all: serde_json::Map<_, _> = settings
        .iter()
        .map(|setting| {
            let told = serde_json::json!({ "value": setting.value, "from": setting.from.to_string() });
            (setting.key.clone(), told)
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Object(all))
}
