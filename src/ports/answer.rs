//! A response together with the background tasks that follow it.

use futures_util::future::LocalBoxFuture;

use super::fetch::Response;

/// A task that runs after the response: the visitor does not wait for it.
pub type BackgroundTask = LocalBoxFuture<'static, ()>;

/// A response and its background tasks. A Worker gives them at most 30 s (`waitUntil`).
pub struct Answer {
    pub response: Response,
    pub background: Vec<BackgroundTask>,
}

impl Answer {
    /// Adds a background task, if there is one.
    #[must_use]
    pub fn followed_by(mut self, task: Option<BackgroundTask>) -> Self {
        self.background.extend(task);
        self
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self { response, background: Vec::new() }
    }
}
