//! All that Redis holds of sessions, their carts, the ranking and a flash sale, read at one moment.

use std::collections::{BTreeMap, BTreeSet};

use edgefront::{ports::time::Timestamp, schema::redis::Redis};
use serde_json::{Value, json};
use upstash_rest::Command;

/// The state of Redis. Keys have no hash tags here, because the bits of a token determine its shard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Token → user, empty for a guest.
    pub login: BTreeMap<String, String>,
    /// Token → user, for ended logins. Their data is not deleted yet.
    pub ended: BTreeMap<String, String>,
    /// Token → last seen.
    pub recent: BTreeMap<String, Timestamp>,
    /// Token → item → last viewed.
    pub viewed: BTreeMap<String, BTreeMap<String, Timestamp>>,
    /// Token → item → quantity.
    pub carts: BTreeMap<String, Items>,
    /// User → the tokens that their list names.
    pub lists: BTreeMap<String, BTreeSet<String>>,
    /// Users and their abandoned carts, sorted.
    pub abandoned: Vec<(String, Items)>,
    /// Item → −views.
    pub ranking: BTreeMap<String, f64>,
    pub rescaled: Option<u64>,
    /// Orders that were taken out of a cart.
    pub settled: BTreeSet<String>,
    /// The running flash sale.
    pub sold: u64,
    /// User → order.
    pub bought: BTreeMap<String, String>,
    /// User → reservation and its end.
    pub holds: BTreeMap<String, (String, Timestamp)>,
    /// Orders that the flash sale has counted.
    pub counted: BTreeSet<String>,
}

pub type Items = BTreeMap<String, u64>;

const ALL_KEYS: &str = "
    local all = {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
        local kind, value = redis.call('TYPE', key).ok, nil
        if kind == 'hash' then value = redis.call('HGETALL', key)
        elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
        elseif kind == 'string' then value = {redis.call('GET', key)}
        elseif kind == 'stream' then
            value = {}
            for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
                for _, word in ipairs(entry[2]) do value[#value + 1] = word end
            end
        end
        all[#all + 1] = {key, value or {}}
    end
    return #all == 0 and '[]' or cjson.encode(all)";

/// All keys without their hash tags, and the strings that each key holds.
pub async fn all_keys(redis: &Redis) -> Vec<(String, Vec<String>)> {
    let json: String = redis.run(Command::read("EVAL").arg(ALL_KEYS).num(0)).await.expect("the server answers");
    let all: Vec<(String, Value)> = serde_json::from_str(&json).expect("keys and their values");
    let untagged = |key: String| match (key.find(":{"), key.find('}')) {
        (Some(start), Some(end)) => format!("{}:{}", &key[..start], &key[end + 1..]),
        _ => key,
    };
    // An empty list is an empty object to cjson.
    all.into_iter().map(|(key, value)| (untagged(key), serde_json::from_value(value).unwrap_or_default())).collect()
}

impl State {
    pub async fn read(redis: &Redis) -> Self {
        let mut state = Self::default();
        for (key, words) in all_keys(redis).await {
            let (family, name) = key.split_once(':').unwrap_or((&key, ""));
            state.add(family, name.to_owned(), &words);
        }
        state.abandoned.sort();
        state
    }

    fn add(&mut self, family: &str, name: String, words: &[String]) {
        let pairs = || words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let moment = |score: String| Timestamp::from_score(score.parse().expect("a score"));
        let moments = || pairs().map(|(member, score)| (member, moment(score)));
        match (family, name.is_empty()) {
            ("login", _) => {
                for (field, user) in pairs() {
                    match field.strip_prefix("ended:") {
                        Some(token) => self.ended.insert(token.to_owned(), user),
                        None => self.login.insert(field, user),
                    };
                }
            }
            ("recent", _) => self.recent.extend(moments()),
            ("viewed", true) => {
                self.ranking.extend(pairs().map(|(item, score)| (item, score.parse::<f64>().expect("a score"))));
            }
            ("viewed", false) => drop(self.viewed.insert(name, moments().collect())),
            ("cart", _) => {
                let quantity = |(item, quantity): (String, String)| (item, quantity.parse().expect("a quantity"));
                self.carts.insert(name, pairs().map(quantity).collect());
            }
            ("sessions", _) => self.lists.entry(name).or_default().extend(pairs().map(|(token, _)| token)),
            ("abandoned", _) => {
                for entry in words.chunks(6) {
                    let items: Vec<String> = serde_json::from_str(&entry[5]).expect("a cart");
                    let lines = items.chunks(2).map(|line| (line[0].clone(), line[1].parse().expect("a quantity")));
                    self.abandoned.push((entry[1].clone(), lines.collect()));
                }
            }
            ("rescaled", true) => self.rescaled = words[0].parse().ok(),
            ("order", _) => self.settled.extend(pairs().filter(|(field, _)| field == "cart").map(|_| name.clone())),
            ("held", _) => {
                for (user, ends) in moments() {
                    self.holds.entry(user).or_insert_with(|| (String::new(), ends)).1 = ends;
                }
            }
            ("flash", _) => pairs().for_each(|(field, value)| self.add_of_sale(&field, value, moment)),
            _ => {}
        }
    }

    fn add_of_sale(&mut self, field: &str, value: String, moment: impl Fn(String) -> Timestamp) {
        match field.split_once(':') {
            Some(("hold", user)) => {
                let none = || (String::new(), moment("0".to_owned()));
                self.holds.entry(user.to_owned()).or_insert_with(none).0 = value;
            }
            Some(("bought", user)) => drop(self.bought.insert(user.to_owned(), value)),
            Some(("order", order)) => drop(self.counted.insert(order.to_owned())),
            _ if field == "sold" => self.sold = value.parse().expect("a count"),
            _ => {}
        }
    }
}

pub fn written(state: &State, token: &str) -> String {
    format!("{token}: {}", json!(state.carts.get(token).cloned().unwrap_or_default()))
}

pub fn seen(state: &mut State, token: &str, now: Timestamp) {
    let last = state.recent.get(token).copied();
    state.recent.insert(token.to_owned(), last.map_or(now, |last| last.max(now)));
}

/// Ends a session and deletes its data.
pub fn reap(state: &mut State, token: &str, whose: &str) {
    let ended = state.ended.remove(token);
    let user = state.login.remove(token).or(ended);
    let cart = state.carts.remove(token);
    state.recent.remove(token);
    state.viewed.remove(token);
    state.abandoned.extend(cart.map(|cart| (user.unwrap_or_else(|| whose.to_owned()), cart)));
}

/// Ends those logins of `user` whose tokens `ends` accepts.
pub fn end_logins(state: &mut State, user: &str, ends: impl Fn(&str) -> bool) {
    let is_one = |token: &String, owner: &String| owner == user && ends(token);
    let ended = state.login.iter().filter(|(token, owner)| is_one(token, owner));
    state.ended.extend(ended.map(|(token, owner)| (token.clone(), owner.clone())));
    state.login.retain(|token, owner| !is_one(token, owner));
}

/// Ends the logins of `user` and deletes their data. `own` is the session that asks.
pub fn log_out_devices(state: &mut State, user: Option<&str>, own: &str, all: bool, history: &[State]) {
    match (history, user) {
        ([], _) | (_, None) => {}
        (_, Some("")) => reap(state, own, ""),
        ([_], Some(user)) => end_logins(state, user, |token| all || token != own),
        ([_, listed, ..], Some(user)) => {
            let mut ended = listed.lists.get(user).cloned().unwrap_or_default();
            if all {
                ended.insert(own.to_owned())
            } else {
                ended.remove(own)
            };
            for token in &ended {
                reap(state, token, user);
            }
        }
    }
}
