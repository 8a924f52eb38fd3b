//! Copies of pages that Redis holds, in bounded space. For `PAGE_MEMORY` after Redis was asked for it, a copy answers by itself: so long
//! a purge may take to reach an isolate that did not pass it. After that it only stands in where Redis is silent.
//!
//! What was not used while half of the space filled up with others makes room: two generations, which is the order of last use in coarse
//! steps, at the price of a move.

use std::{
    cell::{Cell, LazyCell},
    collections::{HashMap, hash_map::Entry as Slot},
    rc::Rc,
    time::Duration,
};

use http::{HeaderValue, header};

use super::super::{entry::Entry, vary::Selecting};
use crate::ports::{fetch::PreparedBody, time::Timestamp};

/// Copies, and bytes of their bodies, at the most. An isolate has 128 MB.
const MOST_COPIES: usize = 2_000;
const MOST_BYTES: usize = 24 << 20;
/// URLs that are remembered as voided while others asked for them.
const MOST_VOIDED: usize = 1_000;

/// The copies of an isolate.
pub struct Copies {
    span: Duration,
    young: Generation,
    old: Generation,
    /// Counts what voids a page.
    clock: u64,
    /// When each URL was voided, by [`Copies::clock`], and when all were.
    voided: HashMap<String, u64>,
    all_voided: u64,
}

/// Copies by their page's hash; variants of one page side by side.
#[derive(Default)]
struct Generation {
    pages: HashMap<String, Vec<Rc<Copy>>>,
    count: usize,
    bytes: usize,
}

/// A page as Redis had it.
pub struct Copy {
    pub entry: Rc<Entry>,
    kept: Rc<PreparedBody>,
    /// Before Redis was asked.
    confirmed: Cell<Timestamp>,
    /// Somebody asks again.
    asking: Cell<bool>,
}

/// A question that is on its way to Redis: what is voided meanwhile must not come back with its answer.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    at: Timestamp,
    clock: u64,
}

/// A copy that answers by itself.
pub struct Hot {
    pub entry: Rc<Entry>,
    /// Its body and its headers, for an answer that is the whole of it.
    pub kept: Rc<PreparedBody>,
    /// Redis should be asked again, by this caller alone and behind the answer, so that nobody waits when the time is over.
    pub again: bool,
}

impl Copies {
    pub fn new(span: Duration) -> Self {
        let (young, old) = Default::default();
        Self { span, young, old, clock: 0, voided: HashMap::new(), all_voided: 0 }
    }

    /// To be called before Redis is asked for a page.
    pub const fn asked(&self, now: Timestamp) -> Asked {
        Asked { at: now, clock: self.clock }
    }

    /// The copy of a page for a request like `selecting`.
    pub fn get<F: FnOnce() -> Selecting>(
        &mut self,
        hash: &str,
        selecting: &LazyCell<Selecting, F>,
        now: Timestamp,
    ) -> Option<Rc<Copy>> {
        if let Some(copies) = self.old.take(hash) {
            self.young.put(hash, copies);
            self.age();
        }
        let copies = self.young.pages.get(hash).or_else(|| self.old.pages.get(hash))?;
        let is_for = |copy: &&Rc<Copy>| {
            let Entry { vary, variant, .. } = copy.entry.as_ref();
            vary.is_empty() || selecting.variant(vary).is_some_and(|name| name == *variant)
        };
        copies.iter().find(is_for).filter(|copy| now < copy.entry.dies).cloned()
    }

    /// As [`Copies::get`], where Redis was asked of late.
    pub fn hot<F: FnOnce() -> Selecting>(
        &mut self,
        hash: &str,
        selecting: &LazyCell<Selecting, F>,
        now: Timestamp,
    ) -> Option<Hot> {
        let copy = self.get(hash, selecting, now)?;
        let age = now.since(copy.confirmed.get());
        (age < self.span).then(|| {
            let again = age >= self.span / 2 && !copy.asking.replace(true);
            Hot { entry: copy.entry.clone(), kept: copy.kept.clone(), again }
        })
    }

    /// Keeps what Redis had.
    pub fn keep(&mut self, hash: &str, entry: Rc<Entry>, asked: Asked) {
        let voided = self.voided.get(hash).copied().unwrap_or_default().max(self.all_voided);
        if entry.body.len() > MOST_BYTES / 16 || voided > asked.clock {
            return;
        }
        let mut copies = self.young.take(hash).or_else(|| self.old.take(hash)).unwrap_or_default();
        if let Some(copy) = copies.iter().find(|copy| copy.entry == entry) {
            // What the platform has made of it still holds.
            copy.confirmed.set(copy.confirmed.get().max(asked.at));
            copy.asking.set(false);
        } else {
            copies.retain(|other| other.entry.variant != entry.variant && other.entry.vary == entry.vary);
            let mut headers = entry.headers.clone();
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(entry.body.len()));
            let kept = Rc::new(PreparedBody::new(entry.body.clone(), headers));
            copies.push(Rc::new(Copy { entry, kept, confirmed: Cell::new(asked.at), asking: Cell::new(false) }));
        }
        self.young.put(hash, copies);
        self.age();
    }

    /// Forgets the copies of a page.
    pub fn forget(&mut self, hash: &str) {
        self.young.take(hash);
        self.old.take(hash);
        self.clock += 1;
        if self.voided.len() >= MOST_VOIDED {
            // Whoever asks now gets an answer that is not kept.
            self.voided.clear();
            self.all_voided = self.clock;
        }
        self.voided.insert(hash.to_owned(), self.clock);
    }

    /// Forgets all copies.
    pub fn forget_all(&mut self) {
        (self.young, self.old) = Default::default();
        self.clock += 1;
        self.all_voided = self.clock;
    }

    fn age(&mut self) {
        if self.young.count > MOST_COPIES / 2 || self.young.bytes > MOST_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl Generation {
    fn take(&mut self, hash: &str) -> Option<Vec<Rc<Copy>>> {
        let copies = self.pages.remove(hash)?;
        self.count -= copies.len();
        self.bytes -= bytes(&copies);
        Some(copies)
    }

    fn put(&mut self, hash: &str, copies: Vec<Rc<Copy>>) {
        if let Slot::Vacant(slot) = self.pages.entry(hash.to_owned()) {
            self.count += copies.len();
            self.bytes += bytes(&copies);
            slot.insert(copies);
        }
    }
}

fn bytes(copies: &[Rc<Copy>]) -> usize {
    copies.iter().map(|copy| copy.entry.body.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::{super::super::entry::tests::entry, *};
    use crate::config::Forward;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);
    const SPAN: Duration = Duration::from_secs(4);

    fn asked(foo: &'static str) -> LazyCell<Selecting, impl FnOnce() -> Selecting> {
        LazyCell::new(move || {
            let headers = [("foo".parse().unwrap(), HeaderValue::from_static(foo))].into_iter().collect();
            Selecting::of(&headers, &Forward::All, false)
        })
    }

    fn keep(copies: &mut Copies, hash: &str, body: Vec<u8>) {
        let asked = copies.asked(START);
        copies.keep(hash, Rc::new(entry(b"", body)), asked);
    }

    #[test]
    fn variants_are_told_apart_until_they_die() {
        let mut copies = Copies::new(SPAN);
        let mut other = entry(b"", vec![2; 10]);
        other.variant = "foo=2\n".to_owned();
        keep(&mut copies, "a", vec![1; 10]);
        let question = copies.asked(START);
        copies.keep("a", Rc::new(other), question);
        assert_eq!(copies.get("a", &asked("1"), START).unwrap().entry.body[0], 1);
        assert_eq!(copies.get("a", &asked("2"), START).unwrap().entry.body[0], 2);
        assert!(copies.get("a", &asked("3"), START).is_none());
        assert!(copies.get("a", &asked("1"), START + Duration::from_mins(15)).is_none(), "it is over");
    }

    #[test]
    fn what_is_not_used_makes_room() {
        let mut copies = Copies::new(SPAN);
        for number in 0..200 {
            keep(&mut copies, &number.to_string(), vec![0; 500_000]);
            assert!(copies.get("0", &asked("1"), START).is_some(), "used all the time, at {number}");
            let held = [&copies.young, &copies.old];
            assert!(held.iter().map(|part| part.bytes).sum::<usize>() <= MOST_BYTES + 500_000);
            for part in held {
                assert_eq!(part.count, part.pages.values().map(Vec::len).sum::<usize>());
                assert_eq!(part.bytes, part.count * 500_000);
            }
        }
        assert!(copies.get("1", &asked("1"), START).is_none());
        assert!(copies.get("199", &asked("1"), START).is_some());
    }

    #[test]
    fn a_copy_answers_by_itself_for_a_while_and_one_asks_before_that_is_over() {
        let mut copies = Copies::new(SPAN);
        keep(&mut copies, "a", vec![1; 10]);
        let again = |copies: &mut Copies, millis| {
            copies.hot("a", &asked("1"), START + Duration::from_millis(millis)).map(|hot| hot.again)
        };
        assert_eq!(again(&mut copies, 0), Some(false));
        assert_eq!(again(&mut copies, 1_999), Some(false));
        assert_eq!(again(&mut copies, 2_000), Some(true));
        assert_eq!(again(&mut copies, 2_001), Some(false), "one for all");
        assert_eq!(again(&mut copies, 4_000), None);
        assert!(copies.get("a", &asked("1"), START + SPAN).is_some(), "it stands in");
        assert!(Copies::new(Duration::ZERO).hot("a", &asked("1"), START).is_none());
    }

    #[test]
    fn what_was_voided_does_not_come_back_with_an_answer_that_was_on_its_way() {
        let mut copies = Copies::new(SPAN);
        keep(&mut copies, "a", vec![1; 10]);
        let before = copies.asked(START);
        copies.forget("a");
        copies.keep("a", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("a", &asked("1"), START).is_none());
        copies.keep("b", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("b", &asked("1"), START).is_some(), "another page");
        copies.forget_all();
        copies.keep("b", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("b", &asked("1"), START).is_none());
        keep(&mut copies, "b", Vec::new());
        assert!(copies.get("b", &asked("1"), START).is_some());
        let before = copies.asked(START);
        (0..=MOST_VOIDED).for_each(|number| copies.forget(&number.to_string()));
        copies.keep("0", Rc::new(entry(b"", Vec::new())), before);
        assert!(copies.get("0", &asked("1"), START).is_none() && copies.voided.len() <= MOST_VOIDED);
    }
}
