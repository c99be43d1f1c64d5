//! What every server of ours counts of its connections.

service_kit::metrics! {
    HTTP_CONNECTIONS = Gauge "http_connections" [] "open connections";
    HTTP_CONNECTIONS_OPENED = Counter "http_connections_opened_total" [] "connections that were accepted";
    HTTP_CONNECTIONS_REFUSED = Counter "http_connections_refused_total" [] "connections that were one too many and were told so";
}
