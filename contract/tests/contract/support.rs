//! An origin on a free port, and the command as a process.

use std::{
    collections::HashSet,
    convert::Infallible,
    net::Ipv4Addr,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread::JoinHandle,
};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};

pub const KEY: &str = "the key of the test origin";
const PASSWORD: &str = "secret-password";
const PUBLIC_HOST: &str = "shop.example";

/// One deviation from the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    IsEdgefront,
    KeyIgnored,
    KeyPrefix,
    Underscores,
    RefusesLate,
    Head,
    SharedStatus,
    SharedCookie,
    SharedLogin,
    SharedUser,
    WrongItem,
    NoItem,
    LongTag,
    ManyTags,
    Reflection,
    OwnHost,
    WrongScheme,
    NoUser,
    PublicAccount,
    NoLogin,
    PublicLogin,
    InvalidUser,
    AnyPassword,
    KeepsLogin,
    EndsLogin,
    OwnLoginWins,
    /// Keeps logins on the server. Another `Edge-User` and `Edge-Session: none` end a login, `guest` does not.
    KeepsGuestLogin,
    NoOwnLogin,
    NoLogout,
    OddLogout,
    InvalidCart,
    NoCart,
    CartIgnored,
    PublicCart,
    InvalidOrder,
    PublicOrder,
    TwoOrders,
    RowsObject,
    RowsWithoutId,
    RowsMissing,
    RowsOpen,
}

/// A running origin: a shop with one product and two accounts.
pub struct Origin {
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    pub fn start(fault: Fault) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let url = format!("http://{host}");
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(TcpListener::from_std(listener).unwrap(), fault, host) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { url, stop: Some(stop), thread: Some(thread) }
    }

    /// Checks every clause.
    pub fn check(&self, more: &[&str]) -> Run {
        let public = format!("https://{PUBLIC_HOST}");
        let all = [
            self.url.as_str(),
            "--public-url",
            &public,
            "--product=/products/mug",
            "--item=mug",
            "--user=ada",
            "--other-user=bob",
            "--account=/account",
            "--mark=Hello ada!",
            "--login=/login",
            "--login-form=name=ada&password={password}",
            "--logout=/logout",
            "--cart=/cart",
            "--cart-form=id=mug",
            "--cart-page=/cart",
            "--order=/checkout",
            "--rows=/rows",
            "--row=mug",
        ];
        contract(&[&all, more].concat(), KEY)
    }

    /// Checks the clauses that need no options.
    pub fn check_pages(&self) -> Run {
        contract(&[&self.url, "--product", "/products/mug"], KEY)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().map(JoinHandle::join);
    }
}

/// A finished run.
pub struct Run {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl Run {
    /// The broken clauses, in the order of the report.
    pub fn broken(&self) -> Vec<&str> {
        let lines = self.output.lines().filter_map(|line| line.strip_prefix("BROKEN"));
        lines.map(|line| line.split_whitespace().next().unwrap()).collect()
    }
}

/// Runs the command with `key` in the environment, unless it is empty.
pub fn contract(arguments: &[&str], key: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgefront-contract"));
    command.args(arguments).env_remove("ORIGIN_KEY").env("CONTRACT_PASSWORD", PASSWORD);
    if !key.is_empty() {
        command.env("ORIGIN_KEY", key);
    }
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
}

async fn accept(listener: TcpListener, fault: Fault, host: String) {
    let mut connections = JoinSet::new();
    let shop = Arc::new(Shop { fault, host, logins: AtomicU32::new(0), ended: Mutex::default() });
    while let Ok((socket, _)) = listener.accept().await {
        let shop = shop.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, shop.clone()));
            // A client that disconnects ends only its own connection.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

/// A request as the origin reads it.
struct Asked {
    method: Method,
    path: String,
    query: String,
    headers: http::HeaderMap,
    form: String,
}

impl Asked {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

async fn answer(request: Request<Incoming>, shop: Arc<Shop>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let form = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let path = head.uri.path().to_owned();
    let asked = Asked { method: head.method, path, query, headers: head.headers, form };
    Ok(shop.answer(&asked))
}

struct Shop {
    fault: Fault,
    host: String,
    /// Number of logins so far. The cookie of each is `sid=ada-NUMBER`.
    logins: AtomicU32,
    /// The cookies of the logins that have ended.
    ended: Mutex<HashSet<String>>,
}

type Reply = Response<Full<Bytes>>;

fn reply(status: u16, body: impl Into<String>, headers: &[(&str, &str)]) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body.into())));
    *reply.status_mut() = status.try_into().unwrap();
    for (name, value) in headers {
        reply.headers_mut().append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    reply
}

impl Shop {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let key = asked.header("edge-key");
        let is_right = match self.fault {
            Fault::KeyIgnored => true,
            Fault::KeyPrefix => !key.is_empty() && KEY.starts_with(key),
            Fault::RowsOpen if asked.path == "/rows" => true,
            _ => key == KEY,
        };
        let is_right = is_right || (self.has(Fault::RefusesLate) && asked.path != "/rows");
        let is_underscored = self.has(Fault::Underscores) && asked.headers.contains_key("edge_user");
        if !is_right && !is_underscored {
            return reply(403, "through edgefront only", &[]);
        }
        let is_believed = is_right && (key == KEY || !self.has(Fault::RefusesLate));
        if self.has(Fault::Head) && asked.method == Method::HEAD {
            return reply(501, "", &[]);
        }
        let user = self.user(asked, is_believed);
        let mut reply = self.page(asked, user.as_deref(), is_believed);
        if self.has(Fault::Reflection)
            && let Some(item) = asked.headers.get("edge-login")
        {
            reply.headers_mut().insert("edge-login", item.clone());
        }
        if self.has(Fault::IsEdgefront) {
            reply.headers_mut().insert("cache-status", "edgefront; hit".parse().unwrap());
        }
        reply
    }

    /// The user of the page.
    fn user(&self, asked: &Asked, is_believed: bool) -> Option<String> {
        let sid = asked.header("cookie").split("; ").find_map(|cookie| cookie.strip_prefix("sid=")).unwrap_or_default();
        let is_alive = !self.ended.lock().unwrap().contains(sid);
        let own = sid.split_once('-').map(|(user, _)| user.to_owned()).filter(|_| is_alive);
        if !is_believed {
            return self.has(Fault::Underscores).then(|| asked.header("edge_user").to_owned());
        }
        if asked.headers.contains_key("edge-shared") && !self.has(Fault::SharedUser) {
            return None;
        }
        if self.has(Fault::KeepsGuestLogin) {
            let ends = match asked.header("edge-session") {
                "user" => own.as_deref().is_some_and(|own| own != asked.header("edge-user")),
                session => session == "none",
            };
            if ends {
                self.ended.lock().unwrap().insert(sid.to_owned());
            }
        }
        match asked.header("edge-session") {
            "guest" if self.has(Fault::KeepsGuestLogin) => own,
            "user" if self.has(Fault::NoUser) => own,
            "user" if self.has(Fault::OwnLoginWins) && own.is_some() => own,
            "user" => Some(asked.header("edge-user").to_owned()),
            "unknown" if self.has(Fault::EndsLogin) => None,
            "unknown" => own,
            _ if self.has(Fault::KeepsLogin) => own,
            _ => None,
        }
    }

    fn page(&self, asked: &Asked, user: Option<&str>, is_believed: bool) -> Reply {
        let private = ("cache-control", "private, no-store");
        let public = ("cache-control", "public, max-age=60");
        let declared = |fault| if self.has(fault) { public } else { private };
        let is_post = asked.method == Method::POST;
        match asked.path.as_str() {
            "/" => reply(200, "shop", &[]),
            "/products/mug" => self.product(asked, is_believed),
            "/account" => {
                let text = user.map_or("Sign in".to_owned(), |user| format!("Hello {user}!"));
                let form = "<form method=post action=/logout><input type=hidden name=token value=t></form>";
                reply(200, format!("{text}{form}"), &[declared(Fault::PublicAccount)])
            }
            "/login" if is_post => {
                // The form's hidden field is required.
                let is_right = asked.form.contains(PASSWORD) && !asked.form.contains("not-");
                if !asked.form.contains("token=t") || !(is_right || self.has(Fault::AnyPassword)) {
                    return reply(422, "wrong", &[private]);
                }
                let id = if self.has(Fault::InvalidUser) { "ada,bob" } else { "ada" };
                let mut answer = reply(303, "", &[declared(Fault::PublicLogin)]);
                if !self.has(Fault::NoOwnLogin) {
                    let cookie = format!("sid=ada-{}; HttpOnly", self.logins.fetch_add(1, Ordering::Relaxed));
                    answer.headers_mut().insert(header::SET_COOKIE, cookie.parse().unwrap());
                }
                if !self.has(Fault::NoLogin) {
                    answer.headers_mut().insert("edge-login", id.parse().unwrap());
                }
                answer
            }
            "/login" => reply(
                200,
                "<form method=post><input type=hidden name=token value=t><input name=name></form>",
                &[private],
            ),
            "/logout" if self.has(Fault::NoLogout) || !asked.form.contains("token=t") => reply(303, "", &[private]),
            "/logout" => {
                reply(303, "", &[private, ("edge-logout", if self.has(Fault::OddLogout) { "yes" } else { "1" })])
            }
            "/cart" if is_post => {
                let cart = match self.fault {
                    Fault::NoCart => return reply(303, "", &[private]),
                    Fault::InvalidCart => r#"{"op":"add","id":"a/b","quantity":2}"#,
                    _ => r#"{"op":"add","id":"mug","quantity":2}"#,
                };
                reply(303, "", &[private, ("edge-cart", cart)])
            }
            "/cart" => {
                let cart = if self.has(Fault::CartIgnored) { "" } else { asked.header("edge-cart") };
                reply(200, cart, &[declared(Fault::PublicCart)])
            }
            "/checkout" if is_post => {
                let order = match self.fault {
                    Fault::InvalidOrder => r#"{"order_id":"A-1","items":[]}"#,
                    _ => r#"{"order_id":"A-1","items":[{"id":"mug","quantity":1}]}"#,
                };
                let mut answer = reply(303, "", &[declared(Fault::PublicOrder), ("edge-order", order)]);
                if self.has(Fault::TwoOrders) {
                    answer.headers_mut().append("edge-order", order.parse().unwrap());
                }
                answer
            }
            "/checkout" => reply(200, "<form method=post></form>", &[private]),
            "/rows" => self.rows(&asked.query),
            _ => reply(404, "", &[]),
        }
    }

    fn product(&self, asked: &Asked, is_believed: bool) -> Reply {
        let is_shared = asked.headers.contains_key("edge-shared");
        if is_shared && self.has(Fault::SharedStatus) {
            return reply(429, "", &[]);
        }
        let forwarded = |name, other: &str| match asked.header(name) {
            value if is_believed && !value.is_empty() && !self.has(Fault::OwnHost) => value.to_owned(),
            _ => other.to_owned(),
        };
        let host = forwarded("x-forwarded-host", &self.host);
        let scheme =
            if self.has(Fault::WrongScheme) { "http".to_owned() } else { forwarded("x-forwarded-proto", "http") };
        let body = format!("<link rel=canonical href='{scheme}://{host}/products/mug'>");
        let mut answer = reply(200, body, &[("cache-control", "public, max-age=60"), ("edge-tags", "goods, kitchen")]);
        let headers = answer.headers_mut();
        match self.fault {
            Fault::NoItem => None,
            Fault::WrongItem => headers.insert("edge-item", "pan".parse().unwrap()),
            _ => headers.insert("edge-item", "mug".parse().unwrap()),
        };
        match self.fault {
            Fault::LongTag => headers.append("edge-tags", "x".repeat(65).parse().unwrap()),
            Fault::ManyTags => headers.append("edge-tags", vec!["t"; 40].join(",").parse().unwrap()),
            Fault::SharedCookie if is_shared => headers.append(header::SET_COOKIE, "sid=new".parse().unwrap()),
            Fault::SharedLogin if is_shared => headers.append("edge-login", "ada".parse().unwrap()),
            _ => false,
        };
        answer
    }

    fn rows(&self, query: &str) -> Reply {
        let ids: Vec<_> = query.trim_start_matches("ids=").split(',').collect();
        if self.has(Fault::RowsMissing) && ids.iter().any(|id| *id != "mug") {
            return reply(404, "[]", &[]);
        }
        let rows = match self.fault {
            Fault::RowsObject => r#"{"mug":{"id":"mug"}}"#,
            Fault::RowsWithoutId => r#"[{"name":"mug"}]"#,
            _ => r#"[{"id":"mug","stock":3}]"#,
        };
        reply(200, rows, &[])
    }
}
