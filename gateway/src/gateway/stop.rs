//! The shutdown signal, from the gateway to its connections and streams.

use tokio::sync::watch;

/// Sends the signal.
#[derive(Debug)]
pub(super) struct Stopper(watch::Sender<bool>);

/// Receives the signal.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

/// Both ends.
pub(super) fn channel() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Sends the signal.
    pub(super) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns when the signal has been sent, or the gateway is dropped.
    pub(crate) async fn ordered(&mut self) {
        let _ = self.0.wait_for(|is_sent| *is_sent).await;
    }
}
