//! One page of the sample: edgefront's decision, and the page as each visitor sees it.

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    page_cache::{
        PageKey, Reason, SelectingHeaders, StoredPage,
        holes::{Hole, IncludedHole},
        policy::{CacheControl, VaryFields},
    },
};
use http::HeaderValue;
use url::Url;

use super::{
    chance::{MORE_RENDERS, Noise, may_be_chance},
    cookies,
    difference::{self, Difference},
    links,
    pieces::Pieces,
    random,
    render::{self, NotStored, SharedRender, set_cookies},
    shop::{Page, Shop, is_trouble},
    template::Template,
    tokens::{self, CsrfTokens},
    visitor::{self, Visitor, Visitors},
};

/// Two renders with this pause show whether a page has a time in seconds.
pub const A_SECOND: Duration = Duration::from_millis(1_050);
/// Most differences that are named for one visitor at one page.
const MAX_NAMED: usize = 20;

/// An examined page.
pub struct Examined {
    pub url: Url,
    /// The canonical path; the path of the address if edgefront admits no page there.
    pub path: String,
    /// Ok: edgefront stores the page.
    pub verdict: Result<(), NotStored>,
    /// `Cache-Control` and the like address shared caches: `public`, `s-maxage`.
    pub is_declared_shared: bool,
    /// Names of the cookies that the page sets for a visitor without cookies.
    pub set_cookies: Vec<String>,
    /// Name and value of each cookie that the page sets for two visitors without the shop's cookies.
    pub assigned_cookies: Vec<(String, String)>,
    /// See [`cookies::equal_values`], for two visitors without the shop's cookies.
    pub equal_cookies: Vec<(String, String)>,
    /// See [`tokens::double_submit_cookie`].
    pub csrf_cookie: Option<String>,
    /// The request headers that select the page. None: `Vary: *`.
    pub vary: Option<VaryFields>,
    /// `cache-control: …` and `vary: …`, as far as the response has them.
    pub headers: Vec<String>,
    /// The differences of two renders for two visitors without cookies. None: not compared.
    pub renders_differ: Option<Vec<Difference>>,
    /// Further differences of the two renders: invisible values that change at each request of the same visitor, too.
    pub noise: Vec<Difference>,
    /// See [`Examiner::has_random_content`].
    pub has_random_content: bool,
    /// The paths of the shop to which forms of the page are sent by POST.
    pub posts_to: Vec<String>,
    /// The fragments of the stored page (ESI).
    pub fragments: Vec<IncludedHole>,
    /// None: nobody asked for the page.
    pub template: Option<Template>,
    pub visits: Vec<Visit>,
}

/// One visitor at one page.
#[derive(Debug)]
pub struct Visit {
    pub visitor: Visitor,
    /// The names of the visitor's cookies that a shared page must not ignore: personal ones, and those without a rule.
    pub cookies: Vec<String>,
    /// The names of the visitor's cookies if the rules ignore all of them. None: the visitor has no cookies, or one that
    /// counts, or is signed in.
    pub ignored: Option<Vec<String>>,
    /// The names of either list that a rule may make personal.
    pub maybe_personal: Vec<String>,
    /// edgefront answers with the stored page.
    pub gets_stored_page: bool,
    /// The differences between the shared page, in the variant of this visitor, and the visitor's own. Places that
    /// differ for every request are left out. Empty: the page is the same.
    pub differences: Vec<Difference>,
}

/// Asks for pages in all roles.
pub struct Examiner<'a> {
    pub app: Rc<App>,
    pub shop: &'a Shop,
    pub visitors: &'a Visitors,
}

impl Examiner<'_> {
    /// Examines a page. None if the shop does not answer each request, or is in trouble: a page of errors beside a page
    /// would look like a difference of two visitors.
    pub async fn examine(&self, url: &Url) -> Option<Examined> {
        let key = match PageKey::of_url(url.as_str(), &self.app.config.page.urls) {
            Ok(key) => key,
            Err(reason) => return Some(Examined::without_page(url, NotStored { reason, cause: String::new() })),
        };
        let (first, between_renders) = self.two_renders(&key).await?;
        if let Some(why) = first.stored.as_ref().err().filter(|why| why.reason == Reason::Esi) {
            return Some(Examined::without_page(url, why.clone()));
        }
        let mut own = Vec::new();
        for (visitor, cookies) in self.visitors.with_cookies(url) {
            own.push((visitor, self.own_page(&key, url, &cookies).await?, cookies));
        }
        let mut noise = Noise { places: between_renders.clone(), has_later_render: false };
        let of_requests = self.noise_of_requests(&first, &between_renders, (&key, url), &own).await?;
        let renders_differ: Vec<_> = between_renders.into_iter().filter(|found| !of_requests.contains(found)).collect();
        let has_random_content = self.has_random_content(&first, &renders_differ, (&key, url), &own).await?;
        let stored = first.stored.as_ref().ok().map(|page| &**page);
        let mut visits = vec![Visit {
            visitor: Visitor::WithoutCookies,
            cookies: Vec::new(),
            ignored: None,
            maybe_personal: Vec::new(),
            gets_stored_page: self.gets(stored, None),
            differences: Vec::new(),
        }];
        for (visitor, page, cookies) in &own {
            let variant = visitor::variant(cookies, &self.app.config.page);
            let render = match &variant {
                Some(selecting) => Some(self.variant(&key, selecting).await?),
                None => None,
            };
            let mut noise_of_variant = Noise::default();
            let (shared, noise) =
                render.as_ref().map_or((&first, &mut noise), |render| (render, &mut noise_of_variant));
            let is_signed_in = *visitor == Visitor::SignedIn;
            let variant = variant.unwrap_or_default();
            let request = VisitorRequest { key: &key, url, cookies, variant, is_signed_in };
            let mut differences = self.of_visitor(shared, page, &request, noise).await?;
            if has_random_content && *visitor == Visitor::WithAnalytics {
                // The shop does not know this visitor either.
                differences.retain(random::is_personal);
            }
            let gets_stored_page = self.gets(shared.stored.as_ref().ok().map(|page| &**page), Some(cookies));
            let rules = &self.app.config.page.cookies;
            let ignored = visitor::ignored_cookies(cookies, rules).filter(|_| *visitor != Visitor::SignedIn);
            let cookies = visitor::identifying_cookies(cookies, rules);
            let mut maybe_personal = ignored.as_ref().unwrap_or(&cookies).clone();
            maybe_personal.retain(|name| visitor::may_be_personal(name, rules));
            visits.push(Visit { visitor: *visitor, cookies, ignored, maybe_personal, gets_stored_page, differences });
        }
        // The visitor with analytics cookies has none of the shop's, so the shop sets all of them.
        let (headers, text) =
            own.first().map_or_else(|| (&first.headers, first.text()), |(_, page, _)| (&page.headers, page.text()));
        // The shop fills the fragments of a request that does not announce ESI: they may have forms.
        let has_esi = own.first().is_some_and(|(_, page, _)| page.has_esi());
        let filled = if has_esi { self.shop.get(url, None).await.ok() } else { None };
        let targets = links::of_forms(&filled.as_ref().map_or_else(|| text.clone(), Page::text), url);
        let fragments = first.stored.iter().flat_map(|page| &page.holes).filter_map(Hole::include);
        Some(Examined {
            url: url.clone(),
            path: key.path().to_owned(),
            is_declared_shared: CacheControl::of_response(headers).is_declared_shared(),
            set_cookies: set_cookies(headers),
            assigned_cookies: [&first.headers, headers].into_iter().flat_map(render::set_cookie_pairs).collect(),
            equal_cookies: cookies::equal_values(&first.headers, headers),
            csrf_cookie: tokens::double_submit_cookie(headers, &text),
            vary: VaryFields::of(headers),
            headers: render::deciding_headers(headers),
            template: Some(Template::of(first.status, &text, key.path())),
            fragments: fragments.cloned().collect(),
            verdict: first.verdict(),
            posts_to: targets.iter().map(|target| target.path().to_owned()).collect(),
            renders_differ: Some(renders_differ.into_iter().take(MAX_NAMED).collect()),
            noise: of_requests,
            has_random_content,
            visits,
        })
    }

    /// The differences between the page for everybody and a visitor's own, without what differs for every request.
    ///
    /// A clock may show the same time in the first two renders. If the visitor's page differs, a later render for
    /// everybody shows whether the place changes by itself. A second page of the visitor shows which pieces change for
    /// every request: they are left out if another difference remains. Alone, such a piece stays a difference, because
    /// it may be a count of this visitor.
    async fn of_visitor(
        &self,
        first: &SharedRender,
        page: &Page,
        request: &VisitorRequest<'_>,
        noise: &mut Noise,
    ) -> Option<Vec<Difference>> {
        let values: Vec<_> = visitor::pairs(request.cookies).map(|(_, value)| value.trim().to_owned()).collect();
        let mut differences = self.compare(first, page.status, &page.text(), &values);
        noise.remove_from(&mut differences);
        if differences.is_empty() {
            return Some(differences);
        }
        if !noise.has_later_render {
            noise.has_later_render = true;
            let later = self.variant(request.key, &request.variant).await?;
            noise.places.extend(self.compare(first, later.status, &later.text(), &[]));
        }
        // A page of an account mostly differs for a reason.
        let mut attempts = if request.is_signed_in { 1 } else { MORE_RENDERS };
        let again = loop {
            let again = self.own_page(request.key, request.url, request.cookies).await?;
            let mut of_again = self.compare(first, again.status, &again.text(), &values);
            noise.remove_from(&mut of_again);
            // The page has several versions by chance.
            if !may_be_chance(&of_again) && (of_again.is_empty() || may_be_chance(&differences)) {
                return Some(of_again);
            }
            attempts -= 1;
            if attempts == 0 || !may_be_chance(&of_again) {
                break again;
            }
        };
        if first.status == page.status && page.status == again.status {
            let one = Pieces::of(&first.text(), self.csrf_tokens());
            let other = Pieces::of(&page.text(), self.csrf_tokens()).compared_with(&again.text());
            differences = difference::between(&one, &other, &values);
        }
        noise.remove_from(&mut differences);
        if differences.iter().any(|found| !found.is_changing) {
            differences.retain(|found| !found.is_changing);
        }
        differences.truncate(MAX_NAMED);
        Some(differences)
    }

    /// The page for everybody, or for the first [group](crate::groups) of visitors. Its body lacks the holes and fragments, which
    /// edgefront fills for each visitor.
    pub async fn render(&self, key: &PageKey) -> Option<SharedRender> {
        self.variant(key, &self.visitors.group_variant(&self.app.config.page)).await
    }

    /// The page for visitors with this variant. Its body lacks the same parts as that of [`Examiner::render`].
    pub async fn variant(&self, key: &PageKey, selecting: &SelectingHeaders) -> Option<SharedRender> {
        let mut render = render::variant(&self.app, key, selecting).await?;
        if let Some(template) = self.shop.template(key.url()) {
            render.body = render::without_fragments(&self.app, key, template);
        }
        render.body = render::without_holes(&self.app, key, render.body).await;
        Some(render)
    }

    /// The page that a visitor gets from the shop through edgefront, without the holes and fragments. A personal request does not
    /// announce ESI, but only with ESI the shop marks the fragments.
    pub async fn own_page(&self, key: &PageKey, url: &Url, cookies: &HeaderValue) -> Option<Page> {
        let cookies = visitor::behind_edgefront(cookies, &self.app.config.page.cookies);
        let mut page = self.shop.get_with_esi(url, &cookies).await.ok().filter(|page| !is_trouble(page.status))?;
        if page.has_esi() {
            page.body = render::without_fragments(&self.app, key, page.body);
        }
        page.body = render::without_holes(&self.app, key, page.body).await;
        Some(page)
    }

    fn gets(&self, stored: Option<&StoredPage>, cookies: Option<&HeaderValue>) -> bool {
        stored.is_some_and(|page| visitor::gets(page, cookies, &self.app.config.page))
    }

    /// The differences between a render for everybody and another render.
    pub fn compare(
        &self,
        shared: &SharedRender,
        status: http::StatusCode,
        other: &str,
        cookies: &[String],
    ) -> Vec<Difference> {
        if shared.status != status {
            return vec![Difference::of_status(shared.status, status)];
        }
        let pieces = |html: &str| Pieces::of(html, self.csrf_tokens());
        difference::between(&pieces(&shared.text()), &pieces(other), cookies)
    }

    pub fn csrf_tokens(&self) -> CsrfTokens {
        let is_covered = self.app.config.page.cookies.csrf.is_some();
        if is_covered { CsrfTokens::Covered } else { CsrfTokens::Personal }
    }
}

/// The request of a visitor with cookies.
struct VisitorRequest<'a> {
    key: &'a PageKey,
    url: &'a Url,
    cookies: &'a HeaderValue,
    /// See [`visitor::variant`].
    variant: SelectingHeaders,
    is_signed_in: bool,
}

impl Examined {
    /// A page that is not compared: edgefront never shares it, or refuses it.
    fn without_page(url: &Url, why: NotStored) -> Self {
        let visit = |visitor| Visit {
            visitor,
            cookies: Vec::new(),
            ignored: None,
            maybe_personal: Vec::new(),
            gets_stored_page: false,
            differences: Vec::new(),
        };
        Self {
            url: url.clone(),
            path: url.path().to_owned(),
            verdict: Err(why),
            is_declared_shared: false,
            set_cookies: Vec::new(),
            assigned_cookies: Vec::new(),
            equal_cookies: Vec::new(),
            csrf_cookie: None,
            vary: Some(VaryFields::default()),
            headers: Vec::new(),
            renders_differ: None,
            noise: Vec::new(),
            has_random_content: false,
            posts_to: Vec::new(),
            fragments: Vec::new(),
            template: None,
            visits: [Visitor::WithoutCookies, Visitor::WithAnalytics].map(visit).into(),
        }
    }

    /// The differences that make it wrong to store the page: between two visitors' renders, or between the stored page and the own page
    /// of a visitor who gets the stored one. None if the page is not stored, or is the same for all of them.
    pub fn unsafe_to_share(&self) -> Option<Vec<Difference>> {
        self.verdict.as_ref().ok()?;
        let visits = self.visits.iter().filter(|visit| visit.gets_stored_page).flat_map(|visit| &visit.differences);
        let differences: Vec<_> = self.lasting_differences().chain(visits).cloned().collect();
        (!differences.is_empty()).then_some(differences)
    }

    /// Returns whether both pages are not stored for the same reason.
    pub fn is_refused_as(&self, other: &Self) -> bool {
        let reason = |page: &Self| page.verdict.as_ref().err().map(|why| why.reason);
        reason(self).is_some() && reason(self) == reason(other)
    }

    /// Returns whether a stored page answers this visit, without a request to the shop.
    pub const fn is_hit(&self, visit: &Visit) -> bool {
        self.verdict.is_ok() && visit.gets_stored_page
    }

    /// Returns whether the shop says that the page is the same for all visitors.
    pub fn is_claimed(&self) -> bool {
        self.is_declared_shared && !self.varies_by("cookie")
    }

    /// Returns whether the shop says that the page depends on this request header.
    pub fn varies_by(&self, header: &str) -> bool {
        self.vary.as_ref().is_none_or(|fields| fields.contains(header))
    }

    /// Returns whether the renders for two visitors without cookies differ.
    pub fn has_different_renders(&self) -> bool {
        self.renders_differ.iter().flatten().next().is_some()
    }

    /// The differences between the renders for two visitors without cookies. Random content is none: it belongs to no visitor.
    pub fn lasting_differences(&self) -> impl Iterator<Item = &Difference> {
        self.renders_differ.iter().flatten().filter(|_| !self.has_random_content)
    }

    /// The cookies of the signed-in visitor, if this visitor's page equals the shared page. The account has a basket, so a personal page
    /// would differ.
    pub fn harmless_cookies(&self) -> Vec<String> {
        let is_harmless = |visit: &&Visit| visit.visitor == Visitor::SignedIn && visit.differences.is_empty();
        self.visits.iter().filter(is_harmless).flat_map(|visit| &visit.cookies).cloned().collect()
    }

    /// The cookies of visitors whose own page differs, if a rule may make the cookies personal.
    pub fn personal_cookies(&self, needs_rule: impl Fn(&str) -> bool) -> Vec<&str> {
        let is_other = |visit: &&Visit| visit.differences.iter().any(|found| !found.kind.is_token());
        let names = self.visits.iter().filter(is_other).flat_map(|visit| &visit.maybe_personal).map(String::as_str);
        let mut names: Vec<_> = names.filter(|name| needs_rule(name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns whether visitors get pages that differ in CSRF tokens only.
    pub fn differs_in_tokens(&self) -> bool {
        let visits = self.visits.iter().flat_map(|visit| &visit.differences);
        self.renders_differ.iter().flatten().chain(visits).all(|found| found.kind.is_token())
    }

    /// Returns whether the renders for two visitors without cookies differ in nonces of a content security policy only.
    pub fn differs_in_nonces(&self) -> bool {
        self.has_different_renders() && self.renders_differ.iter().flatten().all(|found| found.changes.are_nonces)
    }

    /// Returns whether the page differs between visitors, apart from signed-in ones with a cookie that identifies them.
    pub fn has_differences(&self) -> bool {
        let is_protected = |visit: &&Visit| visit.visitor == Visitor::SignedIn && !visit.cookies.is_empty();
        let visits = self.visits.iter().filter(|visit| !is_protected(visit));
        self.renders_differ.iter().flatten().chain(visits.flat_map(|visit| &visit.differences)).next().is_some()
    }
}
