//! The keys of recent URLs, and the items that the origin named for pages.

use std::{cell::RefCell, collections::HashMap};

use super::super::{key::PageKey, policy::Reason};
use crate::{config::rules::UrlRules, schema::ids::ItemId};

/// Largest number of remembered URLs, and of pages with a named item. Parsing a URL takes as long as the rest of a local hit.
const MAX_URLS: usize = 2_000;
/// Longest remembered URL, bytes.
const MAX_URL: usize = 500;

/// See the [module](self).
#[derive(Default)]
pub struct PageKeys {
    by_url: RefCell<HashMap<String, PageKey>>,
    /// The items that the origin named, by the page's hash.
    named: RefCell<HashMap<String, ItemId>>,
}

impl PageKeys {
    /// The key of a URL: [`PageKey::of_url`], with the item that the origin named for the page.
    ///
    /// # Errors
    /// As [`PageKey::of_url`].
    pub fn of_url(&self, url: String, rules: &UrlRules) -> Result<PageKey, Reason> {
        let key = self.without_name(url, rules)?;
        let named = self.named.borrow();
        let item = named.get(key.hash());
        Ok(if item.is_some() { key.naming(item) } else { key })
    }

    /// Remembers the item that the origin named for the page of `key`, or that it named none.
    pub fn name(&self, key: &PageKey) {
        let mut named = self.named.borrow_mut();
        match key.named() {
            None => drop(named.remove(key.hash())),
            Some(item) if named.get(key.hash()) == Some(item) => {}
            Some(item) => {
                if named.len() >= MAX_URLS {
                    named.clear();
                }
                named.insert(key.hash().to_owned(), item.clone());
            }
        }
    }

    fn without_name(&self, url: String, rules: &UrlRules) -> Result<PageKey, Reason> {
        let mut keys = self.by_url.borrow_mut();
        if let Some(key) = keys.get(&url) {
            return Ok(key.clone());
        }
        let key = PageKey::of_url(&url, rules)?;
        if url.len() <= MAX_URL {
            if keys.len() >= MAX_URLS {
                keys.clear();
            }
            keys.insert(url, key.clone());
        }
        Ok(key)
    }
}
