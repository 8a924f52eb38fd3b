//! `Vary: User-Agent`: computers and phones.

use http::header;
use url::Url;

use super::{SAME_RISK, Values, compare::ComparedPage};
use crate::shop::Shop;

const COMPUTER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/142.0.0.0 Safari/537.36";
const CRAWLER: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
/// The word by which the User-Agent of phones differs.
const PHONE: &str = "Mobile";
const PHONES: [&str; 2] = [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 \
        Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
];

const PHONE_RISK: &str = "a client with the word Mobile in its User-Agent gets the page for phones, and all others get \
    the page for computers.";

/// The classes of devices for which the shop sends pages. None if it did not answer. `is_named`: in `Vary`. Otherwise, only a
/// difference between a computer and a phone leads to further requests.
pub async fn values(shop: &Shop, pages: &[&Url], is_named: bool) -> Option<Values> {
    let (mut phones_differ, mut is_known) = (false, true);
    for url in pages {
        let mut page = ComparedPage::new(shop, url, header::USER_AGENT, COMPUTER).await?;
        if !is_named && page.is_same(PHONES[0]).await? {
            continue;
        }
        // edgefront sends `edgefront` for all other clients.
        let is_same = page.is_same("edgefront").await? && page.is_same(CRAWLER).await?;
        let mut phone = ComparedPage::new(shop, url, header::USER_AGENT, PHONE).await?;
        let are_phones = phone.is_same(PHONES[0]).await? && phone.is_same(PHONES[1]).await?;
        phones_differ |= !page.is_same(PHONE).await?;
        is_known &= is_same && are_phones;
    }
    Some(match (is_known, phones_differ) {
        (false, _) => Values::Unknown,
        (true, true) => Values::Listed { values: vec![PHONE], risk: PHONE_RISK },
        (true, false) => Values::Listed { values: Vec::new(), risk: SAME_RISK },
    })
}
