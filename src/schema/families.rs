//! The families of keys: every key of the schema belongs to one. `docs/redis.md` shows this table.
//!
//! [`Keys`](super::keys::Keys) and [`Shard`](super::shard::Shard) make keys from a [`Family`] only, and only this file
//! can define one. So every key has a row. The Worker contains the prefixes and the groups; only tests use the rest.

/// Keys that share a prefix, a hash tag and a kind of content.
#[derive(Debug)]
pub struct Family {
    prefix: &'static str,
    tag: &'static str,
}

impl Family {
    /// The beginning of the family's keys, up to their first colon: `cart:`.
    #[must_use]
    pub const fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// The hash tag of the family's keys. Empty if the tag depends on the shard, or if there is none.
    #[must_use]
    pub const fn tag(&self) -> &'static str {
        self.tag
    }
}

/// Keys that share a hash tag, and so one slot of a Redis Cluster, if there is more than one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Sessions and all that belongs to one. The tag is the number of the shard: `{0}`, `{1}`, …
    Sessions,
    /// The ranking and the stored pages, because the rank of an item decides whether its page is stored.
    Pages,
    /// Rows, their schedule and flash sales, because a flash sale reads its row.
    Rows,
    /// Insights, because an order counts for all of its items at once.
    Orders,
    /// Keys without a tag, because no script uses them.
    Untagged,
}

impl Group {
    /// The hash tag of the group's keys. Empty for [`Group::Sessions`], whose tag depends on the shard.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Pages => "{pages}",
            Self::Rows => "{rows}",
            Self::Orders => "{orders}",
            Self::Sessions | Self::Untagged => "",
        }
    }
}

/// A row of the table: a family and its documentation.
#[derive(Debug)]
pub struct FamilyRow {
    pub family: &'static Family,
    /// The group that gives the family's keys their hash tag.
    pub group: Group,
    /// The part of the key after the prefix, as a placeholder: `{token}`. Empty: the key ends with its prefix.
    pub name: &'static str,
    /// The Redis type.
    pub kind: &'static str,
    /// The content, in lines: member → value.
    pub content: &'static [&'static str],
    /// The time to live, or what bounds the key.
    pub expires: &'static str,
    /// The scripts (lower case) and the commands (upper case) that write it.
    pub written_by: &'static [&'static str],
}

impl FamilyRow {
    /// The key in the book's layout, with the placeholder: `cart:{token}`.
    #[must_use]
    pub fn pattern(&self) -> String {
        format!("{}{}", self.family.prefix, self.name)
    }
}

/// Defines a constant for each family, and the list of all.
macro_rules! families {
    ($(
        $(#[doc = $line:literal])+
        $constant:ident: $prefix:literal $name:literal, $kind:literal in $group:ident,
        expires $expires:literal, written by $($writer:literal)+;
    )+) => {
        $($(#[doc = $line])+ pub const $constant: Family = Family { prefix: $prefix, tag: Group::$group.tag() };)+

        /// Every family, with its documentation.
        pub const FAMILIES: &[FamilyRow] = &[$(FamilyRow {
            family: &$constant,
            group: Group::$group,
            name: $name,
            kind: $kind,
            content: &[$($line),+],
            expires: $expires,
            written_by: &[$($writer),+],
        }),+];
    };
}

families! {
    /// token → user id. An empty user id is a guest's session. `ended:{token}` → user id: the login has ended, and the
    /// session's cart is still there.
    LOGIN: "login:" "", "hash" in Sessions,
    expires "never", written by "cart_write" "log_in" "end_logins" "reap" "HDEL";

    /// token → when the session was last seen, Unix seconds.
    RECENT: "recent:" "", "zset" in Sessions,
    expires "never", written by "cart_write" "log_in" "touch" "flash" "reap" "ZADD" "ZREM";

    /// item → when the session last viewed it, Unix seconds. The 25 newest items; some older ones until the next trim.
    VIEWED: "viewed:" "{token}", "zset" in Sessions,
    expires "with the session", written by "touch" "log_in" "reap";

    /// item → quantity.
    CART: "cart:" "{token}", "hash" in Sessions,
    expires "with the session", written by "cart_write" "buy" "log_in" "reap";

    /// token → when it logged in, Unix seconds. The list may name tokens that have ended: `login:` decides.
    SESSIONS: "sessions:" "{user}", "zset" in Sessions,
    expires "400 days after the last login", written by "log_in" "reap";

    /// token → the device's public id and its label, such as `0123456789abcdef Firefox on Windows`.
    DEVICES: "devices:" "{user}", "hash" in Sessions,
    expires "400 days after the last login", written by "log_in" "reap";

    /// Carts that ended with their session: `user`, `seen` (Unix seconds), `items` (JSON: item, quantity, item, …).
    ABANDONED: "abandoned:" "", "stream" in Sessions,
    expires "about the newest 10,000 entries stay", written by "log_in" "reap";

    /// `cart` → 1: the order's items have left the cart. In the book's layout, this and the other `order:{order}` are
    /// one key.
    CART_ORDER: "order:" "{order}", "hash" in Sessions,
    expires "14 days", written by "buy";

    /// For an `Idempotency-Key`: the change of a cart, or the token of a login. For a token that a login replaced: the
    /// new token. If the cart is not in the new session, a space follows, and the token of the session that has the cart.
    IDEMPOTENCY: "once:" "{hash}", "string" in Sessions,
    expires "1 day; a replaced token 10 minutes", written by "cart_write" "log_in";

    /// The ranking: item → −views, decayed.
    RANKING: "viewed:" "", "zset" in Pages,
    expires "never; `RANKING_KEEP` items stay", written by "count_once" "rescale" "ZADD" "ZINCRBY";

    /// The Unix second at which the half-life of the last rescale began. Missing until the first rescale, and while no item is left.
    RANKING_RESCALED: "rescaled:" "", "string" in Pages,
    expires "never", written by "rescale";

    /// The first 100 items of the ranking at the last rescale that halved it.
    PREVIOUS_RANKING: "ranked:" "", "zset" in Pages,
    expires "never", written by "rescale";

    /// The first 100 items of the ranking, about every 5 minutes of the last hour, newest first: the Unix second and a
    /// JSON list of items.
    HOURLY_RANKS: "ranked:" "hour", "list" in Pages,
    expires "2 hours; at most 17 entries", written by "rescale";

    /// The item of a view that a request with an `Idempotency-Key` reported.
    VIEW_IDEMPOTENCY: "once:" "{hash}", "string" in Pages,
    expires "1 day", written by "count_once";

    /// A stored response, or the names of the headers that select one of its variants. The hash is a SHA-256 of the
    /// canonical request.
    PAGE: "cache:" "{hash}", "string" in Pages,
    expires "when the page dies, 2 days at most", written by "store" "evict";

    /// The values of the headers that `cache:{hash}` names → the response stored for them. At most 16 variants.
    PAGE_VARIANTS: "variants:" "{hash}", "hash" in Pages,
    expires "with the last variant, 2 days at most", written by "store" "evict";

    /// The id of the lease to render the page. Or the hit-for-miss note: `unstorable`, stamp, reason, names and cause.
    RENDER_LEASE: "render:" "{hash}", "string" in Pages,
    expires "`ORIGIN_TIMEOUT`; the note 2 minutes", written by "page" "store" "evict";

    /// `all`, `item:{item}`, `url:{hash}` or `tag:{tag}`, with `~` before it for a soft purge → when it was purged,
    /// Unix microseconds.
    PURGE_MARKS: "purged:" "", "zset" in Pages,
    expires "never; a purge drops marks older than 4 days", written by "purge";

    /// The time of the latest purge, Unix microseconds. A page that was rendered later needs no check of the marks.
    LATEST_PURGE: "purged:" "latest", "string" in Pages,
    expires "never", written by "purge";

    /// The account of stored pages. hash → when the page was stored, Unix milliseconds. `~{hash}` → when it dies and its
    /// size: −2⁵³ + seconds since 2020 × 2²² + units of 64 bytes. The empty member → the sum of all sizes, in units.
    STORED_PAGES: "stored:" "", "zset" in Pages,
    expires "never; bounded by `PAGE_TOTAL_BYTES`", written by "account" "evict";

    /// row → next refresh, Unix seconds. During a refresh: the end of its lease. While a cron run keeps the row: the end
    /// of the lease that begins with the next refresh.
    SCHEDULE: "schedule:" "", "zset" in Rows,
    expires "never", written by "claim" "commit" "ZADD" "ZREM";

    /// row → period, seconds.
    DELAY: "delay:" "", "zset" in Rows,
    expires "never", written by "commit" "ZADD" "ZREM";

    /// The row as a JSON object: column → value.
    ROW: "inv:" "{row}", "string" in Rows,
    expires "3 periods, at least 1 minute", written by "commit" "DEL";

    /// A flash sale: `window` (its start, Unix seconds), `upkeep` (when its keys expire, a moment before which no hold
    /// ends, and the number of holds), `sold`, `hold:{user}` → reservation, `bought:{user}` → order, `order:{order}` → user.
    FLASH_SALE: "flash:" "{sale}", "hash" in Rows,
    expires "1 day after the last hold can end", written by "flash" "flash_cancel" "flash_confirm";

    /// user → when the user's hold on a piece ends, Unix seconds.
    HOLDS: "held:" "{sale}", "zset" in Rows,
    expires "1 day after the last hold can end", written by "flash" "flash_cancel" "flash_confirm";

    /// `insights` → the id of the report that was counted. `flash:{sale}` → the window of the sale in which
    /// the order counts. With more than one shard also `shard` → the token of the first reported session (older releases: its
    /// shard).
    ORDER: "order:" "{order}", "hash" in Orders,
    expires "14 days", written by "flash_confirm" "learn" "HSETNX";

    /// item → orders with it, decayed.
    PURCHASES: "bought:" "", "zset" in Orders,
    expires "never; `RANKING_KEEP` items stay", written by "learn";

    /// The Unix second at which the half-life of the counts in `bought:` began.
    PURCHASES_RESCALED: "rescaled:" "bought", "string" in Orders,
    expires "never", written by "learn";

    /// Items bought together with this one: item → orders with both, in units of `scale`. The empty field →
    /// `began scale orders items`: the start of the half-life, the unit, the orders, and the number of fields.
    BOUGHT_TOGETHER: "bought:" "{item}", "hash" in Orders,
    expires "10 half-lives after the last half-life with an order", written by "learn";

    /// Items bought by visitors who had viewed this one, as in `bought:{item}`.
    BOUGHT_AFTER_VIEWING: "led-to:" "{item}", "hash" in Orders,
    expires "10 half-lives after the last half-life with an order", written by "learn";

    /// An entry holds the measurements of one isolate since its last entry: a field for each counter that is not 0,
    /// `ms:{kind}` → a histogram of latencies, `error:{status route cause}` → a count, `error` → one of the latest errors.
    TRAFFIC: "traffic:" "", "stream" in Untagged,
    expires "about the newest 10,000 entries stay", written by "XADD";

    /// The entries of `traffic:` summed up: one entry for each minute, identified by the start of the minute. `online` →
    /// the visitors online.
    TRAFFIC_MINUTES: "traffic:" "minutes", "stream" in Untagged,
    expires "about the newest 1,500 entries stay: a day", written by "XADD";

    /// As `traffic:minutes`, one entry for each hour.
    TRAFFIC_HOURS: "traffic:" "hours", "stream" in Untagged,
    expires "about the newest 200 entries stay: eight days", written by "XADD";

    /// The sums of all entries of `traffic:` that are older than its identifier.
    TRAFFIC_TOTALS: "traffic:" "totals", "stream" in Untagged,
    expires "one entry stays", written by "XADD";

    /// job → the report of its last run that did something, failed or was requested, as JSON. `heartbeat` → when the
    /// crons last ran, Unix seconds.
    JOBS: "jobs:" "", "hash" in Untagged,
    expires "never", written by "HSET";
}
