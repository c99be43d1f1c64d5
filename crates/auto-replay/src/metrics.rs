//! What the replayer counts besides what every projection does.

service_kit::metrics! {
    REPLAY_PLANS = Counter "replay_plans_total" ["witness"] "plans by what they rest on: snapshot and log, or the log only because no current row came in time";
    CONSISTENCY_FINDINGS = Counter "consistency_findings_total" [] "rows that say something else than the log at the same offset";
}
