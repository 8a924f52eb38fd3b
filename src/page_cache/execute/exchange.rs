//! One exchange with the origin for a shared render: its request, and the judgement of its response.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::{
    App,
    config::{PageConfig, rules::CookieRules},
    page_cache::{
        admission::{heuristic, popularity_of_response},
        hit_for_miss::{self, Unstorable},
        key::PageKey,
        policy::{
            Freshness, Reason, VaryFields,
            freshness::{self, Arrival, Popularity},
            validation,
        },
        selecting::{SelectingHeaders, VARIED_COOKIES},
        stored_page::StoredPage,
    },
    ports::{error::Error, fetch::Response, held::Content, random, time::Timestamp},
    proxy::{self, OriginDirectives, cookie_name, esi},
    schema::ids::ItemId,
};

/// A request for a shared render.
pub struct RenderRequest<'a> {
    pub key: &'a PageKey,
    pub selecting: &'a SelectingHeaders,
    /// The selecting headers to send; None: all. For an origin that states no freshness, or a page that was stored before, only
    /// headers that `Vary` has named. So one client's headers cannot change a shared page.
    pub sent: Option<VaryFields>,
    /// The stored page, for validation.
    pub stored: Option<&'a StoredPage>,
    /// `Ok` if popularity admits a response without stated freshness.
    pub popularity: Popularity,
    /// The lease's [stamp](crate::page_cache::Lease::stamp); 0 without a lease.
    pub stamp: u64,
    /// Caches between edgefront and the origin must also validate.
    pub no_cache: bool,
    /// The origin may compress the response for the visitor. A compressed response is not stored.
    pub accepts_gzip: bool,
}

impl<'a> RenderRequest<'a> {
    /// A request without a waiting visitor, a stored page or a lease. `vary`: the headers that the origin has named;
    /// None if the page was never stored.
    #[must_use]
    pub fn in_background(
        key: &'a PageKey,
        selecting: &'a SelectingHeaders,
        popularity: Popularity,
        vary: Option<VaryFields>,
    ) -> Self {
        Self {
            key,
            selecting,
            sent: vary.or_else(|| popularity.is_ok().then(VaryFields::default)),
            stored: None,
            popularity,
            stamp: 0,
            no_cache: false,
            accepts_gzip: false,
        }
    }
}

/// The outcome of an exchange.
pub enum Exchanged<'a> {
    /// `page` has no body yet. `validated`: the stored page that the origin confirmed with 304.
    Storable {
        page: Box<StoredPage>,
        validated: Option<&'a StoredPage>,
        response: Box<Response>,
        directives: OriginDirectives,
    },
    NotStorable(UnstorableResponse),
}

/// A response that cannot be stored.
pub struct UnstorableResponse {
    pub response: Box<Response>,
    pub directives: OriginDirectives,
    pub why: Box<Unstorable>,
}

impl UnstorableResponse {
    /// The response of a page whose ESI is refused: it has no content.
    pub(super) fn of_refused_esi(cause: String) -> Self {
        log::error!("page cache: esi: {cause}");
        let why = Box::new(Unstorable::new(Reason::Esi, cause));
        Self { response: Box::default(), directives: OriginDirectives::default(), why }
    }
}

/// Asks the origin for the page once.
///
/// # Errors
/// [`Error::Origin`]; [`Error::Database`] of the demo shop.
pub async fn exchange<'a>(
    app: &App,
    request: &RenderRequest<'a>,
    sent: Option<&VaryFields>,
) -> Result<Exchanged<'a>, Error> {
    let conditions =
        request.stored.and_then(|stored| validation::conditions(&stored.headers, stored.has_generated_etag));
    let has_conditions = conditions.is_some();
    let mut headers = request.selecting.headers(sent);
    headers.extend(conditions.unwrap_or_default());
    if request.accepts_gzip {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if request.no_cache {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    headers.insert(esi::CAPABILITY_HEADER, HeaderValue::from_static(esi::CAPABILITY));
    let asked = app.clock.now();
    let (response, directives) = proxy::fetch_shared(app, request.key.url(), headers, asked).await?;
    let arrived = app.clock.now();
    let validated = request.stored.filter(|_| has_conditions && response.status() == StatusCode::NOT_MODIFIED);
    let (status, headers) = match validated {
        Some(stored) => (stored.status, validation::freshened(&stored.headers, response.headers())),
        None => (response.status(), response.headers().clone()),
    };
    let headers = without_dropped_cookies(headers, &app.config.page.cookies, request.key.path());
    // A 304 that names no item confirms the stored name.
    let item = directives.item.as_ref().or_else(|| validated?.item.as_ref()).cloned();
    let shown = request.key.naming(item.as_ref());
    if status == StatusCode::OK {
        app.pages.keys.name(&shown);
    }
    let popularity = popularity_of_response(request.key, &shown, request.popularity);
    let reply = OriginReply { asked, arrived, status, headers, item, directives: &directives };
    Ok(match reply.judge(request, popularity, &app.config.page) {
        Ok(judged) => {
            let has_generated_etag = validated.is_some_and(|stored| stored.has_generated_etag);
            let page = Box::new(reply.into_page(request, has_generated_etag, judged));
            Exchanged::Storable { page, validated, response: Box::new(response), directives }
        }
        Err(reason) => {
            let why = Box::new(reply.unstorable(reason, request.selecting, &app.config.page.cookies));
            Exchanged::NotStorable(UnstorableResponse { response: Box::new(response), directives, why })
        }
    })
}

/// The origin's reply, with the headers of the page that it describes.
struct OriginReply<'a> {
    asked: Timestamp,
    arrived: Timestamp,
    status: StatusCode,
    headers: HeaderMap,
    item: Option<ItemId>,
    directives: &'a OriginDirectives,
}

/// The limits and the variant of a storable page.
struct Judged {
    freshness: Freshness,
    vary: VaryFields,
    variant: String,
}

impl OriginReply<'_> {
    /// Returns the lifetime of the page and its variant, or the reason why the response cannot be stored.
    fn judge(
        &self,
        request: &RenderRequest<'_>,
        popularity: Popularity,
        config: &PageConfig,
    ) -> Result<Judged, Reason> {
        if self.directives.is_personal {
            return Err(Reason::Personal);
        }
        let arrival = Arrival { at: self.arrived.into(), delay: self.arrived.since(self.asked) };
        let heuristic = heuristic(config, request.key, popularity);
        let freshness = freshness::freshness(self.status, &self.headers, arrival, &heuristic)?;
        let freshness = freshness.jittered(random_fraction());
        let mut vary = VaryFields::of(&self.headers).ok_or(Reason::VaryStar)?;
        if !config.cookies.varied.is_empty() {
            vary.insert(VARIED_COOKIES.to_owned());
        }
        config.headers.varied.iter().for_each(|name| vary.insert(name.as_str().to_owned()));
        let variant = request.selecting.variant(&vary).ok_or(Reason::Vary)?;
        Ok(Judged { freshness, vary, variant })
    }

    /// The reason why the response cannot be stored.
    fn unstorable(&self, reason: Reason, selecting: &SelectingHeaders, rules: &CookieRules) -> Unstorable {
        let cause = hit_for_miss::cause(reason, self.status, &self.headers);
        let is_new_varied = |name: String| rules.is_varied(&name) && !selecting.has_cookie(&name);
        let sets_only_varied_cookies = reason == Reason::SetCookie
            && self.headers.get_all(header::SET_COOKIE).iter().map(cookie_name).all(is_new_varied);
        Unstorable {
            reason,
            cause,
            sets_only_varied_cookies,
            item: self.item.clone(),
            tags: self.directives.tags.clone(),
        }
    }

    /// The page without its body.
    fn into_page(self, request: &RenderRequest<'_>, has_generated_etag: bool, judged: Judged) -> StoredPage {
        let Judged { freshness, vary, variant } = judged;
        let fresh_until = self.arrived + freshness.fresh;
        StoredPage {
            stamp: request.stamp,
            render: String::new(),
            stored: self.arrived - freshness.age,
            fresh_until,
            stale_until: fresh_until + freshness.stale,
            error_until: fresh_until + freshness.on_error,
            dies: self.arrived + freshness.lives,
            strict: freshness.strict,
            is_declared_shared: freshness::is_declared_shared(
                &self.headers,
                self.arrived.into(),
                request.key.is_at_shared_path(),
            ),
            vary,
            variant,
            has_generated_etag,
            item: self.item,
            tags: self.directives.tags.clone(),
            status: self.status,
            headers: self.headers,
            body: Content::default(),
            holes: Vec::new(),
        }
    }
}

/// The response's headers without the `Set-Cookie`s that the rules drop from shared renders (`COOKIES_DROPPED`).
pub fn without_dropped_cookies(mut headers: HeaderMap, rules: &CookieRules, path: &str) -> HeaderMap {
    let is_kept = |line: &HeaderValue| !rules.is_dropped(&cookie_name(line), path);
    let kept: Vec<_> = headers.get_all(header::SET_COOKIE).iter().filter(|line| is_kept(line)).cloned().collect();
    headers.remove(header::SET_COOKIE);
    for line in kept {
        headers.append(header::SET_COOKIE, line);
    }
    headers
}

/// A random number from 0 to 1; 0 without random bits.
pub(super) fn random_fraction() -> f64 {
    f64::from(random::bytes().map_or(0, u32::from_ne_bytes)) / f64::from(u32::MAX)
}
