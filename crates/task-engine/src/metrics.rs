//! What the engine counts besides what every projection does.

service_kit::metrics! {
    ENGINE_RETRIES_APPROVED = Counter "engine_retries_approved_total" [] "retries that the engine decided to approve";
    ENGINE_GIVEN_UP = Counter "engine_given_up_total" [] "tasks that the engine decided to give up: they wait for people";
}
