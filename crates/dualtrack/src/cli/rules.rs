//! `dualtrack rules show|activate`: which acceptance rules are active, and who knows which.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use comfy_table::Color;
use rest_client::contract::{ActivateRequest, MemberRules, RulesView};

use super::failure::note;
use super::fleet::{everywhere, missing};
use super::listing::{Column, Listing, Shown};
use super::screen::Screen;
use super::{Common, Failure};

/// Arguments of `dualtrack rules`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct RulesArgs {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum RulesCommand {
    /// Rules that are active, and the members of every group with the rules they know
    #[command(after_help = "Example:\n  dualtrack rules show")]
    Show,
    /// Activate rules in every partition, for good: refused while any member does not know them
    #[command(after_help = "Example:\n  dualtrack rules activate 2")]
    Activate {
        /// Version
        version: u32,
    },
}

/// Runs it.
pub async fn run(args: RulesArgs) -> Result<(), Failure> {
    let RulesArgs { common, command } = args;
    let client = common.client()?;
    match command {
        RulesCommand::Show => {
            let view = client.rules().await.map_err(|error| Failure::call(error, ""))?;
            missing(&view.unanswered, &[]);
            if view.members.is_none() {
                note("the log does not say who its members are now: ask again when its broker answers");
            }
            common.print(&view, show)
        }
        RulesCommand::Activate { version } => {
            let ask = "look with `dualtrack rules show`; asking again does no harm";
            let answer = client.activate(&ActivateRequest { version }).await;
            let answers = answer.map_err(|error| Failure::call(error, ask))?;
            everywhere(&answers, &common, &format!("rules {version}: active"))
        }
    }
}

fn show(view: &RulesView, screen: &Screen) -> String {
    let active: BTreeSet<u32> = view.partitions.iter().map(|partition| partition.active).collect();
    let active: Vec<String> = active.iter().map(ToString::to_string).collect();
    let head = match active.as_slice() {
        [] => "no partition says which rules are active".to_owned(),
        [one] => format!("rules {one} are active"),
        [lowest, ..] => {
            let lowest: Option<u32> = lowest.parse().ok();
            let behind = view.partitions.iter().filter(|partition| Some(partition.active) == lowest).count();
            format!("rules {} are active\n{behind} partitions are at the lowest", active.join(" and "))
        }
    };
    let head = format!("{head}\nthe server knows rules up to {}", view.known);
    let Some(members) = &view.members else { return head };
    let newest = view.partitions.iter().map(|partition| partition.active).max().unwrap_or(1);
    let mut list = Listing::new(&[
        Column::text("group", 0, 8),
        Column::text("instance", 1, 8),
        Column::new("rules", 0),
        Column::number("partitions", 2),
    ]);
    members.iter().for_each(|member| list.row(row(member, newest)));
    format!("{head}\n\n{}", list.show(screen))
}

fn row(member: &MemberRules, newest: u32) -> [Shown; 4] {
    let rules = match (member.rules_from, member.rules_to) {
        (Some(from), Some(to)) => format!("{from}-{to}"),
        _ => "unknown".to_owned(),
    };
    [
        member.group.as_str().into(),
        member.instance.as_deref().unwrap_or(&member.client_id).into(),
        Shown::coloured(rules, if member.knows(newest) { Color::Green } else { Color::Red }),
        member.partitions.len().to_string().into(),
    ]
}

#[cfg(test)]
#[path = "rules/tests.rs"]
mod tests;
