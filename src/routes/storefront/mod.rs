//! The storefront: a page from the cache, or the origin's answer. Every request asks Redis once at the most before the visitor
//! gets the answer; what is written (views, stored pages) comes behind it.

use std::{rc::Rc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Asking the origin for a page.
mod ask;
/// What the cache may answer.
mod page;
/// What is no read.
mod write;

use super::problem::Problem;
use crate::{
    App,
    carts::{self, Cart, CartChange},
    metrics::traffic::Metric,
    orders::{
        self, Order,
        flash_sale::{self, Reservation},
        insights,
    },
    page_cache::{self, CacheStatus, Pass, Waiting},
    ports::{
        answer::{Answer, BackgroundTask},
        error::Error,
        fetch::{Request, Response},
        network::ClientNetwork,
        time::Timestamp,
    },
    proxy::{self, LogoutScope, OriginDirectives, VisitorContext},
    ranking::{activity::Viewer, crawler},
    schema::{
        ids::{ItemId, RowId, UserId},
        token::Token,
    },
    sessions::{self, Session, device::DeviceLabel},
    upstash::{FromReply, Reply},
};

/// What a call of Redis may take behind the answer of an order: nobody waits, and there is no other report of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers a request for the storefront.
pub async fn serve(app: &Rc<App>, request: Request, now: Timestamp) -> Answer {
    let (config, path, query) = (&app.config, request.uri().path(), request.uri().query());
    let visit = Visit {
        app: app.clone(),
        now,
        token: app.keyring.read(request.headers(), now),
        viewed: config.page.item_routes.item(path, query).filter(|_| crawler::is_human(request.headers())),
        network: ClientNetwork::of(request.headers()),
        with_cart: config.origin.cart_routes.iter().any(|route| route == path),
        sale: config.flash.checkout.item(path, query).map(RowId::from),
    };
    match page_cache::admit(&request, &config.page.item_routes, &app.pages) {
        // What the origin is told of the visitor there is in no key.
        Ok((page, _)) if visit.with_cart || visit.sale.is_some() => {
            let why = page.by_popularity().err().unwrap_or("personal");
            visit.pass(Pass::Unstorable(why), request).await
        }
        Ok((page, wish)) => visit.page(page, wish, request).await,
        Err(Pass::Method) => visit.write(request).await,
        Err(pass) => visit.pass(pass, request).await,
    }
}

/// One request and what is known of it before Redis is asked.
struct Visit {
    app: Rc<App>,
    now: Timestamp,
    /// Whose MAC is right; whether the session lives is not known yet.
    token: Option<Token>,
    /// The item that somebody looks at here.
    viewed: Option<ItemId>,
    network: Option<ClientNetwork>,
    /// The origin is told what is in the visitor's cart (`CART_ROUTES`).
    with_cart: bool,
    /// The flash sale that a piece is bought of here (`FLASH_CHECKOUT`).
    sale: Option<RowId>,
}

impl Visit {
    /// A request that the cache has no part in.
    async fn pass(self, pass: Pass, request: Request) -> Answer {
        let (pages, now) = (&self.app.pages, self.now);
        // Only what carries a signed cookie asks Redis at all.
        if self.token.is_some()
            && let Waiting::Vain { probe } = pages.waiting(now)
        {
            let app = self.app.clone();
            let mut answer = self.proxy(CacheStatus::pass(Pass::RedisDown), VisitorContext::default(), request).await;
            answer.background.extend(probe.then(|| find_out(app)));
            return answer;
        }
        let visitor = self.visitor().await;
        if let Err(Error::Redis(error)) = &visitor {
            pages.note_redis::<()>(&Err(error.clone()), self.app.clock.now());
        }
        match visitor {
            Ok(visitor) => self.proxy(CacheStatus::pass(pass), visitor, request).await,
            Err(error) => {
                log::warn!("session: {error}");
                self.proxy(CacheStatus::pass(Pass::RedisDown), VisitorContext::default(), request).await
            }
        }
    }

    /// Who asks, what is in their cart and what is held for them, as far as the origin is told: all in one request, and only if there
    /// is a signed cookie.
    async fn visitor(&self) -> Result<VisitorContext, Error> {
        let (redis, config) = (&self.app.redis, &self.app.config.session);
        // Without a session there is nothing in it, which is known without Redis.
        let nothing = self.with_cart.then(Cart::default);
        let Some(token) = &self.token else { return Ok(VisitorContext { cart: nothing, ..VisitorContext::default() }) };
        if let Some(sale) = &self.sale {
            return self.buyer(token, sale).await;
        }
        if !self.with_cart {
            return Ok(sessions::check(redis, token, self.now, config).await?.into());
        }
        Ok(match carts::read(redis, token, self.now, config).await? {
            Some((session, cart)) => VisitorContext { user: session.user, cart: Some(cart), reservation: None },
            None => VisitorContext { cart: nothing, ..VisitorContext::default() },
        })
    }

    /// As [`Visit::visitor`], where a piece of `sale` is bought. The cart is read whether it is told or not: one pipeline for all,
    /// but for the hold in the sharded layout.
    async fn buyer(&self, token: &Token, sale: &RowId) -> Result<VisitorContext, Error> {
        let redis = &self.app.redis;
        let mut commands = Vec::from(carts::read_commands(redis.keys(), token));
        commands.extend(flash_sale::held_for(redis.keys(), sale, token, self.now));
        let mut replies = redis.pipeline(&commands).await?.into_iter();
        let check = Reply::List(replies.by_ref().take(3).collect::<Result<_, _>>()?);
        let (user, seen, cart) = FromReply::from_reply(check)?;
        let session = sessions::from_check(token, user, seen, self.now, &self.app.config.session);
        let cart = if session.is_some() { Cart::from_pairs(cart) } else { Cart::default() };
        let user = session.as_ref().and_then(|session| session.user.as_ref());
        let held: Option<Reservation> = match (replies.next(), user) {
            (Some(held), _) => FromReply::from_reply(held?)?,
            (None, Some(user)) => flash_sale::held_by(redis, sale, token, user, self.now).await?,
            (None, None) => None,
        };
        let reservation = held.filter(|_| session.is_some()).map(|reservation| (sale.clone(), reservation));
        Ok(VisitorContext { cart: self.with_cart.then_some(cart), reservation, ..session.into() })
    }

    /// Passes the request on as its visitor's own.
    async fn proxy(&self, status: CacheStatus, visitor: VisitorContext, request: Request) -> Answer {
        self.proxy_judged(|_, _| status, visitor, request).await
    }

    /// Passes the request on as its visitor's own; `judge` says of the answer what the cache makes of it.
    async fn proxy_judged(
        &self,
        judge: impl FnOnce(&Response, &OriginDirectives) -> CacheStatus,
        visitor: VisitorContext,
        request: Request,
    ) -> Answer {
        let method = request.method().clone();
        let asked = request.headers().clone();
        match proxy::ask(&self.app, request, &visitor, self.now).await {
            Ok((mut response, says)) => {
                judge(&response, &says).append_to(&mut response);
                self.finish(response, says, visitor.user.as_ref(), &method, &asked).await
            }
            Err(error) => {
                let mut response = failure(error, &asked);
                judge(&response, &OriginDirectives::default()).append_to(&mut response);
                response.into()
            }
        }
    }

    /// What holds for every answer of the origin that is not served as a page: login, logout, cart, caching, and the view. `user`
    /// is whom the origin was told of.
    async fn finish(
        &self,
        mut response: Response,
        mut says: OriginDirectives,
        user: Option<&UserId>,
        method: &Method,
        asked: &HeaderMap,
    ) -> Answer {
        let status = response.status();
        let headers = response.headers_mut();
        // Where the origin says nothing, the answer may be this visitor's own: no cache between us may keep it, and the
        // browser asks again.
        let ours = if headers.contains_key(header::EXPIRES) { "private" } else { "private, no-cache" };
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(ours));
        // First of all: a logout would record what was bought as abandoned.
        let order = match says.order.take() {
            Some(order) => Some(self.settle(order, user.or(says.user.as_ref())).await),
            None => None,
        };
        let cookie = match self.obey(says, user, asked).await {
            Ok(cookie) => cookie,
            // The visitor would believe what did not happen.
            Err(error) => return Answer { response: failure(error, asked), background: order.into_iter().collect() },
        };
        if let Some(cookie) = cookie {
            headers.append(header::SET_COOKIE, cookie);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        }
        self.note_seen(method, status);
        Answer { response, background: order.into_iter().collect() }
    }

    /// Settles what the visitor has bought; what comes back feeds the insights. The order did happen, whatever goes wrong here: the
    /// failure is logged, and behind the answer there is time to try it once more.
    async fn settle(&self, order: Order, user: Option<&UserId>) -> BackgroundTask {
        let (app, token, now, user) = (self.app.clone(), self.token.clone(), self.now, user.cloned());
        let config = &self.app.config.session;
        let settled = orders::settle(&app.redis, &order, token.as_ref(), user.as_ref(), now, config).await;
        Box::pin(async move {
            let redis = app.redis.with_deadline(PATIENCE);
            let settled = match settled {
                Ok(viewed) => Ok(viewed),
                Err(error) => {
                    log::error!("an order was not settled before the answer: {error}");
                    let config = &app.config.session;
                    orders::settle(&redis, &order, token.as_ref(), user.as_ref(), now, config).await
                }
            };
            let is_new = match settled {
                Ok(viewed) => insights::learn(&redis, &order, &viewed, now, &app.config.insights).await,
                Err(error) => Err(error),
            };
            if is_new == Ok(true) {
                app.traffic.count(Metric::Order);
            }
            log_failure(is_new);
        })
    }

    /// Does what the origin said, in this order: login or logout, then the change to the cart of whoever it is then. The cookie
    /// that follows from it.
    async fn obey(
        &self,
        says: OriginDirectives,
        user: Option<&UserId>,
        asked: &HeaderMap,
    ) -> Result<Option<HeaderValue>, Error> {
        let Self { app, now, .. } = self;
        // First of all: what is refused has no effect.
        if says.cart.is_some() {
            app.limits.writes.check("cart", self.network).await?;
        }
        let (mut token, mut cookie) = (self.token.clone(), None);
        if let Some(user) = says.user {
            let (old, label, config) = (token.as_ref(), DeviceLabel::of(asked), &app.config.session);
            let new = sessions::log_in_once(&app.redis, old, &user, label.as_ref(), None, *now, config).await?;
            cookie = Some(app.keyring.set(&new)?);
            token = Some(new);
        } else if let Some(logout) = says.logout {
            self.log_out(logout, user).await?;
            cookie = Some(sessions::cookie::clear());
            token = None;
        }
        if let Some(change) = says.cart {
            let write = carts::change(&app.redis, token.as_ref(), &change, *now, &app.config).await?;
            if let CartChange::Add(_, quantity) = change {
                app.traffic.count_cart_addition(&write.cart, quantity.get());
            }
            if let Some(session) = write.session.filter(|_| write.created) {
                cookie = Some(app.keyring.set(&session.token)?);
            }
        }
        Ok(cookie)
    }

    /// Ends the visitor's session, and with [`LogoutScope::All`] first every other one of `user`. Where Redis did not say who it is
    /// when the request came, it is asked again: not one of the sessions may be missed.
    async fn log_out(&self, logout: LogoutScope, user: Option<&UserId>) -> Result<(), Error> {
        let Self { app, now, .. } = self;
        let config = &app.config.session;
        let Some(token) = &self.token else { return Ok(()) };
        if logout == LogoutScope::All {
            let user = match user {
                Some(user) => Some(user.clone()),
                None => sessions::check(&app.redis, token, *now, config).await?.and_then(|session| session.user),
            };
            if let Some(user) = user {
                sessions::log_out_user(&app.redis, &user, *now, config).await?;
            }
        }
        sessions::log_out(&app.redis, token, *now, config).await
    }

    /// Notes that the session was here, and the view of an item: counted only if the origin answered 200 for it, so that
    /// made-up names can not push real items out of the ranking.
    fn note_seen(&self, method: &Method, status: StatusCode) {
        let item = self.viewed.as_ref().filter(|_| method == Method::GET && status == StatusCode::OK);
        if item.is_some() {
            self.app.traffic.count(Metric::View);
        }
        self.app.activity.record_visit(Viewer { token: self.token.as_ref(), network: self.network }, item, self.now);
    }
}

/// Whether the origin could know the visitor: as our user, or by a cookie of its own.
fn is_somebody(session: Option<&Session>, headers: &HeaderMap) -> bool {
    session.is_some_and(|session| session.user.is_some()) || sessions::cookie::strip(headers).is_some()
}

/// Finds out whether Redis is back.
fn find_out(app: Rc<App>) -> BackgroundTask {
    Box::pin(async move {
        let answer = page_cache::ping(&app.redis).await;
        app.pages.note_redis(&answer, app.clock.now());
    })
}

fn log_failure<T>(result: Result<T, Error>) {
    if let Err(error) = result {
        log::warn!("behind an answer: {error}");
    }
}

/// The origin has failed, or what it said can not be done: a page for who reads pages, else a problem document.
fn failure(error: Error, request: &HeaderMap) -> Response {
    let problem = Problem::from(error);
    // What the visitor can help is told to them; it quotes nothing of theirs, and stays text.
    let told = problem.to_string().replace('&', "&amp;").replace('<', "&lt;");
    let mut response = problem.respond("storefront");
    let accepts = request.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        let page = if response.status().is_client_error() {
            page("That did not work", &format!("Sorry: {told}."))
        } else {
            page("The shop does not answer", "It is not your request. Please try again in a moment.")
        };
        *response.body_mut() = page.into();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    }
    response
}

fn page(title: &str, text: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><h1>{title}</h1><p>{text}</p></html>\n"
    )
}
