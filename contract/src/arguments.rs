//! The command line. Secrets come from the environment or a file, because other users of the machine can read arguments.

use std::{
    env, fs,
    path::{self, PathBuf},
};

use clap::Parser;
use edgefront::schema::ids::{ItemId, RowId, UserId};
use http::HeaderValue;
use url::Url;
use xtask::failure::Failure;

const KEY_VARIABLE: &str = "ORIGIN_KEY";
const PASSWORD_VARIABLE: &str = "CONTRACT_PASSWORD";
/// Stands for the password in `--login-form`.
const PASSWORD_PLACEHOLDER: &str = "{password}";

/// Check an origin against the contract between edgefront and its storefront.
///
/// The command sends the requests that edgefront would send, and forged ones, straight to the origin. It prints each
/// clause of the contract: it holds, it is broken (with the remedy), or it was not checked (with the option that it
/// needs). The exit status is 1 if a clause is broken. It signs in, changes a cart and places an order if you name the
/// forms, so use a test account and a copy of the shop.
///
/// The environment variable `ORIGIN_KEY` or the file of --key-file has the key. `CONTRACT_PASSWORD` has the password of
/// the test account.
#[derive(Parser)]
#[command(name = "cargo xtask contract", bin_name = "cargo xtask contract")]
pub struct ContractArguments {
    /// The origin's own address, such as <http://127.0.0.1:8000>: not the address of edgefront.
    #[arg(value_name = "URL", value_parser = parse_address)]
    pub address: Url,
    /// A file with the origin's key. Without it, the environment variable `ORIGIN_KEY` has the key.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The shop's public address, such as <https://shop.example>. Requests name its host and scheme.
    #[arg(long, value_name = "URL", value_parser = parse_address)]
    pub public_url: Option<Url>,
    /// A page that may be shared, such as a product's.
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = parse_path)]
    pub product: String,
    /// The item of that page. The page must send it as `Edge-Item`.
    #[arg(long, value_name = "ID", value_parser = |text: &str| ItemId::parse(text).map_err(|error| error.to_string()))]
    pub item: Option<ItemId>,
    /// Cookies that edgefront removes from shared renders (`COOKIES_DROPPED`, `CSRF_COOKIE`); repeatable.
    #[arg(long = "dropped-cookie", value_name = "NAME")]
    pub dropped_cookies: Vec<String>,
    /// The id of the test account, as `Edge-Login` names it.
    #[arg(long, value_name = "ID", value_parser = parse_user)]
    pub user: Option<UserId>,
    /// The id of a second account. Only its page is read.
    #[arg(long, value_name = "ID", value_parser = parse_user)]
    pub other_user: Option<UserId>,
    /// A page that shows to the test account that it is signed in.
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub account: Option<String>,
    /// A text of that page that only the test account sees. Default: the account's id.
    #[arg(long, value_name = "TEXT")]
    pub mark: Option<String>,
    /// The page with the form that signs in, which is also the form's address.
    #[arg(long, value_name = "PATH", value_parser = parse_path, requires = "login_form")]
    pub login: Option<String>,
    /// The fields of that form, URL-encoded: "email=ada%40shop.example&password={password}". Hidden fields are added.
    #[arg(long, value_name = "FIELDS")]
    pub login_form: Option<String>,
    /// The address that signs out with a POST. Hidden fields of its form on the account page are added.
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub logout: Option<String>,
    /// Sign out with a GET, as a link does.
    #[arg(long, requires = "logout")]
    pub logout_get: bool,
    /// The address that adds an item to the cart with a POST. Hidden fields of its form on the product page are added.
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub cart: Option<String>,
    /// The fields of that form, URL-encoded.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    pub cart_form: String,
    /// A page of `CART_ROUTES` that shows the cart of the header `Edge-Cart`.
    #[arg(long, value_name = "PATH", value_parser = parse_path, requires = "item")]
    pub cart_page: Option<String>,
    /// The page with the form that places an order, which is also the form's address.
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub order: Option<String>,
    /// The fields of that form, URL-encoded.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    pub order_form: String,
    /// The path of `ROWS_URL`.
    #[arg(long, value_name = "PATH", value_parser = parse_path, requires = "row")]
    pub rows: Option<String>,
    /// The id of an existing row.
    #[arg(long, value_name = "ID", value_parser = |text: &str| RowId::parse(text).map_err(|error| error.to_string()))]
    pub row: Option<RowId>,
}

impl ContractArguments {
    /// The absolute path of `--key-file`.
    pub fn key_path(&self) -> Result<Option<PathBuf>, Failure> {
        let absolute = |file: &PathBuf| path::absolute(file).map_err(|cause| Failure::file(file, &cause));
        self.key_file.as_ref().map(absolute).transpose()
    }

    /// The text that only the test account sees.
    pub fn mark(&self) -> Option<&str> {
        self.mark.as_deref().or(self.user.as_ref().map(UserId::as_str))
    }

    /// The fields of the login form; with `password` in place of the placeholder.
    pub fn login_fields(&self, password: &str) -> Vec<(String, String)> {
        let fields = fields(self.login_form.as_deref().unwrap_or_default());
        fields.into_iter().map(|(name, value)| (name, value.replace(PASSWORD_PLACEHOLDER, password))).collect()
    }
}

/// The password of the test account.
pub fn password() -> Result<String, Failure> {
    env::var(PASSWORD_VARIABLE)
        .map_err(|_| Failure::new("--login needs the password of the test account", format!("set {PASSWORD_VARIABLE}")))
}

/// Parses URL-encoded fields.
pub fn fields(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The key of the file, or else of the environment.
pub fn read_key(file: Option<PathBuf>) -> Result<HeaderValue, Failure> {
    let text = match file {
        Some(file) => fs::read_to_string(&file).map_err(|cause| Failure::file(&file, &cause))?,
        None => env::var(KEY_VARIABLE).map_err(|_| {
            Failure::new("there is no key", format!("set {KEY_VARIABLE}, or name a file with --key-file"))
        })?,
    };
    let key = Some(text.trim()).filter(|key| key.len() >= 16).and_then(|key| HeaderValue::from_str(key).ok());
    key.ok_or_else(|| Failure::new("the key is not valid", "ORIGIN_KEY has at least 16 visible ASCII characters"))
}

fn parse_user(text: &str) -> Result<UserId, String> {
    UserId::parse(text).map_err(|error| error.to_string())
}

fn parse_path(text: &str) -> Result<String, String> {
    if text.starts_with('/') && !text.starts_with("//") {
        Ok(text.to_owned())
    } else {
        Err("write a path that begins with one slash".to_owned())
    }
}

fn parse_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or("write an address such as http://127.0.0.1:8000")?;
    if url.username().is_empty() && url.password().is_none() {
        Ok(url)
    } else {
        Err("write the address without user and password".to_owned())
    }
}
