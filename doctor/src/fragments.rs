//! Fragments (ESI) that the shop makes for one visitor, although the request names none.

use super::examine::Examined;

/// Longest address that the note quotes, characters.
const MAX_ADDRESS: usize = 80;

/// A note on such fragments: one address for each path.
pub fn note(examined: &[Examined]) -> Option<String> {
    let mut addresses: Vec<&str> = Vec::new();
    let private = examined.iter().flat_map(|page| &page.fragments).filter(|fragment| fragment.is_private);
    for address in private.map(|fragment| fragment.src.as_str()) {
        let path = |address: &str| address.split('?').next().unwrap_or_default().to_owned();
        if !addresses.iter().any(|known| path(known) == path(address)) {
            addresses.push(address);
        }
    }
    let quotes: Vec<_> =
        addresses.iter().map(|address| address.chars().take(MAX_ADDRESS).collect::<String>()).collect();
    (!quotes.is_empty()).then(|| {
        format!(
            "the shop makes fragments for one visitor also if a visitor has no cookie, so each page with such a fragment costs the \
             shop one request for it: {}; let visitors without a session share them, with Cache-Control: public, s-maxage=60",
            quotes.join(", ")
        )
    })
}
