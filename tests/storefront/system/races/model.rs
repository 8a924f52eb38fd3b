//! A naive model: the effect of each request on the state, as maps, one request after another. After each request, the
//! state of Redis must be the state that the model expects, and the invariants must hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use edgefront::{
    config::Config,
    orders::flash_sale::GRACE,
    ports::{
        error::{Error, Refusal},
        time::Timestamp,
    },
    schema::{keys::Keys, token::Token},
    sessions::{self, DeviceSelection, TOUCH_EVERY},
};

use super::{
    PIECES,
    orders::Follower,
    state::{Items, State, end_logins, log_out_devices, reap, seen, written},
    world::{Deed, Doing},
};

/// The answer to a cart write during a login.
const JUST_SIGNED_IN: &str = "you have just signed in: try again";

pub struct Model<'a> {
    pub config: &'a Config,
    pub keys: Keys,
    pub now: State,
    /// When the sale ends.
    pub sale_ends: Timestamp,
    /// Tokens whose sessions have ended.
    ended: BTreeSet<String>,
    /// The session that an order's first report named, in the sharded layout.
    pub order_carts: BTreeMap<String, Token>,
    /// The old token of a login → the session that the login began.
    pub followed: BTreeMap<String, Follower>,
}

impl<'a> Model<'a> {
    pub fn new(config: &'a Config, keys: Keys, sale_ends: Timestamp) -> Self {
        let (now, ended, order_carts, followed) = Default::default();
        Self { config, keys, now, sale_ends, ended, order_carts, followed }
    }

    /// Checks the state `after` a request of the action `doing`.
    pub fn executed(&mut self, doing: &mut Doing, after: State) -> Result<(), String> {
        let before = std::mem::take(&mut self.now);
        let mut expected = self.expect(doing, &before, &after)?;
        expected.lists.clone_from(&after.lists);
        expected.abandoned.sort();
        if expected != after {
            return Err(format!("{:?}\nat {before:?}\nleads to {expected:?}\nbut came to {after:?}", doing.deed));
        }
        self.hold(&before, &after).map_err(|wrong| format!("{wrong}\nafter {:?}\nat {before:?}", doing.deed))?;
        doing.history.push(before);
        self.now = after;
        Ok(())
    }

    /// The user of a live session; empty for a guest.
    fn user<'b>(&self, state: &'b State, token: &str, now: Timestamp) -> Option<&'b str> {
        let seen = *state.recent.get(token)?;
        (seen >= now - self.config.session.idle).then_some(state.login.get(token)?)
    }

    /// The effect of the next request of `doing`. `after` only reveals the token or the reservation that was drawn.
    fn expect(&mut self, doing: &mut Doing, before: &State, after: &State) -> Result<State, String> {
        let (now, step) = (doing.now, doing.history.len());
        let mut next = before.clone();
        let drawn = after.login.keys().find(|token| !before.login.contains_key(*token));
        match &doing.deed {
            Deed::Check(token) => {
                doing.expected = Some(format!("{:?}", self.user(before, token.as_str(), now)));
            }
            Deed::Touch(token, item) if step == 0 => {
                doing.expected = Some(self.touch(&mut next, token.as_str(), item.as_str(), now).to_owned());
            }
            Deed::Touch(_, item) => *next.ranking.entry(item.to_string()).or_default() -= 1.0,
            Deed::LogIn(old, user) if self.followed_by(before, old.as_ref(), user.as_str(), now).is_some() => {
                doing.expected = self.followed_by(before, old.as_ref(), user.as_str(), now).cloned();
            }
            Deed::LogIn(old, user) => {
                let new = drawn.ok_or("a login draws a token")?;
                let moves = self.log_in(&mut next, &Login { old: old.as_ref(), new, user: user.as_str() }, now);
                if let Some(old) = old {
                    let before = self.followed.remove(old.as_str()).and_then(|follower| follower.place);
                    let place = if moves { Some(new.clone()) } else { before };
                    self.followed.insert(old.as_str().to_owned(), Follower { token: new.clone(), place });
                }
                doing.expected = Some(new.clone());
            }
            Deed::LogOut(token) => reap(&mut next, token.as_str(), ""),
            Deed::LogOutUser(user) if step == 0 => end_logins(&mut next, user.as_str(), |_| true),
            Deed::LogOutUser(user) => {
                for token in doing.history[0].lists.get(user.as_str()).into_iter().flatten() {
                    reap(&mut next, token, user.as_str());
                }
            }
            Deed::LogOutDevices(token, which) => {
                let user = self.user(doing.history.first().unwrap_or(before), token.as_str(), now);
                log_out_devices(&mut next, user, token.as_str(), *which == DeviceSelection::All, &doing.history);
                doing.expected = Some(user.is_some().to_string());
            }
            Deed::Set(token, item, quantity) => {
                let change =
                    CartChange { token: token.as_ref(), item: item.as_str(), quantity: *quantity, adds: false };
                doing.expected = Some(self.put(&mut next, &change, drawn, now)?);
            }
            Deed::Add(token, item, quantity) => {
                let change = CartChange { token: token.as_ref(), item: item.as_str(), quantity: *quantity, adds: true };
                doing.expected = Some(self.put(&mut next, &change, drawn, now)?);
            }
            Deed::Clear(token) => {
                doing.expected = Some(match self.user(before, token.as_str(), now) {
                    Some(_) => {
                        next.carts.remove(token.as_str());
                        self.touched(&mut next, token.as_str(), now);
                        written(&next, token.as_str())
                    }
                    None if self.is_just_replaced(before, token, now) => JUST_SIGNED_IN.to_owned(),
                    None => "nobody".to_owned(),
                });
            }
            Deed::Order { .. } => self.order(&mut next, doing),
            Deed::Reserve(_) | Deed::Cancel(..) if self.keys.is_sharded() && step == 0 => {}
            Deed::Reserve(token) => {
                let user = self.user(doing.history.first().unwrap_or(before), token.as_str(), now).unwrap_or_default();
                doing.expected = Some(self.reserve(&mut next, &Buyer { user, token: token.as_str() }, after, now)?);
            }
            Deed::Cancel(token, id) => {
                let user = self.user(doing.history.first().unwrap_or(before), token.as_str(), now).unwrap_or_default();
                let is_theirs = before.holds.get(user).is_some_and(|(held, _)| held == id.as_str());
                let ends = next.holds.remove(user).filter(|_| is_theirs).map(|(_, ends)| ends);
                if !is_theirs {
                    next.holds.clone_from(&before.holds);
                }
                doing.expected = Some(match (user, ends) {
                    ("", _) => Error::NotSignedIn.to_string(),
                    (_, Some(ends)) if ends > now - GRACE => "returned".to_owned(),
                    _ => Error::NotFound("reservation").to_string(),
                });
            }
            Deed::Clean(_) => self.clean(&mut next, doing, after)?,
            Deed::Rescale => doing.expected = Some(self.rescale(&mut next, now).to_string()),
        }
        Ok(next)
    }

    fn touch(&self, next: &mut State, token: &str, item: &str, now: Timestamp) -> &'static str {
        let Some(user) = self.user(next, token, now) else { return "Ended" };
        let counts = if user.is_empty() { "GuestViewCounts" } else { "ViewCounts" };
        self.touched(next, token, now);
        let viewed = next.viewed.entry(token.to_owned()).or_default();
        let before = viewed.insert(item.to_owned(), viewed.get(item).map_or(now, |last| now.max(*last)));
        let window = self.config.session.view_window.as_secs_f64();
        match before {
            Some(last) if now.as_score() - last.as_score() < window => "Seen",
            _ => counts,
        }
    }

    /// The session of `user` that an earlier login with `old` began, if it is still live: this one is its retry.
    fn followed_by(&self, before: &State, old: Option<&Token>, user: &str, now: Timestamp) -> Option<&String> {
        let token = self.followed.get(old?.as_str()).map(|follower| &follower.token);
        token.filter(|token| self.user(before, token, now) == Some(user))
    }

    /// The session that a login began in place of this one is just in use: a cart write must not start a guest's session.
    fn is_just_replaced(&self, state: &State, token: &Token, now: Timestamp) -> bool {
        let follower = self.followed.get(token.as_str()).and_then(|follower| state.recent.get(&follower.token));
        follower.is_some_and(|active| now.since(*active) < Duration::from_secs(10))
    }

    /// Returns whether the cart of the old session moved.
    fn log_in(&self, next: &mut State, &Login { old, new, user }: &Login, now: Timestamp) -> bool {
        let old = old.map(Token::as_str);
        let owner = old.and_then(|old| self.user(next, old, now)).map(str::to_owned);
        let moves = owner.as_ref().is_some_and(|owner| owner.is_empty() || owner == user);
        if let Some(old) = old.filter(|_| owner.is_some()) {
            if moves {
                let (cart, viewed) = (next.carts.remove(old), next.viewed.remove(old));
                next.carts.extend(cart.map(|cart| (new.to_owned(), cart)));
                next.viewed.extend(viewed.map(|viewed| (new.to_owned(), viewed)));
            }
            reap(next, old, "");
        }
        next.login.insert(new.to_owned(), user.to_owned());
        next.recent.insert(new.to_owned(), now);
        moves
    }

    /// A cart write and its response.
    fn put(
        &self,
        next: &mut State,
        change: &CartChange,
        drawn: Option<&String>,
        now: Timestamp,
    ) -> Result<String, String> {
        let CartChange { token, item, quantity, adds } = *change;
        let lives = token.filter(|token| self.user(next, token.as_str(), now).is_some()).map(Token::as_str);
        let token = match (lives, drawn) {
            (Some(token), _) => token,
            (None, _) if token.is_some_and(|token| self.is_just_replaced(next, token, now)) => {
                return Ok(JUST_SIGNED_IN.to_owned());
            }
            (None, _) if quantity == 0 => return Ok("nobody".to_owned()),
            (None, Some(drawn)) => drawn,
            (None, None) => return Err("a guest's first item draws a token".to_owned()),
        };
        let cart = next.carts.entry(token.to_owned()).or_default();
        let limits = &self.config.cart;
        let there = cart.get(item).copied();
        if quantity > 0 && there.is_none() && cart.len() as u64 >= u64::from(limits.max_lines) {
            return Ok(Error::CartFull { limit: limits.max_lines }.to_string());
        }
        let sum = if adds { there.unwrap_or_default() + u64::from(quantity) } else { quantity.into() };
        cart.insert(item.to_owned(), sum.min(limits.max_quantity.into()));
        cart.retain(|_, quantity| *quantity > 0);
        next.carts.retain(|_, cart| !cart.is_empty());
        if lives.is_none() {
            next.login.insert(token.to_owned(), String::new());
        }
        self.touched(next, token, now);
        Ok(written(next, token))
    }

    /// Records an activity, unless one was recorded a moment ago. The scripts do not read the last activity of a young
    /// session; it is not before its start.
    fn touched(&self, state: &mut State, token: &str, now: Timestamp) {
        let start = Token::parse(token).filter(|_| self.is_young(token, now)).map(|token| token.began());
        let recorded = state.recent.get(token).copied();
        let last = recorded.map(|recorded| start.unwrap_or(recorded));
        if last.is_none_or(|last| now.as_score() - last.as_score() >= TOUCH_EVERY.as_secs_f64()) {
            seen(state, token, now);
        }
    }

    fn is_young(&self, token: &str, now: Timestamp) -> bool {
        Token::parse(token).is_some_and(|token| sessions::is_young(&token, now, &self.config.session))
    }

    fn reserve(
        &self,
        next: &mut State,
        &Buyer { user, token }: &Buyer,
        after: &State,
        now: Timestamp,
    ) -> Result<String, String> {
        if self.keys.is_sharded() && !user.is_empty() && next.recent.contains_key(token) {
            seen(next, token, now);
        }
        let kept = next.holds.values().filter(|(_, ends)| *ends > now - GRACE).count() as u64;
        Ok(match next.holds.get(user) {
            _ if user.is_empty() => Error::NotSignedIn.to_string(),
            _ if next.bought.contains_key(user) => Refusal::AlreadyBought.to_string(),
            Some((id, ends)) if *ends > now => format!("held {id}"),
            _ if now >= self.sale_ends => Refusal::Ended.to_string(),
            _ if next.sold + kept >= PIECES => Refusal::SoldOut.to_string(),
            _ => {
                let drawn = after.holds.get(user).ok_or("a piece that is left is held")?.0.clone();
                next.holds.retain(|_, (_, ends)| *ends > now - GRACE);
                next.holds.insert(user.to_owned(), (drawn.clone(), now + self.config.flash.hold));
                if !self.keys.is_sharded() && !self.is_young(token, now) {
                    self.touched(next, token, now);
                }
                format!("held {drawn}")
            }
        })
    }

    /// The cleanup chooses the sessions that it ends, within bounds.
    fn clean(&self, next: &mut State, doing: &Doing, after: &State) -> Result<(), String> {
        let before = next.clone();
        let gone: Vec<_> = before.recent.iter().filter(|(token, _)| !after.recent.contains_key(*token)).collect();
        let cutoff = doing.now - self.config.session.idle;
        for (token, score) in &gone {
            if !doing.history.iter().any(|read| read.recent.get(*token) == Some(score)) {
                return Err(format!("the cleaning ended {token}, which was seen since it was read"));
            }
            reap(next, token, "");
        }
        for shard in self.keys.shards() {
            let is_here = |token: &str| Token::parse(token).is_some_and(|token| self.keys.shard_of(&token) == shard);
            let undershot = self.share() > after.recent.keys().filter(|token| is_here(token)).count() as u64;
            if undershot && gone.iter().any(|(token, score)| is_here(token) && **score >= cutoff) {
                return Err("the cleaning undershot the cap".to_owned());
            }
        }
        Ok(())
    }

    fn share(&self) -> u64 {
        self.config.session.limit / u64::from(self.keys.shard_count().get())
    }

    fn rescale(&self, next: &mut State, now: Timestamp) -> u64 {
        let half_life = self.config.ranking.half_life.as_secs();
        let began = now.as_secs() / half_life * half_life;
        // The first run, also after a time without a ranking, halves nothing.
        let last = *next.rescaled.get_or_insert(began);
        let halvings = began.saturating_sub(last) / half_life;
        if halvings == 0 {
            return 0;
        }
        next.rescaled = Some(began);
        let is_empty = next.ranking.is_empty();
        next.ranking.values_mut().for_each(|score| *score *= 0.5_f64.powi(i32::try_from(halvings).unwrap_or(i32::MAX)));
        next.ranking.retain(|_, score| *score < -(0.5_f64.powi(10)));
        if !is_empty && next.ranking.is_empty() {
            next.rescaled = None;
        }
        if is_empty { 0 } else { halvings }
    }

    /// Invariants at every moment.
    fn hold(&mut self, before: &State, after: &State) -> Result<(), String> {
        let ended = before.login.keys().filter(|token| !after.login.contains_key(*token));
        self.ended.extend(ended.cloned());
        let limits = &self.config.cart;
        let is_cart = |cart: &Items| {
            cart.len() as u64 <= u64::from(limits.max_lines)
                && cart.values().all(|quantity| (1..=u64::from(limits.max_quantity)).contains(quantity))
        };
        let is_listed = |(token, user): (&String, &String)| {
            user.is_empty() || after.lists.get(user).is_some_and(|list| list.contains(token))
        };
        for (holds, rule) in [
            (after.login.keys().all(|token| after.recent.contains_key(token)), "the cleanup can see every login"),
            (!after.login.keys().any(|token| self.ended.contains(token)), "an ended token stays ended"),
            (after.carts.keys().all(|token| after.recent.contains_key(token)), "every cart is a session's"),
            (after.viewed.keys().all(|token| after.recent.contains_key(token)), "what was viewed is a session's"),
            (after.carts.values().all(is_cart), "a cart keeps its limits"),
            (after.login.iter().all(is_listed), "a user's list names each of their sessions"),
            (after.holds.len() as u64 <= PIECES, "no more holds than pieces"),
            (after.holds.values().all(|(id, _)| !id.is_empty()), "every hold has an end and an id"),
            (!after.holds.keys().any(|user| after.bought.contains_key(user)), "a user who has bought holds nothing"),
            (after.sold <= PIECES, "no more are sold than there are"),
        ] {
            if !holds {
                return Err(format!("broken: {rule}: {after:?}"));
            }
        }
        Ok(())
    }
}

/// Invariants after all actors have ended.
pub fn at_rest(state: &State) -> Result<(), String> {
    for (holds, rule) in [
        (state.login.keys().eq(state.recent.keys()), "login: and recent: name the same sessions"),
        (state.ended.is_empty(), "no ended login is left"),
        (state.carts.keys().all(|token| state.login.contains_key(token)), "no cart without login"),
        (state.viewed.keys().all(|token| state.login.contains_key(token)), "no viewed items without login"),
    ] {
        if !holds {
            return Err(format!("broken: {rule}: {state:?}"));
        }
    }
    Ok(())
}

/// A login of `user`: the session `new` replaces the session `old`.
struct Login<'a> {
    old: Option<&'a Token>,
    new: &'a str,
    user: &'a str,
}

/// A visitor of the sale; `user` is empty for a guest.
struct Buyer<'a> {
    user: &'a str,
    token: &'a str,
}

/// A write of an item to a cart.
struct CartChange<'a> {
    token: Option<&'a Token>,
    item: &'a str,
    quantity: u32,
    adds: bool,
}
