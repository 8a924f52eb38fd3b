//! `/categories/{id}` and `/search`: a list of products with filters, page by page.
//!
//! Equal lists have one URL, so they have one stored page: a form's spelling of a URL is redirected to the canonical one.
//! The number of stored pages is bounded. Every list of a category may be stored. A search may be stored without
//! filters, and only for one word that the catalogue has.

use askama::Template;
use http::{HeaderName, HeaderValue, StatusCode, header::CACHE_CONTROL};
use serde_json::json;

use super::{EDGE_TAGS, Frame, html, see_other};
use crate::{
    demo::{
        Shop,
        catalogue::{ListQuery, Listing, SORTS, Sort},
    },
    ports::{error::Error, fetch::Response},
};

const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");
/// For a minute, then stale for ten while one request renders the page again.
const FRESHNESS: HeaderValue = HeaderValue::from_static("max-age=60, stale-while-revalidate=600");

#[derive(Template)]
#[template(path = "listing.html")]
struct ListPage<'a> {
    frame: Frame<'a>,
    heading: &'a str,
    /// The URL without its query.
    path: &'a str,
    query: &'a ListQuery,
    listing: &'a Listing,
    /// Counts from 1.
    page: u32,
}

impl ListPage<'_> {
    /// Without words, popularity is the default.
    fn sorts(&self) -> impl Iterator<Item = &'static Sort> {
        let has_words = !self.query.words.is_empty();
        SORTS.iter().filter(move |sort| has_words || sort.name != "popular")
    }

    /// The URL of the page `step` pages from this one.
    fn page_url(&self, step: i32) -> String {
        format!("{}{}", self.path, self.query.at_page(self.page.saturating_add_signed(step)))
    }

    fn unfiltered(&self) -> String {
        format!("{}{}", self.path, self.query.unfiltered())
    }
}

pub(in crate::demo) async fn category(
    shop: Shop<'_>,
    id: &str,
    query: &ListQuery,
    raw: &str,
) -> Result<Response, Error> {
    let path = format!("/categories/{id}");
    if let Some(redirect) = to_canonical(&path, query, raw)? {
        return Ok(redirect);
    }
    let listing = shop.catalogue().category(id, query).await?;
    let (name, blurb) = listing.category.as_ref().map_or(("", ""), |category| (&category.name, &category.blurb));
    let mut frame = Frame::public(name, blurb, shop.site, &path);
    frame.category = id;
    let list = json!({"@context": "https://schema.org", "@type": "BreadcrumbList", "itemListElement": [
        {"@type": "ListItem", "position": 1, "name": "Home", "item": format!("{}/", shop.site)},
        {"@type": "ListItem", "position": 2, "name": name}]});
    frame.data = Some(list);
    let mut response = page(frame, name, &path, query, &listing)?;
    if !query.is_foreign {
        response.headers_mut().insert(CDN_CACHE_CONTROL, FRESHNESS);
        response.headers_mut().extend(HeaderValue::try_from(format!("category-{id}")).map(|tag| (EDGE_TAGS, tag)));
    }
    Ok(response)
}

pub(in crate::demo) async fn search(shop: Shop<'_>, query: &ListQuery, raw: &str) -> Result<Response, Error> {
    if let Some(redirect) = to_canonical("/search", query, raw)? {
        return Ok(redirect);
    }
    let listing = shop.catalogue().search(query).await?;
    let text = query.text();
    let heading = match listing.facets.lines {
        _ if text.is_empty() => "All products".to_owned(),
        0 => format!("No results for “{text}”"),
        _ => format!("Results for “{text}”"),
    };
    let canonical = canonical_search(query, &listing);
    let description = format!("{}: {} in stock.", heading, listing.facets.in_stock);
    let mut frame = if listing.cards.is_empty() {
        Frame { title: (&*heading).into(), ..Frame::default() }
    } else {
        Frame::public(&heading, &description, shop.site, &canonical)
    };
    frame.search = &text;
    let mut response = page(frame, &heading, "/search", query, &listing)?;
    let is_bounded = query.words.len() <= 1
        && listing.facets.known_words == query.words.len()
        && !query.is_filtered()
        && !query.is_foreign;
    let headers = response.headers_mut();
    if is_bounded {
        headers.insert(CDN_CACHE_CONTROL, FRESHNESS);
    } else {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=30"));
    }
    Ok(response)
}

/// The URL that search engines list for a search: the words that were found, without filters, order and page.
fn canonical_search(query: &ListQuery, listing: &Listing) -> String {
    let corrected =
        listing.corrected.as_ref().map(|text| ListQuery { words: vec![text.clone()], ..ListQuery::default() });
    format!("/search{}", corrected.as_ref().unwrap_or(query).unfiltered())
}

/// Redirects to the canonical URL of the list; None at that URL. A URL with an unknown parameter, such as a campaign's,
/// is answered and not stored.
fn to_canonical(path: &str, query: &ListQuery, raw: &str) -> Result<Option<Response>, Error> {
    let page = query.page.ok_or(Error::NotFound("page"))?.get();
    let canonical = query.at_page(page);
    let is_canonical = canonical.strip_prefix('?').unwrap_or_default() == raw;
    Ok((!is_canonical && !query.is_foreign).then(|| see_other(&format!("{path}{canonical}"))))
}

fn page(frame: Frame<'_>, heading: &str, path: &str, query: &ListQuery, listing: &Listing) -> Result<Response, Error> {
    let page = query.page.map_or(1, std::num::NonZeroU32::get);
    html(StatusCode::OK, &ListPage { frame, heading, path, query, listing, page })
}
