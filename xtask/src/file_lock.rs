//! Locks between the processes of xtask. The system releases a lock when its process ends, even after a crash.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
    time::Duration,
};

use tokio::time;

use crate::failure::Failure;

/// Polling ends with the future that waits. A thread that waits for the system's lock would outlive Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A lock that this process holds. Dropping it releases the lock.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Takes the lock in the file `path`; `None` if another process holds it.
///
/// # Errors
/// When the file cannot be created.
pub fn try_lock(path: impl AsRef<Path>) -> Result<Option<FileLock>, Failure> {
    let path = path.as_ref();
    let failed = |cause: io::Error| Failure::file(path, &cause);
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let file = File::create(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(FileLock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

/// Waits until no other process holds the lock in the file `path`, and takes it.
///
/// # Errors
/// As [`try_lock`].
pub async fn lock(path: impl AsRef<Path>) -> Result<FileLock, Failure> {
    let path = path.as_ref();
    let mut has_waited = false;
    loop {
        if let Some(lock) = try_lock(path)? {
            return Ok(lock);
        }
        if !has_waited {
            println!("...  waiting for another cargo xtask, which holds {}", path.display());
            has_waited = true;
        }
        time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::{runtime::Runtime, task, time::timeout};

    use super::*;

    fn path(test: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("edgefront-lock-{}-{test}/lock", std::process::id()))
    }

    #[tokio::test]
    async fn the_second_waits_for_the_first() {
        let path = path("second");
        let first = lock(path.clone()).await.unwrap();
        assert!(try_lock(&path).unwrap().is_none());
        let second = tokio::spawn(lock(path.clone()));
        task::yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        second.await.unwrap().unwrap();
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_cancelled_wait_holds_up_nothing() {
        let path = path("cancelled");
        let _held = try_lock(&path).unwrap().unwrap();
        let runtime = Runtime::new().unwrap();
        let waited = runtime.block_on(async { timeout(Duration::from_millis(1), lock(&path)).await });
        assert!(waited.is_err());
        // The drop waits for the threads of the runtime.
        drop(runtime);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
