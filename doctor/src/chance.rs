//! Pages with several versions by chance. A shop that streams a page sends its parts in the order in which their data arrive.
//! A difference by chance belongs to no visitor.

use edgefront::page_cache::PageKey;

use super::{
    difference::{Difference, DifferenceKind},
    examine::{A_SECOND, Examiner},
    render::SharedRender,
};

/// Further renders of a page whose first two renders differ visibly.
const MORE_RENDERS: usize = 3;

impl Examiner<'_> {
    /// A render for a visitor without cookies, and its differences from a render for another one. None as for
    /// [`Examiner::examine`].
    ///
    /// If the two renders differ visibly, further visitors request the page. If one of them sees the same page as one of the first
    /// two visitors, the page has several versions by chance. They request it a second later, so that a clock has changed.
    pub async fn two_renders(&self, key: &PageKey) -> Option<(SharedRender, Vec<Difference>)> {
        let first = self.render(key).await?;
        let second = self.render(key).await?;
        let differences = self.compare(&first, second.status, &second.text(), &[]);
        if looks_same(&differences) {
            return Some((first, differences));
        }
        tokio::time::sleep(A_SECOND).await;
        for _ in 0..MORE_RENDERS {
            let other = self.render(key).await?;
            for earlier in [&first, &second] {
                let differences = self.compare(&other, earlier.status, &earlier.text(), &[]);
                if looks_same(&differences) {
                    return Some((other, differences));
                }
            }
        }
        Some((first, differences))
    }
}

/// The places of a page that differ between renders for everybody.
pub struct Noise {
    pub places: Vec<Difference>,
    pub has_later_render: bool,
}

impl Noise {
    pub fn remove_from(&self, differences: &mut Vec<Difference>) {
        differences.retain(|found| !self.places.iter().any(|noise| noise.explains(found)));
    }
}

/// Returns whether visitors see the same page.
pub fn looks_same(differences: &[Difference]) -> bool {
    !differences.iter().any(|found| matches!(found.kind, DifferenceKind::VisibleText | DifferenceKind::Status))
}
