//! The order to end, from the gateway to its connections and streams.

use tokio::sync::watch;

/// Gives the order.
#[derive(Debug)]
pub(super) struct Stopper(watch::Sender<bool>);

/// Waits for the order.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

/// Both ends.
pub(super) fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Gives the order.
    pub(super) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns when the order is given, or the gateway is dropped.
    pub(crate) async fn ordered(&mut self) {
        let _ = self.0.wait_for(|is_ordered| *is_ordered).await;
    }
}
