//! The last lines of the start-up: where the shop and the dashboard are, and where their key is.

use std::{fmt, path::PathBuf};

/// The addresses of a running shop.
pub struct Addresses {
    pub port: u16,
    /// The storefront behind edgefront; `None` for the demo shop.
    pub origin: Option<String>,
    /// The path of .dev.vars; `None` if the command line overrides the key.
    pub key_file: Option<PathBuf>,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Browsers accept `Secure` cookies over plain HTTP only from localhost.
        let shop = format!("http://localhost:{}", self.port);
        writeln!(f, "Shop:        {shop}")?;
        if let Some(origin) = &self.origin {
            writeln!(f, "Storefront:  {origin} (without edgefront)")?;
        }
        writeln!(f, "Dashboard:   {shop}/_edge/")?;
        match &self.key_file {
            Some(file) => write!(f, "Its key:     SERVICE_KEY in {}", file.display()),
            None => write!(f, "Its key:     SERVICE_KEY of --var"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_up_ends_with_the_addresses_and_the_location_of_the_key() {
        let addresses = Addresses { port: 8787, origin: None, key_file: Some("/shop/.dev.vars".into()) };
        assert_eq!(
            addresses.to_string(),
            "Shop:        http://localhost:8787\n\
             Dashboard:   http://localhost:8787/_edge/\n\
             Its key:     SERVICE_KEY in /shop/.dev.vars"
        );
        let addresses = Addresses { port: 20001, origin: Some("http://127.0.0.1:8000".to_owned()), key_file: None };
        assert_eq!(
            addresses.to_string(),
            "Shop:        http://localhost:20001\n\
             Storefront:  http://127.0.0.1:8000 (without edgefront)\n\
             Dashboard:   http://localhost:20001/_edge/\n\
             Its key:     SERVICE_KEY of --var"
        );
    }
}
