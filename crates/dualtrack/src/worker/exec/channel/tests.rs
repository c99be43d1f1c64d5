//! The channel in an attempt of the SDK's harness.

use parking_lot::Mutex;
use std::sync::Arc;
use worker_sdk::testing::{End, Harness, Run};

use super::*;

/// Feeds lines to a channel inside an attempt; its replies, and what became of the attempt.
async fn say(harness: fn(Harness) -> Harness, lines: &'static [&'static str]) -> (Vec<String>, Run, String) {
    let replies = Arc::new(Mutex::new((Vec::new(), String::new())));
    let heard = replies.clone();
    let run = harness(Harness::new(move |context: Context| {
        let heard = heard.clone();
        async move {
            let recorded = context.recorded_steps().await?;
            let mut channel = Channel::new(context, recorded);
            heard.lock().1 = String::from_utf8_lossy(&channel.steps_file()).into_owned();
            for line in lines {
                let mut reply = channel.take(line.as_bytes(), line.len() as u64)?;
                while !channel.is_ready() {
                    reply = Some(channel.done().await?);
                }
                heard.lock().0.extend(reply.map(|reply| String::from_utf8_lossy(&reply).trim_end().to_owned()));
            }
            assert!(!channel.in_unsafe_step(), "every step was completed");
            Ok(Bytes::new())
        }
    }));
    let run = run.run().await;
    let (replies, file) = replies.lock().clone();
    (replies, run, file)
}

#[tokio::test]
async fn steps_and_checkpoints_are_recorded_as_they_are_said() {
    let lines: &[&str] = &[
        r#"{"begin":"hash","idempotent":true}"#,
        r#"{"progress":{"percent":40}}"#,
        r#"{"checkpoint":{"line":7}}"#,
        r#"{"step":"hash","output":0.10000000000000000555}"#,
        r#"{"step":"mail"}"#,
        r#"{"checkpoint":{"line":9}}"#,
        r#"{"step":"hash","output":"another"}"#,
    ];
    let (replies, run, file) = say(|harness| harness, lines).await;
    assert_eq!(run.end, End::Success(Bytes::new()));
    assert_eq!(file, "{}");
    assert_eq!(
        replies,
        [
            r#"{"go":"hash"}"#,
            r#"{"done":"checkpoint"}"#,
            r#"{"done":"hash"}"#,
            r#"{"done":"mail"}"#,
            r#"{"done":"checkpoint"}"#,
            r#"{"done":"hash","output":0.10000000000000000555}"#,
        ]
    );
    let outputs: Vec<_> = run.outputs.iter().map(|(name, output)| (name.as_str(), &output[..])).collect();
    let expected: [(&str, &[u8]); 3] =
        [("checkpoint", br#"{"line":9}"#), ("hash", b"0.10000000000000000555"), ("mail", b"null")];
    assert_eq!(outputs, expected);
}

#[tokio::test]
async fn a_later_attempt_gets_what_is_on_record() {
    let recorded = |harness: Harness| harness.recorded("hash", "{\"n\":\n1}").recorded("mail", "no json");
    let lines: &[&str] = &[r#"{"begin":"hash"}"#, r#"{"begin":"new"}"#, r#"{"step":"new","output":1}"#];
    let (replies, run, file) = say(recorded, lines).await;
    assert_eq!(run.end, End::Success(Bytes::new()));
    assert_eq!(replies, [r#"{"done":"hash","output":{"n": 1}}"#, r#"{"go":"new"}"#, r#"{"done":"new"}"#]);
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file, serde_json::json!({"hash": {"n": 1}, "mail": "no json"}));
}

#[tokio::test]
async fn lines_that_mean_nothing_fail_the_attempt_by_name() {
    for (line, why) in [
        ("hello", "hello"),
        ("{}", "one of begin"),
        (r#"{"step":"a","begin":"b"}"#, "one of begin"),
        (r#"{"begin":"a","output":1}"#, "one of begin"),
        (r#"{"step":"a","outptu":1}"#, "outptu"),
        (r#"{"step":"checkpoint"}"#, "checkpoint"),
    ] {
        let lines: &'static [&'static str] = Box::leak(Box::new([line]));
        let (_, run, _) = say(|harness| harness, lines).await;
        let End::Failed { code, message, .. } = run.end else { panic!("{line}: {:?}", run.end) };
        assert_eq!(code, "CHANNEL_INVALID");
        assert!(message.contains(why), "{message}");
    }
    let (_, run, _) = say(|harness| harness, &[r#"{"begin":"a"}"#, r#"{"begin":"b"}"#]).await;
    assert!(matches!(run.end, End::Failed { message, .. } if message.contains("while step a is under way")));
}
