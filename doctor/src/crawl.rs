//! The sample: pages that the shop links, spread over all kinds.

use std::collections::{BTreeSet, HashMap, HashSet};

use edgefront::config::rules::UrlRules;
use http::{HeaderMap, StatusCode, header};
use reqwest::cookie::CookieStore as _;
use url::Url;
use xtask::failure::Failure;

use super::{
    kinds::{self, Shape},
    links,
    negotiation::{
        PreferenceCookie, Switchers, chosen_cookies, is_switch, lines_without, other_homes, preference_cookies,
    },
    pieces::Pieces,
    robots::Robots,
    shop::{NoPage, Page, Shop, is_trouble, redirect},
    tell_tales::Traces,
    tokens::CsrfTokens,
    visitor::{self, Visitors},
};

/// Most pages of one kind. Ten similar pages show what a hundred show.
const MAX_OF_KIND: usize = 10;
/// A query parameter makes an address wait as if its kind had so many pages already.
const PARAMETER_DELAY: usize = 5;
/// Most addresses that the doctor remembers. A calendar can link pages without end.
const MAX_ADDRESSES: usize = 3_000;
/// So many failures in a row end the crawl: the shop has trouble.
const MAX_FAILURES: u32 = 5;
/// A shorter value of a cookie is no id of a session.
const MIN_ID: usize = 16;
/// Most redirects of the first page.
const MAX_REDIRECTS: u32 = 5;
/// A page that scripts build has less text, such as a title and "Please enable JavaScript". Characters.
const MIN_TEXT: usize = 200;

/// The result of the crawl.
#[derive(Default)]
pub struct Sample {
    /// Every page is HTML with a success status.
    pub pages: Vec<Url>,
    /// All addresses that the pages link, for the patterns of the kinds.
    pub addresses: Vec<Url>,
    /// The path of each link and form of the pages, also of those that are not followed.
    pub linked: BTreeSet<String>,
    pub switchers: Switchers,
    /// Those of redirects and failed pages, too.
    pub preference_cookies: BTreeSet<PreferenceCookie>,
    pub traces: Traces,
    /// The reason why the crawl ended early, or found one page only, as a message.
    pub stopped: Option<String>,
    /// Number of links that robots.txt forbids.
    pub forbidden: usize,
}

/// The tools of a crawl.
pub struct Crawl<'a> {
    pub shop: &'a Shop,
    pub robots: &'a Robots,
    pub visitors: &'a Visitors,
    pub rules: &'a UrlRules,
}

impl Crawl<'_> {
    /// Collects at most `limit` pages, first `start`. The visitor's cookies fill up on the way, as in a browser.
    ///
    /// # Errors
    /// When the first page is not one of this shop.
    pub async fn run(&self, start: &Url, limit: usize) -> Result<Sample, Failure> {
        let mut sample = Sample::default();
        let (home, page) = self.first_page(start, &mut sample).await?;
        let mut frontier = Frontier::default();
        frontier.add(home.clone(), self.rules);
        frontier.take(&home);
        self.read(&home, &page, &mut frontier, &mut sample);
        for url in other_homes(self.shop, &home, |url| self.robots.allows(url)).await {
            frontier.add(url, self.rules);
        }
        let (mut failures, mut requests) = (0, 1);
        // Some links are no pages, so that there are more requests than pages.
        while sample.pages.len() < limit
            && requests < limit * 2
            && let Some(url) = frontier.next()
        {
            eprintln!("...  page {} of at most {limit}: {url}", sample.pages.len() + 1);
            requests += 1;
            let answer = self.get(&url, &mut sample).await;
            let has_failed = answer.as_ref().map_or(true, |page| page.status.is_server_error());
            failures = if has_failed { failures + 1 } else { 0 };
            if answer.as_ref().is_ok_and(|page| page.status == StatusCode::TOO_MANY_REQUESTS) {
                sample.stopped = Some("the shop answered 429 Too Many Requests; try a longer --pause".to_owned());
                break;
            }
            if failures == MAX_FAILURES {
                sample.stopped = Some(format!("{MAX_FAILURES} requests in a row failed, the last one was {url}"));
                break;
            }
            if let Ok(page) = answer {
                self.read(&url, &page, &mut frontier, &mut sample);
            }
        }
        if frontier.addresses.len() == 1 && sample.forbidden == 0 {
            sample.stopped = Some(without_links(&page.text(), &home));
        }
        sample.addresses = frontier.addresses;
        Ok(sample)
    }

    /// Requests an address with the visitor's cookies. An address that sets a language or a currency gets no cookies: the session would keep the choice.
    async fn get(&self, url: &Url, sample: &mut Sample) -> Result<Page, NoPage> {
        let own = Some(&self.visitors.own).filter(|_| !is_switch(url));
        let page = self.shop.get(url, own.and_then(|own| own.cookies(url)).as_ref()).await?;
        // The visitor of the crawl keeps the default choice, so that all pages belong to it.
        let home = sample.pages.first().unwrap_or(url);
        let chosen = chosen_cookies(url, &page, home);
        sample.switchers.redirects.add(url, &page, home);
        if let Some(own) = own {
            own.set_cookies(&mut lines_without(&page.headers, &chosen), url);
        }
        sample.preference_cookies.extend(chosen);
        sample.preference_cookies.extend(preference_cookies(&page.headers));
        Ok(page)
    }

    /// Requests the first page and follows its redirects on this host.
    async fn first_page(&self, start: &Url, sample: &mut Sample) -> Result<(Url, Page), Failure> {
        let mut url = start.clone();
        for _ in 0..=MAX_REDIRECTS {
            if !self.robots.allows(&url) {
                let cause = format!("robots.txt forbids {url}");
                return Err(Failure::new(cause, "allow the user agent edgefront-doctor, or start at another page"));
            }
            eprintln!("...  {url}");
            let page = self.get(&url, sample).await.map_err(|error| error.failure(&url))?;
            if let Some(status) = edgefront_status(&page.headers) {
                let cause = format!("{url} is edgefront itself (Cache-Status: {status})");
                return Err(Failure::new(cause, "examine the shop's own address, which edgefront has in ORIGIN_URL"));
            }
            let Some(target) = redirect(page.status, &page.headers, &url) else {
                return check_first(url, page);
            };
            if target.origin() != start.origin() {
                let cause = format!("{url} redirects to another host, {target}");
                return Err(Failure::new(cause, format!("run cargo xtask doctor {target}")));
            }
            url = target;
        }
        Err(Failure::new(format!("{start} redirects more than {MAX_REDIRECTS} times"), "start at another page"))
    }

    /// Adds a page and its links.
    fn read(&self, url: &Url, page: &Page, frontier: &mut Frontier, sample: &mut Sample) {
        let target = redirect(page.status, &page.headers, url);
        let html = page.start();
        let mut found: Vec<_> = target.and_then(|target| links::page_of_site(target, url)).into_iter().collect();
        if page.status.is_success() && page.is_html() {
            found.extend(links::of_page(&html, url));
            sample.linked.extend(links::paths(&html, url));
            let may_request =
                |link: &Url| links::page_of_site(link.clone(), url).is_some_and(|link| self.robots.allows(&link));
            sample.switchers.add_forms(&html, url, may_request);
            sample.traces.look_at(page, &found);
            self.shop.remember(Pieces::of(&html, CsrfTokens::Personal).texts());
            sample.pages.push(url.clone());
        }
        let own = self.visitors.own.cookies(url);
        let values: Vec<_> = own.iter().flat_map(visitor::pairs).map(|(_, value)| value).collect();
        let ids: Vec<_> = values.into_iter().filter(|value| value.len() >= MIN_ID).collect();
        for link in found.into_iter().map(|link| links::without_session(link, &ids)) {
            if self.robots.allows(&link) {
                sample.switchers.add_link(&link);
                frontier.add(link, self.rules);
            } else {
                sample.linked.insert(link.path().to_owned());
                sample.forbidden += 1;
            }
        }
    }
}

/// The message about a shop of one page. A copy of a shop may link the public shop. Scripts without text suggest, but do not
/// prove, that the links need JavaScript.
fn without_links(html: &str, page: &Url) -> String {
    if let Some((site, links)) = links::other_site(html, page) {
        return format!(
            "the page has no links to other pages at this address, but {links} to {site}: set the address {} in the shop, or \
             examine {site}",
            page.origin().ascii_serialization()
        );
    }
    let pieces = Pieces::of(html, CsrfTokens::Personal);
    let cause = if pieces.has_scripts() && pieces.text_after(0, MIN_TEXT).chars().count() < MIN_TEXT {
        "is probably built by JavaScript, which the doctor does not run"
    } else {
        "is the only one that was examined"
    };
    format!("the page has no links to other pages of the shop, and {cause}")
}

fn check_first(url: Url, page: Page) -> Result<(Url, Page), Failure> {
    if !page.status.is_success() {
        let remedy = match page.status {
            StatusCode::UNAUTHORIZED => {
                "let this machine in without a password; edgefront shares no page that needs one"
            }
            status if is_trouble(status) => "try again when the shop answers, with a longer --pause",
            _ => "start at a page that visitors can see",
        };
        return Err(Failure::new(format!("{url} answers {}", page.status), remedy));
    }
    if !page.is_html() {
        let kind = page.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no type");
        return Err(Failure::new(
            format!("{url} is not HTML ({kind})"),
            "start at a page of the shop, such as its home page",
        ));
    }
    Ok((url, page))
}

/// The member of `Cache-Status` that edgefront adds (RFC 9211, section 2). None if the response does not come from
/// edgefront.
fn edgefront_status(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all("cache-status").iter().filter_map(|value| value.to_str().ok());
    let mut members = values.flat_map(|value| value.split(',')).map(str::trim);
    members.find(|member| member.split(';').next().is_some_and(|name| name.trim_end() == "edgefront"))
}

/// The addresses that are known. The next one is of the kind with the fewest pages so far, so that a list without an
/// end does not fill the sample.
#[derive(Default)]
struct Frontier {
    addresses: Vec<Url>,
    shapes: Vec<Shape>,
    taken: Vec<bool>,
    known: HashSet<String>,
}

impl Frontier {
    fn add(&mut self, url: Url, rules: &UrlRules) {
        if self.addresses.len() < MAX_ADDRESSES && self.known.insert(url.to_string()) {
            self.shapes.push(Shape::of(&url, rules));
            self.addresses.push(url);
            self.taken.push(false);
        }
    }

    fn take(&mut self, url: &Url) {
        for (taken, _) in self.taken.iter_mut().zip(&self.addresses).filter(|(_, own)| *own == url) {
            *taken = true;
        }
    }

    /// Takes an address. None if no kind needs more pages.
    fn next(&mut self) -> Option<Url> {
        let patterns = kinds::patterns(&self.shapes);
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (pattern, _) in patterns.iter().zip(&self.taken).filter(|(_, taken)| **taken) {
            *counts.entry(pattern).or_default() += 1;
        }
        let count = |pattern: &String| counts.get(pattern.as_str()).copied().unwrap_or_default();
        let free = patterns.iter().zip(&self.taken).enumerate().filter(|(_, (_, taken))| !**taken);
        let few = free.map(|(index, (pattern, _))| (count(pattern), index)).filter(|(count, _)| *count < MAX_OF_KIND);
        // Filters of a list have many combinations, so pages with parameters come later.
        let delay = |index: usize| self.shapes.get(index).map_or(0, Shape::parameters) * PARAMETER_DELAY;
        let (_, index) = few.map(|(count, index)| (count + delay(index), index)).min()?;
        *self.taken.get_mut(index)? = true;
        self.addresses.get(index).cloned()
    }
}
