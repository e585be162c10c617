// SPDX-License-Identifier: Apache-2.0
//! peer URL -- KEY JOB...: runs a job under a lock of rslock.
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut manager = rslock::LockManager::new(vec![words[1].as_str()]);
    manager.set_retry(1_000_000, Duration::from_millis(100));
    let guard = manager
        .acquire(words[3].as_str(), Duration::from_secs(60))
        .await
        .expect("not locked");
    let status = tokio::process::Command::new(&words[4]).args(&words[5..]).status().await;
    guard.release().await;
    std::process::exit(status.ok().and_then(|status| status.code()).unwrap_or(1));
}
