//! The way from an isolate's background tasks to the model of Redis: the product's client sends a pipeline over REST.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use edgefront::{
    ports::{
        fetch::{Fetch, FetchError, Request, Response},
        time::Clock,
    },
    schema::scripts,
};
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use upstash_rest::{ExchangeTerms, TransportError};

use crate::{catalogue::Catalogue, costs, redis::RedisModel, shared::Shared, usage::On};

/// One isolate's way to Redis.
pub struct SimulatedRest {
    pub shared: Rc<Shared>,
    /// How many isolates this one stands for.
    pub weight: f64,
    pub round_trip: Duration,
}

impl Fetch for SimulatedRest {
    fn fetch(&self, _: Request, _: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError::Unreachable)))
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let body = request.into_body();
        let clock = &self.shared.clock;
        let mut redis = self.shared.redis.borrow_mut();
        let reply = self.execute(&mut redis, &body);
        let bytes = [body.len(), reply.len()].map(|length| f64::from(u32::try_from(length).unwrap_or(u32::MAX)));
        redis.usage.request(costs::REQUEST_BYTES + costs::RESPONSE_BYTES + bytes[0] + bytes[1], self.weight);
        let wait = self.round_trip + redis.delay();
        let sleep = clock.sleep(wait.min(terms.deadline));
        Box::pin(async move {
            sleep.await;
            if wait > terms.deadline { Err(TransportError::Timeout) } else { Ok(http::Response::new(reply)) }
        })
    }
}

impl SimulatedRest {
    fn execute(&self, redis: &mut RedisModel, body: &[u8]) -> Bytes {
        let commands: Vec<Vec<String>> = serde_json::from_slice(body).unwrap_or_default();
        let results: Vec<_> = commands.iter().map(|command| json!({"result": self.run(redis, command)})).collect();
        json!(results).to_string().into()
    }

    fn run(&self, redis: &mut RedisModel, command: &[String]) -> Value {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["ZINCRBY", _, views, item] => {
                redis.usage.write(costs::COUNT, On::Key("viewed:"), self.weight);
                let views = views.parse().map_or(0.0, f64::abs);
                if let Some(item) = Catalogue::item(item) {
                    redis.ranking.count(item, views, self.shared.clock.now());
                }
                // Base64 of a score, which nobody reads.
                json!("MQ==")
            }
            ["EVALSHA", sha1, rest @ ..] if *sha1 == scripts::TOUCH.sha1 => self.touch(redis, rest),
            ["XADD", ..] => {
                redis.usage.write(costs::TRAFFIC, On::Key("traffic:"), self.weight);
                json!("MA==")
            }
            other => {
                debug_assert!(false, "the model does not know {other:?}");
                Value::Null
            }
        }
    }

    /// `EVALSHA touch n login: recent: (viewed:T)* idle_cutoff window touch_every trims (T now item began)*`.
    fn touch(&self, redis: &mut RedisModel, arguments: &[&str]) -> Value {
        let keys: usize = arguments.first().and_then(|count| count.parse().ok()).unwrap_or_default();
        let visits = arguments.get(keys + 5..).unwrap_or_default();
        let (window, now) = (self.shared.config.session.view_window, self.shared.clock.now());
        let (mut own, mut is_seen) = (0.0, false);
        let mut replies = Vec::new();
        for visit in visits.chunks(4) {
            let [token, _, item, _] = visit else { continue };
            is_seen |= redis.is_seen(token, now);
            let (reply, commands) = redis.touch(token, Catalogue::item(item), window, now);
            own += commands;
            replies.push(reply);
        }
        let seen = if is_seen { costs::TOUCH_SEEN } else { 0.0 };
        redis.usage.write(costs::TOUCH + seen, On::Key("login:"), self.weight);
        redis.usage.write(own, On::Own, self.weight);
        json!(replies)
    }
}
