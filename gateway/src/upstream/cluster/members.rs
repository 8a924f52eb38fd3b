//! Members of a cluster, as a server lists them in its reply to CLUSTER NODES. The gateway logs in to members only: a
//! script can return a redirect to any address.

/// Returns whether the reply lists a server at this address. A redirect without a host means the host of the
/// configured server, so only the port is compared.
pub(super) fn is_listed(nodes: &str, host: &str, port: u16) -> bool {
    nodes.lines().any(|line| is_at(line, host, port).unwrap_or_default())
}

/// Compares `id ip:port@bus-port[,hostname[,…]] flags …` with an address.
fn is_at(line: &str, host: &str, port: u16) -> Option<bool> {
    let mut fields = line.split(' ').skip(1);
    let mut names = fields.next()?.split(',');
    let (ip, listed_port) = names.next()?.split('@').next()?.rsplit_once(':')?;
    let hostname = names.next();
    // A server in handshake may be no member, and one without an address cannot be reached.
    let is_member = fields.next()?.split(',').all(|flag| flag != "handshake" && flag != "noaddr");
    let has_host = host.is_empty() || host == ip || hostname == Some(host);
    Some(is_member && has_host && listed_port.parse() == Ok(port))
}

#[cfg(test)]
mod tests {
    use super::is_listed;

    #[test]
    fn a_member_is_found_by_its_address_or_name() {
        let nodes = "0a 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460\n\
            0b 10.0.0.2:6380@16380,redis-2,shard-id=1 slave 0a 0 1 2 connected\n\
            0c fd00::3:6379@16379,, master - 0 1 3 connected\n\
            0d 10.0.0.4:6379@0 handshake - 0 0 0 disconnected\n\
            0e :0@0 master,noaddr - 0 0 0 disconnected\n";
        for (host, port, expected) in [
            ("10.0.0.1", 6_379, true),
            ("10.0.0.1", 6_380, false),
            ("redis-2", 6_380, true),
            ("10.0.0.2", 6_380, true),
            ("fd00::3", 6_379, true),
            ("", 6_380, true),
            ("", 0, false),
            ("", 1, false),
            ("10.0.0.4", 6_379, false),
            ("evil", 6_379, false),
        ] {
            assert_eq!(is_listed(nodes, host, port), expected, "{host}:{port}");
        }
        assert!(!is_listed("ERR no cluster", "10.0.0.1", 6_379));
    }
}
