//! Sessions: activity, cart writes, login, logout on all devices, and overlapping cleanups.
//!
//! One script is one atomic step, so the interleavings are those of script calls. These take more than one step:
//! an isolate records activity in memory and writes it later; a cleanup reads scores and then ends sessions; a logout on
//! all devices ends the logins and then deletes the data; a visitor whose reply was lost repeats the request.

use stateright::{Model, Property};

use crate::Protocol;

/// A session is live until it was not seen for more than this time.
pub const IDLE: u8 = 2;
/// The cleanup keeps this number of sessions.
pub const LIMIT: usize = 1;
/// The most tokens that a run draws.
const TOKENS: usize = 3;

/// A token, as the number of its draw.
pub type Token = u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum User {
    Guest,
    Ada,
    Bob,
}

/// Pieces in a cart, by the user who put them there.
pub type Cart = [u8; 3];

/// Everything that Redis holds for one token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Session {
    /// In `login:`.
    pub user: Option<User>,
    /// In `login:` under `ended:`, after the login has ended and before the data is deleted.
    pub ended: Option<User>,
    /// In `recent:`.
    pub seen: Option<u8>,
    /// `cart:`.
    pub cart: Cart,
    /// In `sessions:` of this user.
    pub listed: Option<User>,
}

/// A session that a cleanup has read, and its score.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Victims {
    sessions: Vec<(Token, u8)>,
    cutoff: u8,
    /// All of them were idle when they were read.
    are_idle: bool,
}

/// A request whose reply was lost. The visitor repeats it or gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lost {
    /// `is_noted`: the idempotency key is stored.
    Add { token: Token, is_noted: bool },
    LogIn { old: Token, user: User },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub now: u8,
    pub sessions: [Session; TOKENS],
    pub drawn: u8,
    /// `abandoned:`, sorted.
    pub abandoned: Vec<(Option<User>, Cart)>,
    /// `once:` of a login: the token that replaced this one.
    followers: [Option<Token>; TOKENS],
    /// An activity in an isolate's memory, with its time.
    activity: Option<(Token, u8)>,
    cleanups: [Option<Victims>; 2],
    /// Sessions of a user whose logins a logout on all devices has ended.
    ended: Option<(User, Vec<Token>)>,
    lost: Option<Lost>,
    left: Bounds,
    /// The last time at which the visitor of a live session did something.
    active: [u8; TOKENS],
    /// The last activity that an executed request recorded.
    recorded: [u8; TOKENS],
    /// The session was ended by a logout, a login or a cleanup.
    is_over: [bool; TOKENS],
    /// The user of each session, even if its login has ended.
    owners: [Option<User>; TOKENS],
    /// Requests that put a piece into a cart, and requests to log in.
    adds: u8,
    logins: u8,
    /// Pieces that carts have accepted.
    accepted: u8,
    wrong: Option<Wrong>,
}

/// What happens at most how often in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    activities: u8,
    adds: u8,
    logins: u8,
    logouts: u8,
    device_logouts: u8,
    lost_replies: u8,
    crashes: u8,
    hours: u8,
}

/// A transition that must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    EndedAfterActivity,
    EndedBelowLimit,
    MovedExpiredCart,
    NamedAnotherOwner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A visitor does something; the isolate records it in its memory.
    Act(Token),
    /// The isolate writes the recorded activity: the script `touch`.
    WriteActivity,
    /// The platform ends the isolate. The recorded activity is lost.
    EvictIsolate,
    /// A visitor puts a piece into the cart; without a live session a guest's session begins.
    Add { token: Option<Token>, is_reply_lost: bool },
    LogIn { old: Option<Token>, user: User, is_reply_lost: bool },
    /// The visitor repeats the request whose reply was lost, unchanged.
    Repeat,
    GiveUp,
    LogOut(Token),
    /// The first step of a logout on all devices: ends the logins.
    EndLogins(Token),
    /// Its second step: deletes the data.
    DeleteData,
    /// The platform ends the isolate before the second step.
    DropDeletion,
    /// A cleanup reads the sessions to end.
    ReadVictims(usize),
    /// It ends them, unless they were seen meanwhile.
    EndVictims(usize),
    DropCleanup(usize),
    /// Time passes.
    Wait,
}

/// The rules of the scripts. Each can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `check`: a session without recent activity is not live.
    LiveNeedsActivity,
    /// `touch` writes nothing for a session without a login.
    TouchNeedsLogin,
    /// `touch` writes nothing for an idle session.
    TouchNeedsActivity,
    /// `touch` cannot move a session back in time.
    TouchOnlyForward,
    /// `cart_write` checks that the session is live.
    AddNeedsLiveSession,
    /// `cart_write` records activity.
    AddRecordsActivity,
    /// `cart_write` knows the idempotency keys of a session.
    AddOncePerKey,
    /// A new guest's session is in `recent:`.
    GuestIsInRecent,
    /// `log_in` ends the old session.
    LoginEndsOldSession,
    /// `log_in` moves the cart of a guest or of the same user to the new session.
    LoginMovesCart,
    /// `log_in` abandons the cart of another user.
    LoginAbandonsForeignCart,
    /// `log_in` leaves an expired session to the cleanup.
    LoginLeavesExpiredSession,
    /// `log_in` returns the session that an earlier attempt with the same old token began.
    LoginOncePerOldToken,
    /// `end_logins` keeps the user of the cart.
    EndLoginsKeepsOwner,
    /// `end_logins` leaves the session in `recent:`, where the cleanup finds the data.
    EndLoginsKeepsRecent,
    /// `end_logins` ends every listed login.
    EndLoginsEndsAll,
    /// `reap` spares a session whose score has changed.
    ReapChecksScore,
    /// `reap` counts the sessions over the limit itself.
    ReapChecksLimit,
    /// `reap` ends the login.
    ReapEndsLogin,
    /// `reap` deletes the cart.
    ReapDeletesCart,
    /// `reap` records the cart as abandoned.
    ReapRecordsCart,
    /// `reap` deletes the note of an ended login.
    ReapDeletesNote,
    /// The cleanup reads idle sessions below the limit, too.
    CleanupReadsIdle,
    /// The cleanup reads sessions over the limit.
    CleanupReadsOverLimit,
}

/// The model: the bounds of a run, and the rule that is off.
#[derive(Debug, Clone)]
pub struct Sessions {
    bounds: Bounds,
    off: Option<Rule>,
}

const NOTHING: Bounds = Bounds {
    activities: 0,
    adds: 0,
    logins: 0,
    logouts: 0,
    device_logouts: 0,
    lost_replies: 0,
    crashes: 0,
    hours: 0,
};

impl Sessions {
    /// Guests and users who log in and out, with lost replies.
    #[must_use]
    pub const fn visitors() -> Self {
        let bounds = Bounds { adds: 2, logins: 2, logouts: 1, lost_replies: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    /// A logout on all of two devices, which may stop half-way, and cleanups.
    #[must_use]
    pub const fn devices() -> Self {
        let bounds = Bounds { adds: 1, logins: 2, device_logouts: 1, crashes: 1, hours: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    /// A logout on all devices while an isolate has an activity in memory.
    #[must_use]
    pub const fn late_activity() -> Self {
        let bounds = Bounds { activities: 1, adds: 1, logins: 1, device_logouts: 1, crashes: 1, hours: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    /// Overlapping cleanups of more sessions than the limit.
    #[must_use]
    pub const fn cleanups() -> Self {
        let bounds = Bounds { activities: 2, adds: 3, crashes: 1, hours: 1, ..NOTHING };
        Self { bounds, off: None }
    }

    fn has(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

    /// `check`: the session's user.
    fn live_user(&self, state: &State, token: Token, now: u8) -> Option<User> {
        let Session { user, seen, .. } = state.sessions[usize::from(token)];
        let is_seen = seen.is_some_and(|seen| seen + IDLE >= now) || !self.has(Rule::LiveNeedsActivity);
        user.filter(|_| is_seen)
    }

    /// The script `touch`.
    fn touch(&self, state: &mut State, token: Token, at: u8) {
        let session = &mut state.sessions[usize::from(token)];
        let is_seen = session.seen.is_some_and(|seen| seen + IDLE >= at) || !self.has(Rule::TouchNeedsActivity);
        if (session.user.is_none() && self.has(Rule::TouchNeedsLogin)) || !is_seen {
            return;
        }
        let forward = self.has(Rule::TouchOnlyForward);
        session.seen = Some(session.seen.filter(|_| forward).map_or(at, |seen| seen.max(at)));
        let recorded = &mut state.recorded[usize::from(token)];
        *recorded = at.max(*recorded);
    }

    /// The script `cart_write`. Returns whether it stored the idempotency key.
    fn add(&self, state: &mut State, token: Option<Token>, is_noted: bool) -> Option<bool> {
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
    fn log_in(&self, state: &mut State, old: Option<Token>, user: User) -> Option<()> {
        if let Some(old) = old {
            let known = state.followers[usize::from(old)];
            let is_current = |known: &Token| state.sessions[usize::from(*known)].user == Some(user);
            if known.filter(is_current).is_some() && self.has(Rule::LoginOncePerOldToken) {
                return Some(());
            }
        }
        let new = state.draw(user)?;
        let now = state.now;
        let mut cart = Cart::default();
        if let Some(old) = old {
            state.followers[usize::from(old)] = Some(new);
            let session = state.sessions[usize::from(old)];
            let is_live = session.seen.is_some_and(|seen| seen + IDLE >= now);
            if let Some(owner) = session.user.filter(|_| is_live || !self.has(Rule::LoginLeavesExpiredSession)) {
                let is_own = owner == User::Guest || owner == user || !self.has(Rule::LoginAbandonsForeignCart);
                if is_own && self.has(Rule::LoginMovesCart) {
                    cart = session.cart;
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
                state.is_over[usize::from(old)] = true;
            }
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

    /// The script `end_logins` for all devices, on behalf of the live session `own`.
    fn end_logins(&self, state: &mut State, own: Token, user: User) -> Vec<Token> {
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

    /// The script `reap`. `read`: the score that the caller read, `None` to end the session in any case. `whose`: the
    /// sessions' user, if known.
    fn reap(&self, state: &mut State, targets: &[(Token, Option<u8>)], cutoff: u8, limit: usize, whose: Option<User>) {
        let count = state.sessions.iter().filter(|session| session.seen.is_some()).count();
        let mut over = count.saturating_sub(limit);
        for (token, read) in targets {
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
            state.is_over[index] = true;
        }
    }

    /// The sessions that a cleanup would end now, oldest first.
    fn victims(&self, state: &State) -> Victims {
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
    fn draw(&mut self, user: User) -> Option<Token> {
        let token = self.drawn;
        if usize::from(token) == TOKENS {
            return None;
        }
        self.drawn += 1;
        self.owners[usize::from(token)] = Some(user);
        self.active[usize::from(token)] = self.now;
        self.recorded[usize::from(token)] = self.now;
        Some(token)
    }

    fn abandon(&mut self, owner: Option<User>, cart: Cart) {
        if cart != Cart::default() {
            self.abandoned.push((owner, cart));
            self.abandoned.sort_unstable();
        }
    }

    fn pieces(&self) -> u8 {
        let carts = self.sessions.iter().map(|session| session.cart);
        carts.chain(self.abandoned.iter().map(|(_, cart)| *cart)).flatten().sum()
    }
}

impl Model for Sessions {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            // Later than the idle time, so that no time is negative.
            now: IDLE,
            sessions: Default::default(),
            drawn: 0,
            abandoned: Vec::new(),
            followers: Default::default(),
            activity: None,
            cleanups: Default::default(),
            ended: None,
            lost: None,
            left: self.bounds,
            active: Default::default(),
            recorded: Default::default(),
            is_over: Default::default(),
            owners: Default::default(),
            adds: 0,
            logins: 0,
            accepted: 0,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        let can_draw = usize::from(state.drawn) < TOKENS;
        let may_lose = [false, true].into_iter().take(if left.lost_replies > 0 { 2 } else { 1 });
        let is_waiting = state.lost.is_some();
        for token in 0..state.drawn {
            if left.activities > 0 && state.activity.is_none() {
                actions.push(Action::Act(token));
            }
            if left.logouts > 0 {
                actions.push(Action::LogOut(token));
            }
            if left.device_logouts > 0
                && state.ended.is_none()
                && self.live_user(state, token, state.now).is_some_and(|user| user != User::Guest)
            {
                actions.push(Action::EndLogins(token));
            }
        }
        for token in (0..state.drawn).map(Some).chain([None]) {
            for is_reply_lost in may_lose.clone() {
                let has_key = token.is_some() || !is_reply_lost;
                if left.adds > 0 && can_draw && !is_waiting && has_key {
                    actions.push(Action::Add { token, is_reply_lost });
                }
                for user in [User::Ada, User::Bob] {
                    if left.logins > 0 && can_draw && !is_waiting && has_key {
                        actions.push(Action::LogIn { old: token, user, is_reply_lost });
                    }
                }
            }
        }
        if state.activity.is_some() {
            actions.push(Action::WriteActivity);
            if left.crashes > 0 {
                actions.push(Action::EvictIsolate);
            }
        }
        if is_waiting {
            if can_draw {
                actions.push(Action::Repeat);
            }
            actions.push(Action::GiveUp);
        }
        if state.ended.is_some() {
            actions.push(Action::DeleteData);
            if left.crashes > 0 {
                actions.push(Action::DropDeletion);
            }
        }
        for (number, cleanup) in state.cleanups.iter().enumerate() {
            match cleanup {
                // The second one runs only beside the first.
                None if number > 0 && state.cleanups[0].is_none() => {}
                None if self.victims(state).sessions.is_empty() => {}
                None => actions.push(Action::ReadVictims(number)),
                Some(_) => {
                    actions.push(Action::EndVictims(number));
                    if left.crashes > 0 {
                        actions.push(Action::DropCleanup(number));
                    }
                }
            }
        }
        if left.hours > 0 {
            actions.push(Action::Wait);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        // Every activity takes time, so no two sessions have the same score.
        if matches!(action, Action::Act(_) | Action::Add { .. } | Action::LogIn { .. } | Action::Repeat) {
            state.now += 1;
        }
        match action {
            Action::Act(token) => {
                state.left.activities -= 1;
                state.activity = Some((token, state.now));
                let index = usize::from(token);
                if state.sessions[index].user.is_some() && state.active[index] + IDLE >= state.now {
                    state.active[index] = state.now;
                }
            }
            Action::WriteActivity => {
                let (token, at) = state.activity.take()?;
                self.touch(&mut state, token, at);
            }
            Action::EvictIsolate => {
                state.left.crashes -= 1;
                state.activity = None;
            }
            Action::Add { token, is_reply_lost } => {
                state.left.adds -= 1;
                state.adds += 1;
                let is_noted = self.add(&mut state, token, false)?;
                if is_reply_lost {
                    state.left.lost_replies -= 1;
                    state.lost = token.map(|token| Lost::Add { token, is_noted });
                }
            }
            Action::LogIn { old, user, is_reply_lost } => {
                state.left.logins -= 1;
                state.logins += 1;
                self.log_in(&mut state, old, user)?;
                if is_reply_lost {
                    state.left.lost_replies -= 1;
                    state.lost = old.map(|old| Lost::LogIn { old, user });
                }
            }
            Action::Repeat => match state.lost.take()? {
                Lost::Add { token, is_noted } => {
                    self.add(&mut state, Some(token), is_noted)?;
                }
                Lost::LogIn { old, user } => self.log_in(&mut state, Some(old), user)?,
            },
            Action::GiveUp => state.lost = None,
            Action::LogOut(token) => {
                state.left.logouts -= 1;
                let cutoff = state.now - IDLE;
                self.reap(&mut state, &[(token, None)], cutoff, LIMIT, None);
            }
            Action::EndLogins(own) => {
                state.left.device_logouts -= 1;
                let user = self.live_user(&state, own, state.now)?;
                let tokens = self.end_logins(&mut state, own, user);
                state.ended = Some((user, tokens));
            }
            Action::DeleteData => {
                let (user, tokens) = state.ended.take()?;
                let targets: Vec<_> = tokens.into_iter().map(|token| (token, None)).collect();
                let cutoff = state.now - IDLE;
                self.reap(&mut state, &targets, cutoff, LIMIT, Some(user));
            }
            Action::DropDeletion => {
                state.left.crashes -= 1;
                state.ended = None;
            }
            Action::ReadVictims(number) => state.cleanups[number] = Some(self.victims(&state)),
            Action::EndVictims(number) => {
                let victims = state.cleanups[number].take()?;
                let targets: Vec<_> = victims.sessions.iter().map(|(token, seen)| (*token, Some(*seen))).collect();
                let limit = if victims.are_idle { 0 } else { LIMIT };
                self.reap(&mut state, &targets, victims.cutoff, limit, None);
            }
            Action::DropCleanup(number) => {
                state.left.crashes -= 1;
                state.cleanups[number] = None;
            }
            Action::Wait => {
                state.left.hours -= 1;
                state.now += 1;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a session that was ended stays ended", |_, state: &State| {
                (0..TOKENS).all(|token| !state.is_over[token] || state.sessions[token].user.is_none())
            }),
            Property::always("a session lives by recent activity of its visitor only", |model: &Self, state: &State| {
                (0..state.drawn).all(|token| {
                    let index = usize::from(token);
                    let is_live = model.live_user(state, token, state.now).is_some();
                    let seen = state.sessions[index].seen.unwrap_or_default();
                    seen <= state.active[index] && (!is_live || state.active[index] + IDLE >= state.now)
                })
            }),
            Property::always("recent: has the latest recorded activity of every session", |_, state: &State| {
                (0..TOKENS).all(|token| state.sessions[token].seen.is_none_or(|seen| seen == state.recorded[token]))
            }),
            Property::always("the cleanup can see every login and every cart", |_, state: &State| {
                let needs = |session: &Session| session.user.is_some() || session.cart != Cart::default();
                state.sessions.iter().all(|session| !needs(session) || session.seen.is_some())
            }),
            Property::always("an activity after the cleanup's read saves the session", |_, state: &State| {
                state.wrong != Some(Wrong::EndedAfterActivity)
            }),
            Property::always("overlapping cleanups keep as many sessions as the limit", |_, state: &State| {
                state.wrong != Some(Wrong::EndedBelowLimit)
            }),
            Property::always("every accepted piece is in a cart or recorded as abandoned", |_, state: &State| {
                state.pieces() == state.accepted
            }),
            Property::always("a request puts at most one piece into a cart", |_, state: &State| {
                state.sessions.iter().all(|session| session.cart.iter().sum::<u8>() <= state.adds)
            }),
            Property::always("no user gets the pieces of another user", |_, state: &State| {
                state.sessions.iter().all(|session| match session.user {
                    Some(User::Ada) => session.cart[User::Bob as usize] == 0,
                    Some(User::Bob) => session.cart[User::Ada as usize] == 0,
                    _ => session.cart[User::Ada as usize] + session.cart[User::Bob as usize] == 0 || session.user.is_none(),
                })
            }),
            Property::always("the cart of an expired session is only recorded as abandoned", |_, state: &State| {
                state.wrong != Some(Wrong::MovedExpiredCart)
            }),
            Property::always("an abandoned cart has the name of its owner", |_, state: &State| {
                state.wrong != Some(Wrong::NamedAnotherOwner)
            }),
            Property::always("a repeated login starts no second session", |_, state: &State| {
                let has_user = |session: &&Session| session.user.is_some_and(|user| user != User::Guest);
                state.sessions.iter().filter(has_user).count() <= usize::from(state.logins)
            }),
            Property::eventually("at rest, no session is idle or over the limit, and nothing of an ended one is left", |model: &Self, state: &State| {
                let seen = state.sessions.iter().filter(|session| session.seen.is_some()).count();
                let is_clean = |session: &Session| match session.seen {
                    Some(seen) => seen + IDLE >= state.now,
                    None => session.user.is_none() && session.ended.is_none() && session.cart == Cart::default(),
                };
                model.is_at_rest(state) && seen <= LIMIT && state.sessions.iter().all(is_clean)
            }),
        ]
    }
}

impl Protocol for Sessions {
    type Rule = Rule;
    const RULES: &'static [Rule] = &[
        Rule::LiveNeedsActivity,
        Rule::TouchNeedsLogin,
        Rule::TouchNeedsActivity,
        Rule::TouchOnlyForward,
        Rule::AddNeedsLiveSession,
        Rule::AddRecordsActivity,
        Rule::AddOncePerKey,
        Rule::GuestIsInRecent,
        Rule::LoginEndsOldSession,
        Rule::LoginMovesCart,
        Rule::LoginAbandonsForeignCart,
        Rule::LoginLeavesExpiredSession,
        Rule::LoginOncePerOldToken,
        Rule::EndLoginsKeepsOwner,
        Rule::EndLoginsKeepsRecent,
        Rule::EndLoginsEndsAll,
        Rule::ReapChecksScore,
        Rule::ReapChecksLimit,
        Rule::ReapEndsLogin,
        Rule::ReapDeletesCart,
        Rule::ReapRecordsCart,
        Rule::ReapDeletesNote,
        Rule::CleanupReadsIdle,
        Rule::CleanupReadsOverLimit,
    ];

    fn all_bounds() -> Vec<Self> {
        vec![Self::visitors(), Self::devices(), Self::late_activity(), Self::cleanups()]
    }

    fn without(self, rule: Rule) -> Self {
        Self { off: Some(rule), ..self }
    }
}
