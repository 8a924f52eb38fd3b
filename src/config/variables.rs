//! Every variable and every secret: name, default, allowed values, meaning.
//!
//! The reader takes names, defaults and limits from this table. `docs/configuration.md` and the comments of
//! `wrangler.toml` and `.dev.vars.example` repeat its texts, and a test holds them equal. The Worker does not contain
//! the meanings: only tests use them.

use crate::schema::keys::Keys;

/// One variable of `wrangler.toml`, or one secret.
#[derive(Debug)]
pub struct Variable {
    pub name: &'static str,
    /// Stands for a variable that is not set. The reader checks a default as it checks a value. Empty: there is no
    /// default.
    pub default: &'static str,
    /// The allowed values, for messages and documents.
    pub allowed: &'static str,
    /// The least number, or the least length of a secret.
    pub min: u64,
    /// The greatest number, or the greatest length of a secret. 0: the value is not a number.
    pub max: u64,
}

/// A whole number of `unit`, at least `min`. A macro, because `concat!` takes literals only.
macro_rules! number {
    ($default:literal, $unit:literal, $min:literal) => {
        Variable {
            name: "",
            default: $default,
            allowed: concat!("a whole number of ", $unit, ", at least ", $min),
            min: $min,
            max: u64::MAX,
        }
    };
}

/// A whole number of `unit` that reaches Redis as an index. Larger numbers than 10¹² are out of its range or, in Lua, lose
/// the form of an integer.
macro_rules! index {
    ($default:literal, $unit:literal) => {
        Variable {
            allowed: concat!("a whole number of ", $unit, ", 1 to 1000000000000"),
            max: 1_000_000_000_000,
            ..number!($default, $unit, 1)
        }
    };
}

/// A secret of at least `min` characters.
macro_rules! secret {
    ($before:literal, $min:literal) => {
        Variable { allowed: concat!($before, "at least ", $min, " characters"), ..number!("", "", $min) }
    };
}

const fn text(default: &'static str, allowed: &'static str) -> Variable {
    Variable { name: "", default, allowed, min: 0, max: 0 }
}

/// Defines a constant for each variable, and the list of all with the lines of their documentation.
macro_rules! variables {
    ($(#[$about:meta])* $list:ident: $($(#[doc = $line:literal])+ $name:ident = $variable:expr;)+) => {
        $($(#[doc = $line])+ pub const $name: Variable = Variable { name: stringify!($name), ..$variable };)+

        $(#[$about])*
        pub const $list: &[(&Variable, &[&str])] = &[$((&$name, &[$($line),+])),+];
    };
}

const ADDRESS: &str = "an address that begins with http:// or https://";
const NAMES: &str = "names separated by commas, in which * stands for any characters";
const PATHS: &str = "paths separated by commas, in which * stands for any characters, such as /shop/*";

variables! {
    /// Every variable of `wrangler.toml`, in its order, with the lines of its meaning.
    VARIABLES:

    /// The storefront behind edgefront. Empty: edgefront serves the built-in demo shop.
    ORIGIN_URL = text("", ADDRESS);
    /// Time limit for the origin to send the head of its response. A request with a body above 1 MiB, or of unknown length,
    /// has ten times as long for the upload.
    ORIGIN_TIMEOUT = number!("30", "seconds", 1);
    /// The URLs that name an item. Views of these pages count in the ranking. edgefront stores the pages of the most viewed
    /// items (`PAGE_RANK_LIMIT`). The query parameter `_` cannot name an item: a URL that has it is never stored.
    ITEM_ROUTES = text(
        "/?item={item}, /products/{item}, /flash/{item}",
        "URL patterns separated by commas, such as /products/{item} or /shop?item={item}"
    );

    /// The rules for a storefront software, from `presets/`. Variables that are not empty override them.
    PRESET = text("", "the name of a file in presets/, such as django-oscar");
    /// Cookies that do not change a page. Empty: the list of `presets/default.env`.
    COOKIES_IGNORED = text("", NAMES);
    /// Cookies whose visitors never get a shared page. A visitor with a cookie that no rule names gets a shared page
    /// only if the origin declares it shared.
    COOKIES_PERSONAL = text("", NAMES);
    /// Cookies that select one of several pages under a URL, with their values.
    COOKIES_VARIED = text("", "names separated by commas, with their values or without: django_language, currency=EUR|USD");
    /// Request headers that select one of several pages under a URL, even if the origin's `Vary` does not name them. The
    /// origin gets them with each shared render.
    HEADERS_VARIED = text("", "names of headers separated by commas, such as x-country");
    /// Request headers that `Vary` or `HEADERS_VARIED` names, with the values that select a page, such as the languages of the
    /// shop. A shared render has the value that fits the client's header best, or no such header.
    HEADERS_NORMALIZED = text("", "headers with values, separated by commas: accept-language=en|de, user-agent=Mobile");
    /// Cookies that shared renders do not set on the named paths, so that they do not prevent sharing.
    COOKIES_DROPPED = text("", "cookies and paths separated by commas, such as oscar_history@/catalogue/*");
    /// The parts of shared pages that belong to one visitor: the pages, a CSS selector, and the source of the content.
    /// The source is `.` (the same element of the page as the visitor sees it), the path of another page with the
    /// element, `token` (a CSRF token of the session), `user` or `cart`.
    HOLES = text("", "rules separated by ; such as /products/* #mini-cart <- /cart");
    /// Cookies that change only the holes of a page. Their visitors get shared pages whose holes are filled for them,
    /// and no other shared page.
    COOKIES_HOLES = text("", NAMES);
    /// Longest time that the rest of a page waits for the content of its holes. A hole without content shows the content
    /// for visitors without cookies.
    HOLES_WAIT_MS = number!("10000", "milliseconds", 0);
    /// The cookie of a double-submit CSRF protection, such as Django's. edgefront takes the protection over.
    CSRF_COOKIE = text("", "the name of a cookie, such as csrftoken");
    /// Paths whose pages are never shared.
    PATHS_PERSONAL = text("", PATHS);
    /// Paths whose pages are stored for `PAGE_TTL` and `PAGE_STALE`, even if the storefront states no freshness or forbids to
    /// store them. They do not count as declared shared: visitors with an unknown or personal cookie get pages of their own.
    PATHS_SHARED = text("", PATHS);
    /// Paths whose writes change pages for their visitor only, such as product pages with a form that adds to the cart. A
    /// write to any other path voids the stored page of its URL. Empty: the list of `presets/default.env`, which names logouts and GraphQL APIs.
    WRITES_PERSONAL = text("", PATHS);
    /// Paths and query parameters by which visitors choose a language, a currency or the like, if the storefront's session keeps
    /// the choice. After such a request, a visitor with a cookie of `COOKIES_HOLES` gets pages of their own, unless the storefront
    /// declares them shared.
    CHOICES = text("", "paths, ?parameter or ?parameter=value|value, separated by commas, in which * stands for any characters, such as /language/*, ?lang");
    /// Query parameters that do not change a page. Empty: the list of `presets/default.env`.
    QUERY_IGNORED = text("", NAMES);
    /// Query parameters that change a page, although `QUERY_IGNORED` names them. Pages at `PATHS_SHARED` may have them. An entry with
    /// values, such as `route=product/product|product/category`, allows these values only, also for pages of items.
    QUERY_KEPT = text("", "names, in which * stands for any characters, or name=value|value, separated by commas");

    /// Largest number of live sessions. Beyond it, the least recently used sessions end.
    SESSION_LIMIT = index!("10000000", "sessions");
    /// Number of shards of the sessions. 1 is the book's layout; Upstash needs 1 shard for each million sessions. To
    /// change it in a running shop, see `docs/scaling.md`.
    SHARDS = Variable {
        allowed: "a whole number of shards, 1 to 256",
        max: Keys::MAX_SHARDS as u64,
        ..number!("1", "shards", 1)
    };
    /// While `SHARDS` changes: every number of shards whose sessions may be live. Ranking, pages, rows, flash sales and
    /// insights keep the names of the first number. Empty: only `SHARDS`.
    SHARDS_KNOWN = text("", "numbers of shards separated by commas, SHARDS among them, such as 1, 16");
    /// A session without a request for this time ends. The default is 30 days.
    SESSION_IDLE = number!("2592000", "seconds", 60);
    /// A session ends at this age, even if it is in use. The default is 90 days, the largest value 400 days: browsers keep no
    /// cookie for longer.
    SESSION_MAX_AGE = Variable {
        allowed: "a whole number of seconds, 60 to 34560000",
        max: 34_560_000,
        ..number!("7776000", "seconds", 60)
    };
    /// Views of the same item count once in this time: per session of a user, and per network for all other visitors.
    /// An isolate remembers the views of networks; another isolate may count one again.
    VIEW_WINDOW = number!("1800", "seconds", 0);

    /// Largest number of different items in a cart.
    CART_MAX_LINES = Variable { max: u32::MAX as u64, ..number!("100", "items", 1) };
    /// Largest number of pieces of one item in a cart.
    CART_MAX_QUANTITY = Variable { max: u32::MAX as u64, ..number!("999", "pieces", 1) };
    /// Requests to these paths carry the visitor's cart to the origin, in the header `Edge-Cart`. With the demo shop,
    /// edgefront adds `/account` and `/orders/*`.
    CART_ROUTES = text("/cart, /checkout", PATHS);
    /// The address of the demo shop, such as `https://shop.example`. Links in mails and canonical links name it. Empty:
    /// canonical links name the host of the request, and `DEMO_MAIL` stays empty.
    DEMO_URL = text("", ADDRESS);
    /// Where the demo shop sends its mail. `log` writes it to the Worker's log, with links that open an account: use it for
    /// development only. Empty: the shop sends no mail and resets no passwords.
    DEMO_MAIL = text("", "log");
    /// Visitors sign in at or below these paths. `LOGIN_LIMIT` counts the requests there, except GET and other safe
    /// methods.
    LOGIN_ROUTES = text("/login, /signup", PATHS);

    /// Freshness lifetime of a page if the origin does not state one.
    /// Each page stays fresh for 90 to 100 % of this time, so that pages do not expire together.
    PAGE_TTL = number!("300", "seconds", 0);
    /// Time after `PAGE_TTL` for which the page is still served stale, while one request renders it again.
    PAGE_STALE = number!("60", "seconds", 0);
    /// An item's page is stored if the item ranks below this number, or if the origin states how long the page is
    /// fresh. Rank 0 is the most viewed item.
    PAGE_RANK_LIMIT = number!("10000", "ranks", 0);
    /// Larger pages are served and not stored. The default is 1 MiB.
    PAGE_MAX_BYTES = Variable { max: usize::MAX as u64, ..number!("1048576", "bytes", 0) };
    /// Largest size of all stored pages in Redis together. The pages that were stored longest ago make room. 0 stores
    /// no page. The default is 64 MiB, a quarter of Upstash's free plan (256 MB): sessions and carts need the rest.
    PAGE_TOTAL_BYTES = number!("67108864", "bytes", 0);
    /// Time for which a visitor waits for another request's render of the page. Then the visitor's request renders it,
    /// too; at most 16 such requests of an isolate do so at once.
    PAGE_WAIT_MS = number!("2000", "milliseconds", 0);
    /// Time for which an isolate (one running instance of the Worker) answers with its own copy of a page, without asking
    /// Redis. A purge reaches every isolate within this time. 0 asks Redis at every visit.
    PAGE_MEMORY = number!("5", "seconds", 0);
    /// Longest time that an isolate without a page waits for the cache of its location, which holds the page for all
    /// isolates there. Redis then confirms the page instead of sending it. 0 does not use that cache.
    PAGE_LOCATION_MS = number!("50", "milliseconds", 0);
    /// The client's headers that may reach the origin with a request whose response may be stored. Cookies never do.
    /// `*` forwards all headers except those about the connection, the cache or a person. Use it if the origin's `Vary`
    /// is complete.
    PAGE_FORWARD_HEADERS = text("accept, accept-language, user-agent", "names of headers separated by commas, or *");

    /// Number of items that a rescale keeps in the ranking. The insights keep as many totals.
    RANKING_KEEP = index!("20000", "items");
    /// After this time, a view counts half.
    RANKING_HALF_LIFE = number!("300", "seconds", 1);
    /// After this time, an order counts half in the insights ("bought also bought"). The default is 7 days.
    INSIGHTS_HALF_LIFE = number!("604800", "seconds", 1);

    /// Time for which a reserved piece of a flash sale is held for its visitor. edgefront keeps it 30 s longer, for a
    /// payment that has begun.
    FLASH_HOLD = number!("120", "seconds", 1);
    /// The URLs that buy a reserved piece. Requests there carry the reservation and the cart to the origin,
    /// in the headers `Edge-Reservation` and `Edge-Cart`.
    FLASH_CHECKOUT = text("/flash/{sale}/checkout", "URL patterns separated by commas, such as /flash/{sale}/checkout");

    /// The D1 table that rows come from. It needs a column `id`. Set this or `ROWS_URL`; without either, there is no
    /// row cache.
    ROWS_TABLE = text("", "the name of a table: letters, digits and _, and no digit first");
    /// The address that rows come from. It answers `GET ?ids=a,b` with a JSON list of rows, each with its `id`. It gets
    /// `Edge-Key` if it has the scheme, host and port of `ORIGIN_URL`.
    ROWS_URL = text("", ADDRESS);
    /// Time for which an isolate answers with its own copy of a row, without asking Redis; at most one period of the
    /// row. 0 asks Redis every time.
    ROW_MEMORY = number!("1", "seconds", 0);

    /// Largest number of requests that one cron run sends to Redis, the source of rows and D1 together. The next run
    /// does the rest. Workers allows 50 on the Free plan and 10,000 on the Paid plan.
    // Fewer requests are not enough for one round of the row refresh.
    SUBREQUESTS = number!("50", "requests", 10);
    /// A busy isolate writes its traffic counters once in this time, with one Redis command. 0 counts nothing.
    TRAFFIC_INTERVAL = number!("2", "seconds", 0);
    /// Longest time that a visitor's request waits for Redis.
    REDIS_TIMEOUT_MS = number!("300", "milliseconds", 1);
    /// 1: the Redis database has read replicas in other regions, such as an Upstash Global database. Reads are answered
    /// near, and each visitor reads their own changes in every region. 0: it has no replicas.
    READ_REGIONS = Variable { allowed: "0 or 1", max: 1, ..number!("0", "", 0) };
}

variables! {
    /// Every secret, in the order of `.dev.vars.example`, with the lines of its meaning.
    SECRETS:

    /// The REST address of the Redis database: Upstash's console shows it. Your own Redis needs `edgefront-gateway` in
    /// front of it.
    UPSTASH_REDIS_REST_URL = text("", ADDRESS);
    /// The REST token of that database. It must be able to write.
    UPSTASH_REDIS_REST_TOKEN = text("", "visible ASCII characters");
    /// Keys that sign the session cookies. The first key signs and all keys are accepted, so that keys can rotate.
    /// `openssl rand -base64 32` generates a key.
    SESSION_KEYS = secret!("keys separated by commas, each of ", 32);
    /// Opens the service part of the API (`Authorization: Bearer <SERVICE_KEY>`). Without it, that part is closed.
    SERVICE_KEY = secret!("", 16);
    /// edgefront sends it to the origin as `Edge-Key`. It proves to the origin that a request comes through edgefront.
    ORIGIN_KEY = secret!("", 16);
}
