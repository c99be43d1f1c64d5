//! Metrics that every service has.

crate::metrics! {
    ALARMS = Counter "alarms_total" ["alarm"] "how often an alarm went off; what to do is in the operations guide";
    ALARM_ACTIVE = Gauge "alarm_active" ["alarm"] "1 while an alarm stands";
    PARTITIONS = Gauge "partitions" [] "partitions of the topic";
    PARTITION_OWNING = Gauge "partition_owning" ["service", "partition"] "1 once the coordinator's own claim was read back, or the fold of another service reached the end of the log: nobody decides about a partition without";
    PARTITION_APPLIED_OFFSET = Gauge "partition_applied_offset" ["service", "partition"] "position: offset of the next record to fold";
    PARTITION_LOG_END_OFFSET = Gauge "partition_log_end_offset" ["partition"] "offset that the next record of the log will get; absent while the log does not answer";
    PARTITION_LAG_RECORDS = Gauge "partition_lag_records" ["service", "partition"] "records of the log that are not folded yet; absent while the log does not answer";
    PROJECTION_RECORDS_FOLDED = Counter "projection_records_folded_total" ["service"] "records folded by engine or replayer";
    PROJECTION_RECORDS_SEEN_AGAIN = Counter "projection_records_seen_again_total" ["service"] "records that the log handed out a second time; they change nothing";
    PROJECTION_VERDICTS_APPENDED = Counter "projection_verdicts_appended_total" ["service"] "verdicts and plans that were sent to the log";
    PROJECTION_VERDICTS_ACCEPTED = Counter "projection_verdicts_accepted_total" ["service"] "verdicts and plans that were read back as accepted";
    PROJECTION_VERDICTS_REJECTED = Counter "projection_verdicts_rejected_total" ["service"] "verdicts and plans that were read back as rejected: somebody was faster";
    PROJECTION_OUTCOMES_UNKNOWN = Counter "projection_outcomes_unknown_total" ["service"] "appends of engine or replayer of which the log did not say what became of them";
    RECORDS_QUARANTINED = Counter "records_quarantined_total" ["service"] "records that could not be decoded";
}
