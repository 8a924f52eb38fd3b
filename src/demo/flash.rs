//! `/flash/{item}`: the page of a flash sale. It is the same for everybody; stock and countdown come from the edge by a script.

use askama::Template;
use http::{HeaderValue, StatusCode};

use super::{
    catalogue::{Catalogue, Offer},
    pages,
};
use crate::{error::Error, fetch::Response, ids::ItemId};

#[derive(Template)]
#[template(path = "flash.html")]
struct FlashPage<'a> {
    offer: &'a Offer,
}

/// Says nothing of how long it is fresh: the edge decides that by its rank.
pub(super) async fn show(catalogue: &Catalogue<'_>, id: &ItemId) -> Result<Response, Error> {
    let offer = catalogue.flash_sale(id).await?;
    let mut response = pages::html(StatusCode::OK, &FlashPage { offer: &offer })?;
    if let Ok(tags) = HeaderValue::try_from(format!("flash,category-{}", offer.category)) {
        response.headers_mut().insert(pages::EDGE_TAGS, tags);
    }
    Ok(response)
}
