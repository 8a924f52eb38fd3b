//! A pool of real clusters for stores. A cluster has one database and takes 2 s to start. So an ended store returns its
//! cluster, and the next store empties and reuses it.

use std::sync::{Mutex, PoisonError};

use edgefront_gateway::server::ServerCluster;

/// The unused clusters. They end with this process.
static IDLE: Mutex<Vec<ServerCluster>> = Mutex::new(Vec::new());

/// A cluster of one store, until it is dropped.
pub struct OwnCluster(Option<ServerCluster>);

impl OwnCluster {
    pub async fn get() -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let cluster = match idle {
            Some(cluster) => cluster,
            None => tokio::task::spawn_blocking(|| ServerCluster::start(3).unwrap_or_else(|error| panic!("{error}")))
                .await
                .expect("a cluster"),
        };
        for port in cluster.ports() {
            let answer = cluster.say(port, "FLUSHALL").expect("the server answers");
            assert!(answer.starts_with("+OK"), "{answer}");
        }
        Self(Some(cluster))
    }

    /// `redis://127.0.0.1:PORT?cluster`.
    pub fn url(&self) -> String {
        self.servers().url()
    }

    pub fn servers(&self) -> &ServerCluster {
        self.0.as_ref().expect("taken by drop only")
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.0.take());
    }
}
