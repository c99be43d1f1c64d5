//! What `rules show` looks like, compared with the files in `golden`.

use rest_client::contract::PartitionRules;

use super::super::fleet::tests::golden;
use super::*;

fn member(group: &str, instance: &str, rules: Option<(u32, u32)>, partitions: u16) -> MemberRules {
    MemberRules {
        group: group.into(),
        client_id: format!("{group}|{instance}").into(),
        instance: rules.map(|_| instance.into()),
        rules_from: rules.map(|(from, _)| from),
        rules_to: rules.map(|(_, to)| to),
        partitions: (0..partitions).collect(),
    }
}

#[test]
fn rules_and_who_knows_them() {
    let partition = |partition, active| PartitionRules { partition, active };
    let view = RulesView {
        known: 2,
        partitions: vec![partition(0, 1), partition(1, 2), partition(2, 1)],
        unanswered: Vec::new(),
        members: Some(vec![
            member("auto-replay", "somebody", None, 0),
            member("coordinator", "协调器-1", Some((1, 2)), 2),
            member("task-engine", "engine-with-a-long-name-in-zone-b", Some((1, 1)), 16),
        ]),
    };
    golden("rules", |screen| show(&view, screen));
    let one = RulesView { partitions: vec![partition(0, 1)], members: None, ..view.clone() };
    assert_eq!(
        show(&one, &Screen { width: None, colour: false }),
        "rules 1 are active\nthe server knows rules up to 2"
    );
}
