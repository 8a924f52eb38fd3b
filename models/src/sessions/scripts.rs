//! The scripts as the model has them, and the code around them.

use super::{Cart, Checkout, IDLE, LIMIT, Rule, Session, Sessions, State, TOKENS, Token, User, Victims, Wrong, YOUNG};

/// The arguments of the script `reap`.
struct Targets<'a> {
    /// Each with the score that the caller read; `None` ends the session in any case.
    sessions: &'a [(Token, Option<u8>)],
    cutoff: u8,
    limit: usize,
    user: Option<User>,
}

impl Sessions {
    /// `check`: the session's user.
    pub(super) fn live_user(&self, state: &State, token: Token, now: u8) -> Option<User> {
        let Session { user, seen, .. } = state.sessions[usize::from(token)];
        let is_seen = seen.is_some_and(|seen| seen + IDLE >= now) || !self.has(Rule::LiveNeedsActivity);
        user.filter(|_| state.is_young(token, now) || is_seen)
    }

    /// The script `touch`.
    pub(super) fn touch(&self, state: &mut State, token: Token, at: u8) {
        let is_young = state.is_young(token, at);
        let session = &mut state.sessions[usize::from(token)];
        let is_idle = session.seen.is_none_or(|seen| seen + IDLE < at) && self.has(Rule::TouchNeedsActivity);
        if (session.user.is_none() && self.has(Rule::TouchNeedsLogin)) || (is_idle && !is_young) {
            return;
        }
        let forward = self.has(Rule::TouchOnlyForward);
        session.seen = Some(session.seen.filter(|_| forward).map_or(at, |seen| seen.max(at)));
        let recorded = &mut state.recorded[usize::from(token)];
        *recorded = at.max(*recorded);
    }

    /// The script `cart_write`, more than ten seconds after a login. Returns whether it stored the idempotency key.
    pub(super) fn add(&self, state: &mut State, token: Option<Token>, is_noted: bool) -> Option<bool> {
        let lives = |token: &Token| {
            let is_live = self.live_user(state, *token, state.now).is_some();
            is_live || !self.has(Rule::AddNeedsLiveSession)
        };
        if let Some(token) = token.filter(lives) {
            if is_noted && self.has(Rule::AddOncePerKey) {
                return Some(true);
            }
            let now = state.now;
            let session = &mut state.sessions[usize::from(token)];
            session.cart[session.user.unwrap_or(User::Guest) as usize] += 1;
            state.accepted += 1;
            if self.has(Rule::AddRecordsActivity) {
                session.seen = Some(session.seen.map_or(now, |seen| seen.max(now)));
            }
            state.recorded[usize::from(token)] = now;
            state.active[usize::from(token)] = now;
            return Some(true);
        }
        let fresh = state.draw(User::Guest)?;
        let is_listed = self.has(Rule::GuestIsInRecent);
        let seen = is_listed.then_some(state.now);
        state.sessions[usize::from(fresh)] =
            Session { user: Some(User::Guest), seen, cart: [1, 0, 0], ..Session::default() };
        state.accepted += 1;
        Some(false)
    }

    /// The script `log_in`.
    pub(super) fn log_in(&self, state: &mut State, old: Option<Token>, user: User) -> Option<()> {
        if let Some(old) = old {
            let known = state.followers[usize::from(old)].map(|(known, _)| known);
            let is_current = |known: &Token| {
                let Session { user: owner, seen, .. } = state.sessions[usize::from(*known)];
                owner == Some(user) && seen.is_some_and(|seen| seen + IDLE >= state.now)
            };
            if known.as_ref().is_some_and(is_current) && self.has(Rule::LoginOncePerOldToken) {
                return Some(());
            }
        }
        let new = state.draw(user)?;
        let now = state.now;
        let mut cart = Cart::default();
        if let Some(old) = old {
            let before = state.followers[usize::from(old)].filter(|_| self.has(Rule::LoginKeepsPlaceOfCart));
            let mut place = before.and_then(|(_, place)| place);
            let session = state.sessions[usize::from(old)];
            let is_live = session.seen.is_some_and(|seen| seen + IDLE >= now);
            if let Some(owner) = session.user.filter(|_| is_live || !self.has(Rule::LoginLeavesExpiredSession)) {
                let is_own = owner == User::Guest || owner == user || !self.has(Rule::LoginAbandonsForeignCart);
                if is_own && self.has(Rule::LoginMovesCart) {
                    (cart, place) = (session.cart, Some(new));
                    state.move_place(old, Some(new));
                    if session.cart != Cart::default() && !is_live {
                        state.wrong = Some(Wrong::MovedExpiredCart);
                    }
                } else if !is_own {
                    state.abandon(Some(owner), session.cart);
                }
                let session = &mut state.sessions[usize::from(old)];
                session.cart = Cart::default();
                if self.has(Rule::LoginEndsOldSession) {
                    (session.user, session.seen) = (None, None);
                }
                state.move_place(old, None);
                state.is_over[usize::from(old)] = true;
            }
            state.followers[usize::from(old)] = Some((new, place));
        }
        for session in &mut state.sessions {
            if session.user.is_none() && session.listed == Some(user) {
                session.listed = None;
            }
        }
        let session = Session { user: Some(user), seen: Some(now), cart, listed: Some(user), ended: None };
        state.sessions[usize::from(new)] = session;
        Some(())
    }

    /// The script `buy`, and the code that calls it again for another session. Returns whether the order is settled.
    pub(super) fn buy(&self, state: &mut State, order: &mut Checkout) -> bool {
        if state.is_ordered && self.has(Rule::BuyOncePerOrder) {
            return true;
        }
        let index = usize::from(order.next);
        let cart = &mut state.sessions[index].cart;
        if let Some(pieces) = cart.iter_mut().find(|pieces| **pieces > 0) {
            *pieces -= 1;
            state.bought += 1;
            if order.place != Some(order.next) {
                state.wrong = Some(Wrong::OrderTookFromAnotherCart);
            }
        } else if let Some((newest, place)) = state.followers[index]
            && let Some(follower) = place.or_else(|| (!self.has(Rule::BuyFollowsCartOnly)).then_some(newest))
            && self.has(Rule::BuyFollowsLogin)
        {
            order.next = follower;
            return false;
        } else if order.place.is_some_and(|place| state.sessions[usize::from(place)].cart != Cart::default()) {
            state.wrong = Some(Wrong::OrderMissedItsCart);
        }
        state.is_ordered = true;
        true
    }

    /// The script `end_logins` for all devices, on behalf of the live session `own`.
    pub(super) fn end_logins(&self, state: &mut State, own: Token, user: User) -> Vec<Token> {
        let is_listed = |token: &Token| *token != own && state.sessions[usize::from(*token)].listed == Some(user);
        let tokens: Vec<Token> = (0..state.drawn).filter(is_listed).chain([own]).collect();
        for token in &tokens {
            let session = &mut state.sessions[usize::from(*token)];
            if session.user != Some(user) || (*token != own && !self.has(Rule::EndLoginsEndsAll)) {
                continue;
            }
            session.user = None;
            session.ended = Some(user).filter(|_| self.has(Rule::EndLoginsKeepsOwner));
            if !self.has(Rule::EndLoginsKeepsRecent) {
                session.seen = None;
            }
        }
        for token in &tokens {
            state.is_over[usize::from(*token)] = true;
        }
        tokens
    }

    /// The script `reap`, for a cleanup.
    pub(super) fn end_victims(&self, state: &mut State, victims: &Victims) {
        let targets: Vec<_> = victims.sessions.iter().map(|(token, seen)| (*token, Some(*seen))).collect();
        let limit = if victims.are_idle { 0 } else { LIMIT };
        self.reap(state, &Targets { sessions: &targets, cutoff: victims.cutoff, limit, user: None });
    }

    /// The script `reap`, for a logout. `user`: the sessions' user, if known.
    pub(super) fn log_out(&self, state: &mut State, tokens: &[Token], user: Option<User>) {
        let targets: Vec<_> = tokens.iter().map(|token| (*token, None)).collect();
        self.reap(state, &Targets { sessions: &targets, cutoff: state.now - IDLE, limit: LIMIT, user });
    }

    fn reap(&self, state: &mut State, targets: &Targets<'_>) {
        let Targets { sessions, cutoff, limit, user: whose } = *targets;
        let count = state.sessions.iter().filter(|session| session.seen.is_some()).count();
        let mut over = count.saturating_sub(limit);
        for (token, read) in sessions {
            let index = usize::from(*token);
            let session = state.sessions[index];
            let is_unchanged = session.seen.is_some() && (session.seen == *read || !self.has(Rule::ReapChecksScore));
            let is_idle = session.seen.is_some_and(|seen| seen < cutoff);
            let is_due = over > 0 || is_idle || !self.has(Rule::ReapChecksLimit);
            if read.is_some() && !(is_unchanged && is_due) {
                continue;
            }
            if let Some(read) = read {
                if state.recorded[index] > *read {
                    state.wrong = Some(Wrong::EndedAfterActivity);
                }
                let live = state.sessions.iter().filter(|session| session.seen.is_some()).count();
                if !is_idle && live <= LIMIT {
                    state.wrong = Some(Wrong::EndedBelowLimit);
                }
            }
            if self.has(Rule::ReapRecordsCart) {
                let owner = session.user.or(session.ended).or(whose);
                if session.cart != Cart::default() && owner != state.owners[index] {
                    state.wrong = Some(Wrong::NamedAnotherOwner);
                }
                state.abandon(owner, session.cart);
            }
            over = over.saturating_sub(usize::from(session.seen.is_some()));
            let cart = if self.has(Rule::ReapDeletesCart) { Cart::default() } else { session.cart };
            state.sessions[index] = Session {
                user: session.user.filter(|_| !self.has(Rule::ReapEndsLogin)),
                ended: session.ended.filter(|_| !self.has(Rule::ReapDeletesNote)),
                seen: None,
                cart,
                listed: session.listed.filter(|_| whose.is_none()),
            };
            state.move_place(*token, None);
            state.is_over[index] = true;
        }
    }

    /// The sessions that a cleanup would end now, oldest first.
    pub(super) fn victims(&self, state: &State) -> Victims {
        let cutoff = state.now.saturating_sub(IDLE);
        let mut oldest: Vec<(u8, Token)> =
            (0..state.drawn).filter_map(|token| Some((state.sessions[usize::from(token)].seen?, token))).collect();
        oldest.sort_unstable();
        let over = oldest.len().saturating_sub(LIMIT);
        let is_victim = |(position, (seen, _)): &(usize, (u8, Token))| {
            (*position < over && self.has(Rule::CleanupReadsOverLimit))
                || (*seen < cutoff && self.has(Rule::CleanupReadsIdle))
        };
        let sessions: Vec<_> =
            oldest.into_iter().enumerate().take_while(is_victim).map(|(_, (seen, token))| (token, seen)).collect();
        let are_idle = sessions.iter().all(|(_, seen)| *seen < cutoff);
        Victims { sessions, cutoff, are_idle }
    }
}

impl State {
    pub(super) fn draw(&mut self, user: User) -> Option<Token> {
        let token = self.drawn;
        if usize::from(token) == TOKENS {
            return None;
        }
        self.drawn += 1;
        self.began[usize::from(token)] = self.now;
        self.owners[usize::from(token)] = Some(user);
        self.active[usize::from(token)] = self.now;
        self.recorded[usize::from(token)] = self.now;
        Some(token)
    }

    fn is_young(&self, token: Token, now: u8) -> bool {
        self.began[usize::from(token)] + YOUNG >= now
    }

    /// The cart of `from` is the cart of `to` from now on.
    fn move_place(&mut self, from: Token, to: Option<Token>) {
        if let Some(order) = self.order.as_mut().filter(|order| order.place == Some(from)) {
            order.place = to;
        }
    }

    pub(super) fn abandon(&mut self, owner: Option<User>, cart: Cart) {
        if cart != Cart::default() {
            self.abandoned.push((owner, cart));
            self.abandoned.sort_unstable();
        }
    }

    pub(super) fn pieces(&self) -> u8 {
        let carts = self.sessions.iter().map(|session| session.cart);
        carts.chain(self.abandoned.iter().map(|(_, cart)| *cart)).flatten().sum()
    }
}
