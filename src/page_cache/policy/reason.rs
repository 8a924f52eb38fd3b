//! The reasons for a request to the origin, and the reasons not to store its response.

/// The reason for a request to the origin: the `fwd` parameter of `Cache-Status` (RFC 9211 §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardReason {
    /// The cache was not asked.
    Bypass,
    /// The method is neither GET nor HEAD.
    Method,
    /// Nothing is stored under the URL.
    UriMiss,
    /// Other variants are stored under the URL.
    VaryMiss,
    /// The stored response is stale.
    Stale,
    /// The request's directives forbid the stored response.
    Request,
}

impl ForwardReason {
    /// The token in `Cache-Status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Stale => "stale",
            Self::Request => "request",
        }
    }
}

/// The reason for a response from the origin, or not to store it: the `detail` parameter of `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The method is neither GET nor HEAD.
    Method,
    /// The URL has the parameter `_`: its page is made for one request.
    Dynamic,
    /// The URL is not an absolute HTTP URL.
    NoPage,
    /// This request header asks for a response that no other request may get.
    RequestHeader(&'static str),
    /// The path is one of `PATHS_PERSONAL`.
    Path,
    /// A cookie may identify the visitor, and the origin did not declare the page shared.
    Cookie,
    /// `only-if-cached`, and nothing usable is stored (RFC 9111 §5.2.1.7).
    OnlyIfCached,
    /// The URL is spelled in another way than its canonical form.
    Spelling,
    /// The URL names no item, so popularity cannot admit the page.
    NoItem,
    /// The URL's parameters do not identify one page.
    Parameters,
    /// The item is not among the `PAGE_RANK_LIMIT` most viewed ones.
    Unpopular,
    /// The status cannot be stored, or needs explicit freshness.
    Status,
    SetCookie,
    Private,
    NoStore,
    NoCache,
    /// The response is stale when it arrives.
    NotFresh,
    /// The platform would decode the body.
    Encoding,
    /// The response varies on a header that the origin did not get.
    Vary,
    /// `Vary: *`.
    VaryStar,
    /// The body exceeds `PAGE_MAX_BYTES`.
    TooLarge,
    /// The isolate is rendering and storing as many pages as its memory allows.
    Busy,
    /// The response is one visitor's.
    Personal,
    /// Another request holds the lease to render the page.
    InRender,
    /// Hit-for-miss: the page could not be stored a moment ago.
    Unstorable,
    /// An unsafe request changed the resource (RFC 9111 §4.4).
    Invalidated,
    OriginDown,
    /// The origin refused the shared render and answered the visitor's own request.
    Refused,
    /// The page's ESI cannot be processed.
    Esi,
    RedisDown,
    /// The home tier did not answer.
    HomeDown,
}

/// The reasons for which a response cannot be stored.
const UNSTORABLE: [Reason; 14] = [
    Reason::NoItem,
    Reason::Parameters,
    Reason::Status,
    Reason::SetCookie,
    Reason::Private,
    Reason::NoStore,
    Reason::NoCache,
    Reason::NotFresh,
    Reason::Encoding,
    Reason::VaryStar,
    Reason::TooLarge,
    Reason::Personal,
    Reason::Refused,
    Reason::Esi,
];

impl Reason {
    /// The token in `Cache-Status`; for a request header, its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Dynamic => "dynamic",
            Self::NoPage => "no-page",
            Self::RequestHeader(name) => name,
            Self::Path => "path",
            Self::Cookie => "cookie",
            Self::OnlyIfCached => "only-if-cached",
            Self::Spelling => "spelling",
            Self::NoItem => "no-item",
            Self::Parameters => "parameters",
            Self::Unpopular => "unpopular",
            Self::Status => "status",
            Self::SetCookie => "set-cookie",
            Self::Private => "private",
            Self::NoStore => "no-store",
            Self::NoCache => "no-cache",
            Self::NotFresh => "not-fresh",
            Self::Encoding => "encoding",
            Self::Vary => "vary",
            Self::VaryStar => "vary-star",
            Self::TooLarge => "too-large",
            Self::Busy => "busy",
            Self::Personal => "personal",
            Self::InRender => "in-render",
            Self::Unstorable => "unstorable",
            Self::Invalidated => "invalidated",
            Self::OriginDown => "origin-down",
            Self::Refused => "refused",
            Self::Esi => "esi",
            Self::RedisDown => "redis-down",
            Self::HomeDown => "home-down",
        }
    }

    /// The reason of a response that cannot be stored, from its token.
    #[must_use]
    pub fn from_detail(token: &str) -> Option<Self> {
        UNSTORABLE.into_iter().find(|reason| reason.as_str() == token)
    }

    /// The `fwd` parameter of a request that bypasses the cache for this reason.
    #[must_use]
    pub const fn forward(self) -> ForwardReason {
        match self {
            Self::Method => ForwardReason::Method,
            Self::RequestHeader(_) => ForwardReason::Request,
            _ => ForwardReason::Bypass,
        }
    }

    /// Returns whether the next response to the same URL will not be storable either, so that a hit-for-miss note saves
    /// its lookup. An item may become popular with its next view, and the next request may have other headers or
    /// another spelling.
    #[must_use]
    pub const fn is_lasting(self) -> bool {
        !matches!(self, Self::Unpopular | Self::Vary | Self::Spelling | Self::Cookie | Self::Busy | Self::OriginDown)
    }

    /// Returns whether the status and headers alone give this reason, for any visitor.
    #[must_use]
    pub fn is_in_head(self) -> bool {
        UNSTORABLE.contains(&self) && !matches!(self, Self::Encoding | Self::TooLarge | Self::Refused)
    }

    /// Returns whether the response passed all checks of its content, and only its size or the moment keeps it from being
    /// stored. So it is for everybody.
    #[must_use]
    pub const fn lacks_room(self) -> bool {
        matches!(self, Self::TooLarge | Self::Busy)
    }

    /// Returns whether popularity would admit the page: its item ranks too low, or no item is certain.
    #[must_use]
    pub const fn lacks_popularity(self) -> bool {
        matches!(self, Self::NoItem | Self::Parameters | Self::Unpopular)
    }
}
