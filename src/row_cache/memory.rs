//! Copies that this isolate has read a moment ago: a crowd around a flash sale asks Redis about once in `ROW_MEMORY`, not once a visitor.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    time::Duration,
};

use super::{CachedRow, RowSource, read, read_many};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};

/// Rows, and bytes of one, at most: 4 MB.
const MOST_ROWS: usize = 1_000;
const LONGEST: usize = 4_000;

/// The isolate's memory of rows.
pub struct RowMemory {
    /// `ROW_MEMORY`; a row that is refreshed more often is remembered for one period.
    span: Duration,
    rows: RefCell<HashMap<RowId, Remembered>>,
    /// Counts what was forgotten.
    forgotten: Cell<u64>,
}

/// A question that is on its way to Redis: what is forgotten meanwhile must not come back with its answer.
struct Asked {
    at: Timestamp,
    forgotten: u64,
}

struct Remembered {
    copy: CachedRow,
    /// Before Redis was asked.
    asked: Timestamp,
}

impl RowMemory {
    /// An empty one, whose copies answer by themselves for `span`.
    #[must_use]
    pub fn new(span: Duration) -> Self {
        Self { span, rows: RefCell::default(), forgotten: Cell::default() }
    }

    /// As [`read`](super::read), without Redis if it was asked a moment ago.
    ///
    /// # Errors
    /// As that.
    pub async fn read(
        &self,
        redis: &Redis,
        source: Option<&RowSource<'_>>,
        row: &RowId,
        now: Timestamp,
    ) -> Result<Option<CachedRow>, Error> {
        if let Some(copy) = self.copy(row, now) {
            return Ok(Some(copy));
        }
        let asked = self.asked(now);
        let found = read(redis, source, row, now).await?;
        self.keep(row, found.as_ref(), &asked);
        Ok(found)
    }

    /// As [`read_many`](super::read_many), without Redis for those of which it was asked a moment ago.
    ///
    /// # Errors
    /// As that.
    pub async fn read_many(
        &self,
        redis: &Redis,
        source: Option<&RowSource<'_>>,
        rows: &[RowId],
        now: Timestamp,
    ) -> Result<Vec<Option<CachedRow>>, Error> {
        let mut found: Vec<_> = rows.iter().map(|row| self.copy(row, now)).collect();
        let unknown = |(_, found): &(&RowId, &Option<CachedRow>)| found.is_none();
        let others: Vec<_> = rows.iter().zip(&found).filter(unknown).map(|(row, _)| row.clone()).collect();
        let asked = self.asked(now);
        let answers = read_many(redis, source, &others, now).await?;
        for ((row, answer), found) in others.iter().zip(answers).zip(found.iter_mut().filter(|found| found.is_none())) {
            self.keep(row, answer.as_ref(), &asked);
            *found = answer;
        }
        Ok(found)
    }

    /// Forgets `rows`, which a call of the API has just scheduled, un-scheduled or refreshed.
    pub fn forget(&self, rows: &[RowId]) {
        self.forgotten.set(self.forgotten.get() + 1);
        let mut remembered = self.rows.borrow_mut();
        for row in rows {
            remembered.remove(row);
        }
    }

    const fn asked(&self, now: Timestamp) -> Asked {
        Asked { at: now, forgotten: self.forgotten.get() }
    }

    /// If it is overdue, whoever read it has it refreshed.
    fn copy(&self, row: &RowId, now: Timestamp) -> Option<CachedRow> {
        let rows = self.rows.borrow();
        let Remembered { copy, asked } = rows.get(row)?;
        let since = now.since(*asked);
        let answers = since < self.span.min(copy.period);
        answers.then(|| CachedRow { age: copy.age + since, overdue: false, ..copy.clone() })
    }

    fn keep(&self, row: &RowId, found: Option<&CachedRow>, asked: &Asked) {
        let Some(copy) = found.filter(|copy| copy.json.len() <= LONGEST && !self.span.is_zero()) else { return };
        let mut rows = self.rows.borrow_mut();
        let is_late = rows.get(row).is_some_and(|kept| asked.at < kept.asked);
        if is_late || asked.forgotten != self.forgotten.get() {
            return;
        }
        if rows.len() >= MOST_ROWS {
            rows.retain(|_, kept| asked.at.since(kept.asked) < self.span.min(kept.copy.period));
        }
        if rows.len() < MOST_ROWS {
            rows.insert(row.clone(), Remembered { copy: copy.clone(), asked: asked.at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);
    const SPAN: Duration = Duration::from_secs(1);

    fn row(name: &str) -> RowId {
        RowId::parse(name).unwrap()
    }

    impl RowMemory {
        fn kept_at(&self, now: Timestamp, row: &RowId, copy: &CachedRow) {
            self.keep(row, Some(copy), &self.asked(now));
        }
    }

    fn copy(bytes: usize, period: Duration) -> CachedRow {
        CachedRow { json: vec![b' '; bytes].into(), age: Duration::from_secs(3), overdue: true, period }
    }

    #[test]
    fn a_copy_answers_for_its_span_or_its_period_and_grows_older() {
        let memory = RowMemory::new(SPAN);
        let [slow, fast] = [row("slow"), row("fast")];
        memory.kept_at(START, &slow, &copy(9, SPAN * 5));
        memory.kept_at(START, &fast, &copy(9, SPAN / 10));
        let soon = START + Duration::from_millis(99);
        let aged = CachedRow { age: Duration::from_millis(3_099), overdue: false, ..copy(9, SPAN * 5) };
        assert_eq!(memory.copy(&slow, soon), Some(aged));
        assert!(memory.copy(&fast, soon).is_some());
        assert_eq!(memory.copy(&fast, START + SPAN / 10), None);
        assert!(memory.copy(&slow, START + Duration::from_millis(999)).is_some());
        assert_eq!(memory.copy(&slow, START + SPAN), None);
    }

    #[test]
    fn what_is_forgotten_too_long_or_too_much_does_not_answer() {
        let memory = RowMemory::new(SPAN);
        for (name, bytes) in [("mug", 9), ("long", LONGEST), ("longer", LONGEST + 1)] {
            memory.kept_at(START, &row(name), &copy(bytes, SPAN));
        }
        memory.forget(&[row("mug")]);
        assert_eq!(
            ["mug", "long", "longer"].map(|name| memory.copy(&row(name), START).is_some()),
            [false, true, false]
        );
        for number in 0..MOST_ROWS {
            memory.kept_at(START + SPAN / 2, &row(&number.to_string()), &copy(9, SPAN));
        }
        assert_eq!(memory.rows.borrow().len(), MOST_ROWS);
        memory.kept_at(START + SPAN * 2, &row("later"), &copy(9, SPAN));
        assert_eq!(memory.rows.borrow().len(), 1, "what answers no more makes room");
    }

    #[test]
    fn without_a_span_nothing_is_kept() {
        let memory = RowMemory::new(Duration::ZERO);
        memory.kept_at(START, &row("mug"), &copy(9, SPAN));
        assert_eq!(memory.rows.borrow().len(), 0);
    }

    #[test]
    fn an_answer_that_was_on_its_way_brings_nothing_back() {
        let memory = RowMemory::new(SPAN);
        let mug = row("mug");
        let asked = memory.asked(START);
        memory.forget(std::slice::from_ref(&mug));
        memory.keep(&mug, Some(&copy(9, SPAN)), &asked);
        assert_eq!(memory.copy(&mug, START), None);
        let earlier = memory.asked(START);
        memory.kept_at(START + SPAN / 4, &mug, &copy(8, SPAN));
        memory.keep(&mug, Some(&copy(9, SPAN)), &earlier);
        assert_eq!(memory.copy(&mug, START + SPAN / 4).map(|copy| copy.json.len()), Some(8));
    }
}
