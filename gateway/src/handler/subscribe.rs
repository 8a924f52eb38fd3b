//! Requests that open a stream: `/subscribe/…`, `/psubscribe/…` and `/monitor` with `Accept: text/event-stream`.

use std::net::IpAddr;

use http::{HeaderMap, StatusCode, header::ACCEPT};

use super::{
    response::{self, HttpResponse},
    state::GatewayState,
};
use crate::{
    auth::Access,
    error::{self, ErrorResponse},
    policy,
    request::{self, Command, RequestKind},
    stream::StreamKind,
    upstream::Value,
};

/// A request for a stream.
pub(super) struct StreamRequest {
    command: Command,
    kind: StreamKind,
}

impl StreamRequest {
    /// The stream that a request asks for, if it does. The body says nothing: `@upstash/redis` sends `[]`.
    pub(super) fn parse(
        state: &GatewayState,
        headers: &HeaderMap,
        path: &str,
        query: &[(Vec<u8>, Vec<u8>)],
    ) -> Option<Self> {
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut types = accepted.flat_map(|value| value.split(',')).filter_map(|range| range.split(';').next());
        if !types.any(|media_type| media_type.trim().eq_ignore_ascii_case("text/event-stream")) {
            return None;
        }
        let command = request::path(path, query, b"").ok()?.pop()?;
        let kind = match command.name().as_str() {
            "SUBSCRIBE" | "PSUBSCRIBE" => StreamKind::Subscription,
            "MONITOR" => StreamKind::Monitor { database: state.upstream.database() },
            _ => return None,
        };
        Some(Self { command, kind })
    }

    /// Opens the stream.
    ///
    /// # Errors
    /// When it may not be opened: by the token, by the limits, or by Redis.
    pub(super) async fn open(
        self,
        state: &GatewayState,
        access: Access,
        client: IpAddr,
    ) -> Result<HttpResponse, ErrorResponse> {
        let Self { command, kind } = self;
        policy::check_stream(&command, access, &state.upstream)?;
        let slot = state.streams.take_slot(client).ok_or_else(|| ErrorResponse {
            status: StatusCode::SERVICE_UNAVAILABLE,
            text: "ERR max number of streams reached".to_owned(),
        })?;
        let sync_token = state.traffic.record(RequestKind::Single, [&command].into_iter());
        let (first, connection) = state.upstream.open_push(&command).await?;
        if let Value::ServerError(error) = &first {
            return Err(ErrorResponse::from_redis(error::server_error_text(error)));
        }
        Ok(response::events(state.streams.start(slot, kind, &first, connection), sync_token))
    }
}
