//! Rows of the shop's database, cached in Redis as JSON and refreshed on a schedule. A flash-sale page reads stock and
//! sale times here. A row has a copy only while it is scheduled.
//!
//! `schedule:` has the time of each row's next refresh, `delay:` its period, and `inv:{row}` its copy. A refresh leases
//! the rows that are due (it moves their time in `schedule:` to the end of the lease). It reads them from the
//! [`RowSource`] in one query, and commits each row only if it still holds the lease. So runs may overlap, run twice or
//! be missed, and a failing row stops no other.
//!
//! A cron run keeps the rows that are due again before it ends: the commit moves their time to the end of a lease that
//! begins when they are due. So the run refreshes them without another script.
//!
//! - [`Schedule`], [`schedule()`], [`unschedule`]: the period of a row, and its next refresh.
//! - [`RowSource`]: the origin of the rows, a D1 table or an HTTP address.
//! - [`refresh_due`], [`refresh()`]: lease, load, commit; by the cron, or for named rows.
//! - [`read()`], [`read_many`]: the copies, with their age.
//! - [`RowMemory`]: copies that this isolate has read recently.
//! - [`schedule_report`]: the rows that are most overdue, for the operator.

mod commit;
mod lease;
mod memory;
mod read;
mod refresh;
mod report;
mod schedule;
mod source;

pub use memory::RowMemory;
pub use read::{CachedRow, RowState, read, read_many};
pub use refresh::{RefreshReport, refresh, refresh_due, refresh_now};
pub use report::{LateRow, ScheduleReport, schedule_report};
pub(crate) use schedule::{EarliestDue, earliest_due_command};
pub use schedule::{Schedule, schedule, schedule_of, unschedule};
pub use source::RowSource;
