//! Streams of server-sent events: SUBSCRIBE, PSUBSCRIBE and MONITOR. Each stream has a connection to Redis of its own,
//! and a task that reads it. The task never waits for the client: it ends the stream of a client that reads too slowly.

use std::{net::IpAddr, sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    gateway::{Slot, Slots, Stop, StreamLimits},
    upstream::{PushConnection, Value},
};

/// Values as events.
mod event;

/// Events as the body of a response.
mod body;

pub(crate) use body::EventBody;
use body::EventSender;
pub(crate) use event::StreamKind;

/// Events that are sent together, in bytes, if they wait.
const BATCH_SIZE: usize = 64 << 10;

/// The streams of a gateway.
pub(crate) struct Streams {
    limits: StreamLimits,
    /// Time for Redis to answer a PING.
    redis_timeout: Duration,
    slots: Arc<Slots>,
    stop: Stop,
}

impl Streams {
    /// No stream yet. All streams end at the signal `stop`.
    pub(crate) fn new(limits: StreamLimits, redis_timeout: Duration, stop: Stop) -> Self {
        let slots = Slots::new(limits.max_streams, limits.max_streams_per_address);
        Self { limits, redis_timeout, slots, stop }
    }

    /// Takes a place for a stream; `None` if there is none.
    pub(crate) fn take_slot(&self, client: IpAddr) -> Option<Slot> {
        self.slots.take(client)
    }

    /// Starts a stream that begins with the event for `first`.
    pub(crate) fn start(&self, slot: Slot, kind: StreamKind, first: &Value, connection: PushConnection) -> EventBody {
        let (sender, body) = body::channel(self.limits.max_buffered_bytes, slot);
        let mut events = Vec::new();
        kind.write_event(first, &mut events);
        sender.send_last(events);
        let relay = Relay { kind, connection, limits: self.limits, redis_timeout: self.redis_timeout };
        tokio::spawn(relay.run(sender, self.stop.clone()));
        body
    }
}

/// Passes events from Redis to a client.
struct Relay {
    kind: StreamKind,
    connection: PushConnection,
    limits: StreamLimits,
    redis_timeout: Duration,
}

impl Relay {
    /// Runs until one side is gone, the client is too slow, or the gateway shuts down. A last event names the cause.
    async fn run(mut self, sender: EventSender, mut stop: Stop) {
        let cause = tokio::select! {
            cause = self.relay(&sender) => cause,
            () = sender.closed() => return,
            () = stop.ordered() => "ERR the gateway shuts down".to_owned(),
        };
        let mut event = Vec::new();
        event::write_error(&cause, &mut event);
        sender.send_last(event);
    }

    /// Passes events until the stream must end. Returns the cause.
    async fn relay(&mut self, sender: &EventSender) -> String {
        let mut heartbeat = interval(self.limits.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeat.reset();
        let mut pinged: Option<Instant> = None;
        loop {
            let mut events = Vec::new();
            tokio::select! {
                value = self.connection.next() => {
                    let Some(value) = value else { return "ERR the connection to Redis broke".to_owned() };
                    pinged = None;
                    self.kind.write_event(&value, &mut events);
                    while events.len() < BATCH_SIZE && let Some(value) = self.connection.next_arrived() {
                        self.kind.write_event(&value, &mut events);
                    }
                }
                _ = heartbeat.tick() => {
                    if pinged.is_some_and(|pinged| pinged.elapsed() > self.redis_timeout) {
                        return "ERR Redis does not answer".to_owned();
                    }
                    events.extend_from_slice(event::HEARTBEAT);
                    if self.kind == StreamKind::Subscription && pinged.is_none() {
                        pinged = Some(Instant::now());
                        // The next read reports a broken connection.
                        let _ = self.connection.ping().await;
                    }
                }
            }
            if events.is_empty() {
                continue;
            }
            heartbeat.reset();
            if !sender.send(events) {
                let limit = self.limits.max_buffered_bytes;
                return format!("ERR the client reads too slowly. Limit: {limit} bytes");
            }
        }
    }
}
