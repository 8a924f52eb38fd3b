//! A real Redis Cluster for tests: servers that share all slots, each without a replica.

use std::{
    fs, io,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use super::{START_DEADLINE, Server, ServerError, ServerOptions, say};

const SLOTS: usize = 16_384;

/// A running cluster; killed on drop.
#[derive(Debug)]
pub struct ServerCluster {
    servers: Vec<Server>,
    /// The files in which the servers store the state of the cluster; removed on drop.
    notes: Vec<PathBuf>,
}

impl ServerCluster {
    /// Starts this many servers, gives each its part of the slots, and returns when every server knows that all slots
    /// are served. That takes 2 s, because a new server waits 2 s before it accepts writes.
    ///
    /// # Errors
    /// As [`Server::start`]; also if the servers do not find each other.
    pub fn start(count: usize) -> Result<Self, ServerError> {
        let mut cluster = Self { servers: Vec::new(), notes: Vec::new() };
        for _ in 0..count {
            let server = Server::start(ServerOptions { cluster: true, ..ServerOptions::default() })?;
            cluster.notes.push(super::cluster_notes(server.port()));
            cluster.servers.push(server);
        }
        cluster.join().map_err(ServerError::Join)?;
        Ok(cluster)
    }

    /// `redis://127.0.0.1:PORT?cluster`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}?cluster", self.servers.first().map(Server::url).unwrap_or_default())
    }

    /// The servers' ports.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(Server::port).collect()
    }

    /// Adds a server without slots. It joins by the server on the port `known`. Returns its port when it knows who
    /// serves the slots, which takes 2 s. The others may learn of it some milliseconds later.
    ///
    /// # Errors
    /// As [`ServerCluster::start`].
    pub fn add_server(&mut self, known: u16) -> Result<u16, ServerError> {
        let port = self.start_and_meet(known)?;
        self.until(port, "CLUSTER INFO", "cluster_state:ok").map_err(ServerError::Join)?;
        Ok(port)
    }

    fn start_and_meet(&mut self, known: u16) -> Result<u16, ServerError> {
        let server = Server::start(ServerOptions { cluster: true, ..ServerOptions::default() })?;
        let port = server.port();
        self.notes.push(super::cluster_notes(port));
        self.servers.push(server);
        let meet = format!("CLUSTER MEET 127.0.0.1 {known} {}", super::bus_port(known));
        self.say(port, &meet).map_err(ServerError::Join)?;
        Ok(port)
    }

    /// Adds a replica of the server on the port `primary`. Returns the replica's port when it has a copy of all data.
    ///
    /// # Errors
    /// As [`ServerCluster::start`].
    pub fn add_replica(&mut self, primary: u16) -> Result<u16, ServerError> {
        let port = self.start_and_meet(primary)?;
        self.replicate(port, primary).map_err(ServerError::Join)?;
        Ok(port)
    }

    fn replicate(&self, port: u16, primary: u16) -> io::Result<()> {
        let id = self.say(primary, "CLUSTER MYID")?;
        let id = id.lines().nth(1).unwrap_or_default().to_owned();
        // Fails until the server knows the primary.
        self.until(port, &format!("CLUSTER REPLICATE {id}"), "+OK\r\n+OK")?;
        self.until(port, "INFO replication", "master_link_status:up")
    }

    /// Repeats a command until the reply contains `expected`.
    ///
    /// # Errors
    /// The last reply, if it never does.
    pub fn until(&self, port: u16, command: &str, expected: &str) -> io::Result<()> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            let answer = self.say(port, command)?;
            if answer.contains(expected) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(answer));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends a server, as if it had crashed.
    pub fn stop(&mut self, server: usize) {
        if server < self.servers.len() {
            drop(self.servers.swap_remove(server));
        }
    }

    /// Sends an inline command to the server on `port` and returns its reply.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn say(&self, port: u16, command: &str) -> io::Result<String> {
        say(port, &format!("{command}\r\n"))
    }

    fn join(&self) -> io::Result<()> {
        let ports = self.ports();
        let share = SLOTS.div_ceil(ports.len().max(1));
        for (number, port) in ports.iter().enumerate() {
            let (first, last) = (number * share, ((number + 1) * share).min(SLOTS) - 1);
            let epoch = number + 1;
            // The second port is the cluster bus.
            let meet =
                ports.first().map(|first| format!("CLUSTER MEET 127.0.0.1 {first} {}\r\n", super::bus_port(*first)));
            let answer = say(
                *port,
                &format!(
                    "CLUSTER SET-CONFIG-EPOCH {epoch}\r\nCLUSTER ADDSLOTSRANGE {first} {last}\r\n{}",
                    meet.filter(|_| number > 0).unwrap_or_default()
                ),
            )?;
            if let Some(error) = answer.lines().find(|line| line.starts_with('-')) {
                return Err(io::Error::other(error.to_owned()));
            }
        }
        let known = format!("cluster_known_nodes:{}", ports.len());
        let deadline = Instant::now() + START_DEADLINE;
        for port in &ports {
            loop {
                let info = say(*port, "CLUSTER INFO\r\n")?;
                if info.contains("cluster_state:ok") && info.contains(&known) {
                    break;
                }
                if Instant::now() > deadline {
                    return Err(io::Error::other(info));
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

impl Drop for ServerCluster {
    fn drop(&mut self) {
        self.servers.clear();
        for notes in &self.notes {
            let _ = fs::remove_file(notes);
        }
    }
}
