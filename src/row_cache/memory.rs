//! Copies that this isolate has read recently. Under the load of a flash sale, Redis gets about one read per
//! `ROW_MEMORY` instead of one per visitor.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    slice,
    time::Duration,
};

use super::{CachedRow, RowSource, RowState, read_many};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};

/// Rows in the memory, and bytes of one row: together at most 4 MB.
const MAX_ROWS: usize = 1_000;
const MAX_ROW_BYTES: usize = 4_000;

/// The isolate's memory of rows.
pub struct RowMemory {
    /// `ROW_MEMORY`. A row with a shorter period is remembered for one period.
    lifetime: Duration,
    rows: RefCell<HashMap<RowId, MemoryEntry>>,
    /// Counts the calls of [`RowMemory::forget`].
    generation: Cell<u64>,
}

/// The start of a read from Redis. A reply of an earlier generation is not stored, because it may be older than the
/// change.
struct ReadStart {
    at: Timestamp,
    generation: u64,
}

struct MemoryEntry {
    copy: CachedRow,
    /// The start of the read, so the copy is at least as new.
    read_at: Timestamp,
}

impl RowMemory {
    /// An empty memory that answers from a copy for `lifetime`; zero turns it off.
    #[must_use]
    pub fn new(lifetime: Duration) -> Self {
        Self { lifetime, rows: RefCell::default(), generation: Cell::default() }
    }

    /// As [`read()`](super::read()); a recently read copy takes no request.
    ///
    /// # Errors
    /// As [`read()`](super::read()).
    pub async fn read(
        &self,
        redis: &Redis,
        source: Option<&RowSource<'_>>,
        row: &RowId,
        now: Timestamp,
    ) -> Result<Option<CachedRow>, Error> {
        let states = self.read_many(redis, source, slice::from_ref(row), now).await?;
        states.into_iter().next().map_or(Ok(None), RowState::into_copy)
    }

    /// As [`read_many`]; recently read copies take no request.
    ///
    /// # Errors
    /// As [`read_many`].
    pub async fn read_many(
        &self,
        redis: &Redis,
        source: Option<&RowSource<'_>>,
        rows: &[RowId],
        now: Timestamp,
    ) -> Result<Vec<RowState>, Error> {
        let mut states: Vec<_> = rows.iter().map(|row| self.recall(row, now).map(RowState::Cached)).collect();
        let is_unknown = |(_, state): &(&RowId, &Option<RowState>)| state.is_none();
        let unknown: Vec<_> = rows.iter().zip(&states).filter(is_unknown).map(|(row, _)| row.clone()).collect();
        let start = self.start_read(now);
        let found = read_many(redis, source, &unknown, now).await?;
        let elapsed = source.map_or(Duration::ZERO, |source| source.since(now));
        for ((row, found), state) in unknown.iter().zip(found).zip(states.iter_mut().filter(|state| state.is_none())) {
            // `recall` adds the time since the start of the read.
            let copy = found.copy().map(|copy| CachedRow { age: copy.age.saturating_sub(elapsed), ..copy.clone() });
            self.remember(row, copy, &start);
            *state = Some(found);
        }
        Ok(states.into_iter().flatten().collect())
    }

    /// Forgets `rows`, because an API call has just scheduled, unscheduled or refreshed them.
    pub fn forget(&self, rows: &[RowId]) {
        self.generation.set(self.generation.get() + 1);
        let mut entries = self.rows.borrow_mut();
        for row in rows {
            entries.remove(row);
        }
    }

    const fn start_read(&self, now: Timestamp) -> ReadStart {
        ReadStart { at: now, generation: self.generation.get() }
    }

    /// A copy that was read recently. It is never overdue: the reader that got it from Redis refreshes an overdue row.
    fn recall(&self, row: &RowId, now: Timestamp) -> Option<CachedRow> {
        let rows = self.rows.borrow();
        let MemoryEntry { copy, read_at } = rows.get(row)?;
        let since_read = now.since(*read_at);
        let is_recent = now.is_within(self.lifetime.min(copy.period), *read_at);
        is_recent.then(|| CachedRow { age: copy.age + since_read, overdue: false, ..copy.clone() })
    }

    fn remember(&self, row: &RowId, copy: Option<CachedRow>, start: &ReadStart) {
        let is_small = |copy: &CachedRow| copy.json.len() <= MAX_ROW_BYTES;
        let Some(copy) = copy.filter(is_small).filter(|_| !self.lifetime.is_zero()) else { return };
        let mut rows = self.rows.borrow_mut();
        let is_outdated = rows.get(row).is_some_and(|entry| start.at < entry.read_at);
        if is_outdated || start.generation != self.generation.get() {
            return;
        }
        if rows.len() >= MAX_ROWS {
            rows.retain(|_, entry| start.at.since(entry.read_at) < self.lifetime.min(entry.copy.period));
        }
        if rows.len() < MAX_ROWS {
            rows.insert(row.clone(), MemoryEntry { copy, read_at: start.at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);
    const LIFETIME: Duration = Duration::from_secs(1);

    fn row(name: &str) -> RowId {
        RowId::parse(name).unwrap()
    }

    impl RowMemory {
        fn remember_at(&self, now: Timestamp, row: &RowId, copy: &CachedRow) {
            self.remember(row, Some(copy.clone()), &self.start_read(now));
        }
    }

    fn copy(bytes: usize, period: Duration) -> CachedRow {
        CachedRow { json: vec![b' '; bytes].into(), age: Duration::from_secs(3), overdue: true, period }
    }

    #[test]
    fn a_copy_is_recalled_for_its_lifetime_or_its_period_and_its_age_grows() {
        let memory = RowMemory::new(LIFETIME);
        let [slow, fast] = [row("slow"), row("fast")];
        memory.remember_at(START, &slow, &copy(9, LIFETIME * 5));
        memory.remember_at(START, &fast, &copy(9, LIFETIME / 10));
        let soon = START + Duration::from_millis(99);
        let aged = CachedRow { age: Duration::from_millis(3_099), overdue: false, ..copy(9, LIFETIME * 5) };
        assert_eq!(memory.recall(&slow, soon), Some(aged));
        assert!(memory.recall(&fast, soon).is_some());
        assert_eq!(memory.recall(&fast, START + LIFETIME / 10), None);
        assert!(memory.recall(&slow, START + Duration::from_millis(999)).is_some());
        assert_eq!(memory.recall(&slow, START + LIFETIME), None);
        assert_eq!(memory.recall(&slow, START - LIFETIME), None, "the clock was set back");
    }

    #[test]
    fn forgotten_and_oversized_rows_are_not_recalled_and_the_number_of_rows_is_bounded() {
        let memory = RowMemory::new(LIFETIME);
        for (name, bytes) in [("mug", 9), ("long", MAX_ROW_BYTES), ("longer", MAX_ROW_BYTES + 1)] {
            memory.remember_at(START, &row(name), &copy(bytes, LIFETIME));
        }
        memory.forget(&[row("mug")]);
        assert_eq!(
            ["mug", "long", "longer"].map(|name| memory.recall(&row(name), START).is_some()),
            [false, true, false]
        );
        for number in 0..MAX_ROWS {
            memory.remember_at(START + LIFETIME / 2, &row(&number.to_string()), &copy(9, LIFETIME));
        }
        assert_eq!(memory.rows.borrow().len(), MAX_ROWS);
        memory.remember_at(START + LIFETIME * 2, &row("later"), &copy(9, LIFETIME));
        assert_eq!(memory.rows.borrow().len(), 1, "entries past their lifetime make room");
    }

    #[test]
    fn a_lifetime_of_zero_turns_the_memory_off() {
        let memory = RowMemory::new(Duration::ZERO);
        memory.remember_at(START, &row("mug"), &copy(9, LIFETIME));
        assert_eq!(memory.rows.borrow().len(), 0);
    }

    #[test]
    fn a_late_reply_does_not_bring_back_a_forgotten_or_older_copy() {
        let memory = RowMemory::new(LIFETIME);
        let mug = row("mug");
        let start = memory.start_read(START);
        memory.forget(std::slice::from_ref(&mug));
        memory.remember(&mug, Some(copy(9, LIFETIME)), &start);
        assert_eq!(memory.recall(&mug, START), None);
        let earlier = memory.start_read(START);
        memory.remember_at(START + LIFETIME / 4, &mug, &copy(8, LIFETIME));
        memory.remember(&mug, Some(copy(9, LIFETIME)), &earlier);
        assert_eq!(memory.recall(&mug, START + LIFETIME / 4).map(|copy| copy.json.len()), Some(8));
    }
}
