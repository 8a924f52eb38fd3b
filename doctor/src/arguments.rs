//! The command line.

use std::time::Duration;

use clap::{Parser, builder::RangedU64ValueParser};
use url::Url;
use xtask::variables::parse_name_value;

/// Most pages of one run. A larger sample costs the shop more and shows nothing new.
const MAX_PAGES: u64 = 500;

/// Examine a shop before you deploy edgefront in front of it.
///
/// The doctor requests a bounded sample of the shop's pages: one GET at a time, with a pause after each, and only what
/// robots.txt allows. It requests each page without cookies, with analytics cookies, and with the shop's own cookies.
/// For each kind of page, it prints whether edgefront would share it, and which rule would change that. The report
/// ends with variables to paste into wrangler.toml. The doctor changes nothing in a shop that changes data by POST
/// only.
#[derive(Parser)]
#[command(name = "cargo xtask doctor", bin_name = "cargo xtask doctor")]
pub struct DoctorArguments {
    /// The shop's address, such as <https://shop.example>. The doctor starts here and stays on this host.
    #[arg(value_name = "URL", value_parser = parse_address)]
    pub address: Url,
    /// Use the rules of this preset, such as django-oscar. By default, the doctor recognizes the shop's software.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Override a variable of the preset; repeatable. The doctor does not read wrangler.toml.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_name_value)]
    pub variables: Vec<(String, String)>,
    /// Number of pages to examine, at most 500. Each costs about five requests, twice as many with --login.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = pages())]
    pub pages: usize,
    /// Cookies of a signed-in visitor, as a browser sends them: "sessionid=abc; other=1". The doctor then also requests
    /// each page as this visitor, and looks for the elements that differ (HOLES). Sign in with a test account and put a
    /// product into the basket. In the browser's developer tools, select a request for a page in "Network", and copy
    /// the value of its header Cookie. Prefer the environment variable: other users of this machine can read arguments.
    #[arg(long, value_name = "COOKIES", env = "DOCTOR_LOGIN", hide_env_values = true)]
    pub login: Option<String>,
    /// The pause after each request, in milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value = "200", value_parser = parse_milliseconds)]
    pub pause: Duration,
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub json: bool,
}

fn pages() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MAX_PAGES)
}

fn parse_milliseconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_millis).map_err(|_| "write a whole number".to_owned())
}

/// Parses the shop's address. Without a scheme, it is an HTTPS address.
fn parse_address(text: &str) -> Result<Url, String> {
    let text = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let mut url = url.ok_or("write an address such as https://shop.example")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("write the address without user and password".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme_but_a_host() {
        let parse = |text| parse_address(text).map(String::from);
        assert_eq!(parse("shop.example").as_deref(), Ok("https://shop.example/"));
        assert_eq!(parse("http://127.0.0.1:8000/shop#top").as_deref(), Ok("http://127.0.0.1:8000/shop"));
        assert!(parse("ftp://shop.example").is_err() && parse("https://me:secret@shop.example").is_err());
    }
}
