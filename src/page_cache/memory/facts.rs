//! Facts of sessions that fill holes, kept for two seconds. A visitor's own change reaches the next page in any
//! isolate. The response to the change sets a cookie that lives as long as a kept fact
//! ([`cookie::changed`](crate::sessions::cookie::changed)). A visitor with this cookie gets the facts from Redis.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use http::HeaderValue;

use crate::{
    ports::time::Timestamp,
    schema::{ids::UserId, token::Token},
    sessions::cookie::CHANGED_FOR,
};

/// Largest number of sessions with kept facts.
const MAX_SESSIONS: usize = 5_000;

/// The facts of a session that fill holes. The default is that of a visitor without a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFacts {
    pub user: Option<UserId>,
    /// The number of pieces in the cart.
    pub pieces: u64,
}

/// See the [module](self).
#[derive(Default)]
pub struct FactMemory {
    known: RefCell<HashMap<Token, KeptFacts>>,
}

struct KeptFacts {
    facts: Rc<SessionFacts>,
    read: Timestamp,
    /// The sync token that the read sent: a read without it may have got an earlier state from a read region.
    sync: Option<HeaderValue>,
}

impl FactMemory {
    /// The facts that Redis returned a moment ago to a read with the sync token `sync`.
    #[must_use]
    pub fn get(&self, token: &Token, sync: Option<&HeaderValue>, now: Timestamp) -> Option<Rc<SessionFacts>> {
        let known = self.known.borrow();
        let known = known.get(token)?;
        let is_current = now.is_within(CHANGED_FOR, known.read) && known.sync.as_ref() == sync;
        is_current.then(|| known.facts.clone())
    }

    /// Keeps facts that Redis returned to a read at `read` with the sync token `sync`.
    pub fn keep(&self, token: &Token, facts: Rc<SessionFacts>, sync: Option<HeaderValue>, read: Timestamp) {
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_SESSIONS {
            known.retain(|_, known| read.is_within(CHANGED_FOR, known.read));
            if known.len() >= MAX_SESSIONS {
                known.clear();
            }
        }
        known.insert(token.clone(), KeptFacts { facts, read, sync });
    }

    /// Drops the facts of a session that may have changed.
    pub fn forget(&self, token: &Token) {
        self.known.borrow_mut().remove(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::token::Token;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    #[test]
    fn facts_are_kept_for_two_seconds_and_until_a_change() {
        let memory = FactMemory::default();
        let token = Token::parse("AGr9hsAAAQIDBAUGBwgJCgsMDQ4P").unwrap();
        let facts = Rc::new(SessionFacts { user: None, pieces: 3 });
        memory.keep(&token, facts.clone(), None, START);
        assert_eq!(memory.get(&token, None, START), Some(facts.clone()));
        assert_eq!(memory.get(&token, None, START + CHANGED_FOR), None);
        assert_eq!(
            memory.get(&token, None, Timestamp::from_millis(START.as_millis() - 1)),
            None,
            "a clock that was set back"
        );
        memory.forget(&token);
        assert_eq!(memory.get(&token, None, START), None);
    }

    #[test]
    fn facts_are_for_reads_with_the_same_sync_token() {
        let memory = FactMemory::default();
        let token = Token::parse("AGr9hsAAAQIDBAUGBwgJCgsMDQ4P").unwrap();
        let facts = Rc::new(SessionFacts { user: None, pieces: 3 });
        let sync = HeaderValue::from_static("2");
        memory.keep(&token, facts.clone(), None, START);
        assert_eq!(memory.get(&token, Some(&sync), START), None);
        memory.keep(&token, facts.clone(), Some(sync.clone()), START);
        assert_eq!((memory.get(&token, Some(&sync), START), memory.get(&token, None, START)), (Some(facts), None));
    }
}
