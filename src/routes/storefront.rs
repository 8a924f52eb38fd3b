//! The storefront: a page from the cache, or the origin's answer. Every request asks Redis once at the most before the visitor
//! gets the answer; what is written (views, stored pages) comes behind it.

use std::{rc::Rc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::problem::Problem;
use crate::{
    app::{Answer, App, Later},
    cart::{self, Cart, Change},
    error::Error,
    fetch::{Request, Response},
    flash_sale::{self, Reservation},
    ids::{ItemId, RowId, Token, UserId},
    insights,
    orders::{self, Order},
    origin::{self, Logout, Says, Visitor},
    page_cache::{self, CacheStatus, Entry, Lease, Look, Lookup, Page, Pass, Rendered},
    ranking,
    session::{self, Session, View, device::Label},
    time::Timestamp,
    traffic::Count,
    upstash::{self, FromReply, Reply},
};

/// What a call of Redis may take behind the answer of an order: nobody waits, and there is no other report of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers a request for the storefront.
pub async fn serve(app: &Rc<App>, request: Request, now: Timestamp) -> Answer {
    let visit = Visit {
        app: app.clone(),
        now,
        token: app.keyring.read(request.headers(), now),
        item: app.config.page.item_routes.item(request.uri().path(), request.uri().query()),
    };
    match page_cache::admit(&request, &app.config.page.item_routes) {
        Ok(page) => visit.page(page, request).await,
        Err(pass) => visit.pass(pass, request).await,
    }
}

/// One request and what is known of it before Redis is asked.
struct Visit {
    app: Rc<App>,
    now: Timestamp,
    /// Whose MAC is right; whether the session lives is not known yet.
    token: Option<Token>,
    item: Option<ItemId>,
}

impl Visit {
    /// A request that the cache may answer.
    async fn page(self, page: Page, request: Request) -> Answer {
        let (look, session) = match self.look_up(&page).await {
            Ok(found) => found,
            Err(error) => {
                log::warn!("page cache: {error}");
                return self.proxy(CacheStatus::Pass(Pass::RedisDown), Visitor::default(), request).await;
            }
        };
        match look {
            Look::Unpopular { .. } => self.proxy(CacheStatus::Pass(Pass::Unpopular), session.into(), request).await,
            Look::Stored { entry, lease, .. } => {
                let status = CacheStatus::hit(&entry, self.now);
                let mut answer = self.answer_from(&entry, status, &request);
                answer.later.extend(lease.map(|lease| self.render_again(page, lease)));
                answer
            }
            Look::Absent { lease, .. } => self.render(page, lease, session, request).await,
        }
    }

    /// Asks for the page and the session in one request: independent reads, so a pipeline.
    async fn look_up(&self, page: &Page) -> Result<(Look, Option<Session>), Error> {
        let lookup = Lookup::new(page, self.now, &self.app.config.page, self.app.config.origin.timeout)?;
        let mut commands = vec![lookup.command()];
        commands.extend(self.token.iter().flat_map(session::check_commands));
        let mut replies = self.app.redis.pipeline(&commands).await?.into_iter();
        let look = lookup.read(replies.next().ok_or(upstash::Error::UnexpectedType)??)?;
        let session = match &self.token {
            None => None,
            Some(token) => {
                let check = Reply::List(replies.collect::<Result<_, _>>()?);
                let (user, seen) = FromReply::from_reply(check)?;
                session::from_check(token, user, seen, self.now, &self.app.config.session)
            }
        };
        Ok((look, session))
    }

    /// The page is not stored: the visitor waits for the origin, and whoever has the lease stores what came.
    async fn render(self, page: Page, lease: Option<Lease>, session: Option<Session>, request: Request) -> Answer {
        let stamp = lease.as_ref().map_or(0, Lease::stamp);
        match page_cache::render(&self.app, &page, stamp, self.now).await {
            Ok((Rendered::Page { entry, lives }, _)) => {
                let status =
                    if lease.is_some() { CacheStatus::Stored } else { CacheStatus::Miss { detail: "in-render" } };
                let mut answer = self.answer_from(&entry, status, &request);
                let app = self.app.clone();
                answer.later.extend(lease.map(|lease| -> Later {
                    Box::pin(
                        async move { log_failure(page_cache::store(&app.redis, &page, &lease, &entry, lives).await) },
                    )
                }));
                answer
            }
            Ok((Rendered::Other { mut response, reason }, says)) => {
                let status = CacheStatus::Miss { detail: reason };
                let failed = response.status().is_server_error();
                // Not for everybody, so this visitor may get another one: their cookies and name go along this time. What came
                // for nobody is dropped, since its Set-Cookie would take away the session that they have at the origin.
                if !failed && (reason == "vary" || is_somebody(session.as_ref(), request.headers())) {
                    return self.proxy(status, session.into(), request).await;
                }
                status.append_to(&mut response);
                let give_back = lease.filter(|_| failed).map(|lease| self.give_back(page, lease));
                let mut answer = self.finish(response, says, None, request.method(), request.headers()).await;
                answer.later.extend(give_back);
                answer
            }
            Err(error) => {
                let mut response = failure(error, request.headers());
                CacheStatus::Miss { detail: "origin-down" }.append_to(&mut response);
                Answer { response, later: lease.map(|lease| self.give_back(page, lease)).into_iter().collect() }
            }
        }
    }

    /// Renders a stale page behind the answer. What can not be stored leaves the stale page in place, and the lease: the next
    /// try comes when that has run out, so a failing origin is not asked at every visit.
    fn render_again(&self, page: Page, lease: Lease) -> Later {
        let (app, now) = (self.app.clone(), self.now);
        Box::pin(async move {
            match page_cache::render(&app, &page, lease.stamp(), now).await {
                Ok((Rendered::Page { entry, lives }, _)) => {
                    log_failure(page_cache::store(&app.redis, &page, &lease, &entry, lives).await);
                }
                Ok((Rendered::Other { reason, .. }, _)) => log::warn!("page cache: not rendered again: {reason}"),
                Err(error) => log::warn!("page cache: not rendered again: {error}"),
            }
        })
    }

    fn give_back(&self, page: Page, lease: Lease) -> Later {
        let app = self.app.clone();
        Box::pin(async move { log_failure(page_cache::give_back(&app.redis, &page, &lease).await) })
    }

    /// A page that was rendered for everybody, for this visitor.
    fn answer_from(&self, entry: &Entry, status: CacheStatus, request: &Request) -> Answer {
        let response = page_cache::serve(entry, request.headers(), status, self.now);
        // A 304 is a view too: the visitor looks at the page that the 200 was.
        Answer { response, later: self.seen(request.method(), entry.status).into_iter().collect() }
    }

    /// A request that the cache has no part in.
    async fn pass(self, pass: Pass, request: Request) -> Answer {
        let (config, uri) = (&self.app.config, request.uri());
        let with_cart = config.origin.cart_routes.iter().any(|path| path == uri.path());
        let sale = config.flash.checkout.item(uri.path(), uri.query());
        match self.visitor(with_cart, sale).await {
            Ok(visitor) => self.proxy(CacheStatus::Pass(pass), visitor, request).await,
            Err(error) => {
                log::warn!("session: {error}");
                self.proxy(CacheStatus::Pass(Pass::RedisDown), Visitor::default(), request).await
            }
        }
    }

    /// Who asks, `with_cart` what is in their cart, and what is held for them of `sale`: all in one request, and only if there is
    /// a signed cookie.
    async fn visitor(&self, with_cart: bool, sale: Option<ItemId>) -> Result<Visitor, Error> {
        let (redis, config) = (&self.app.redis, &self.app.config.session);
        // Without a session there is nothing in it, which is known without Redis.
        let nothing = with_cart.then(Cart::default);
        let Some(token) = &self.token else { return Ok(Visitor { cart: nothing, ..Visitor::default() }) };
        if let Some(sale) = sale {
            return self.buyer(token, RowId::from(sale), with_cart).await;
        }
        if !with_cart {
            return Ok(session::check(redis, token, self.now, config).await?.into());
        }
        Ok(match cart::read(redis, token, self.now, config).await? {
            Some((session, cart)) => Visitor { user: session.user, cart: Some(cart), reservation: None },
            None => Visitor { cart: nothing, ..Visitor::default() },
        })
    }

    /// As [`Visit::visitor`], where a piece of `sale` is bought. The cart is read whether it is told or not: one pipeline for both.
    async fn buyer(&self, token: &Token, sale: RowId, with_cart: bool) -> Result<Visitor, Error> {
        let [user, seen, cart] = cart::read_commands(token);
        let held = flash_sale::held_for(&sale, token, self.now);
        let (user, seen, cart, held) = self.app.redis.all(&[user, seen, cart, held]).await?;
        let session = session::from_check(token, user, seen, self.now, &self.app.config.session);
        let cart = if session.is_some() { Cart::from_pairs(cart) } else { Cart::default() };
        let held: Option<Reservation> = held;
        let reservation = held.filter(|_| session.is_some()).map(|reservation| (sale, reservation));
        Ok(Visitor { cart: with_cart.then_some(cart), reservation, ..session.into() })
    }

    /// Passes the request on as its visitor's own.
    async fn proxy(self, status: CacheStatus, visitor: Visitor, request: Request) -> Answer {
        let method = request.method().clone();
        let asked = request.headers().clone();
        match origin::ask(&self.app, request, &visitor, self.now).await {
            Ok((mut response, says)) => {
                status.append_to(&mut response);
                self.finish(response, says, visitor.user.as_ref(), &method, &asked).await
            }
            Err(error) => {
                let mut response = failure(error, &asked);
                status.append_to(&mut response);
                response.into()
            }
        }
    }

    /// What holds for every answer of the origin that is not served as a page: login, logout, cart, caching, and the view. `user`
    /// is whom the origin was told of.
    async fn finish(
        &self,
        mut response: Response,
        mut says: Says,
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
            Err(error) => return Answer { response: failure(error, asked), later: order.into_iter().collect() },
        };
        if let Some(cookie) = cookie {
            headers.append(header::SET_COOKIE, cookie);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        }
        Answer { response, later: self.seen(method, status).into_iter().chain(order).collect() }
    }

    /// Settles what the visitor has bought; what comes back feeds the insights. The order did happen, whatever goes wrong here: the
    /// failure is logged, and behind the answer there is time to try it once more.
    async fn settle(&self, order: Order, user: Option<&UserId>) -> Later {
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
                app.traffic.order();
            }
            log_failure(is_new);
        })
    }

    /// Does what the origin said, in this order: login or logout, then the change to the cart of whoever it is then. The cookie
    /// that follows from it.
    async fn obey(&self, says: Says, user: Option<&UserId>, asked: &HeaderMap) -> Result<Option<HeaderValue>, Error> {
        let Self { app, now, .. } = self;
        let (mut token, mut cookie) = (self.token.clone(), None);
        if let Some(user) = says.user {
            let (old, label, config) = (token.as_ref(), Label::of(asked), &app.config.session);
            let new = session::log_in_once(&app.redis, old, &user, label.as_ref(), None, *now, config).await?;
            cookie = Some(app.keyring.set(&new)?);
            token = Some(new);
        } else if let Some(logout) = says.logout {
            self.log_out(logout, user).await?;
            cookie = Some(session::cookie::clear());
            token = None;
        }
        if let Some(change) = says.cart {
            let write = cart::change(&app.redis, token.as_ref(), &change, *now, &app.config).await?;
            if let Change::Add(_, quantity) = change {
                app.traffic.added(&write.cart, quantity.get());
            }
            if let Some(session) = write.session.filter(|_| write.created) {
                cookie = Some(app.keyring.set(&session.token)?);
            }
        }
        Ok(cookie)
    }

    /// Ends the visitor's session, and with [`Logout::All`] first every other one of `user`. Where Redis did not say who it is
    /// when the request came, it is asked again: not one of the sessions may be missed.
    async fn log_out(&self, logout: Logout, user: Option<&UserId>) -> Result<(), Error> {
        let Self { app, now, .. } = self;
        let config = &app.config.session;
        let Some(token) = &self.token else { return Ok(()) };
        if logout == Logout::All {
            let user = match user {
                Some(user) => Some(user.clone()),
                None => session::check(&app.redis, token, *now, config).await?.and_then(|session| session.user),
            };
            if let Some(user) = user {
                session::log_out_user(&app.redis, &user, *now, config).await?;
            }
        }
        session::log_out(&app.redis, token, *now, config).await
    }

    /// Notes that the session was here, and the view of an item: counted only if the origin answered 200 for it, so that
    /// made-up names can not push real items out of the ranking.
    fn seen(&self, method: &Method, status: StatusCode) -> Option<Later> {
        let item = self.item.clone().filter(|_| method == Method::GET && status == StatusCode::OK);
        if item.is_some() {
            self.app.traffic.count(Count::View);
        }
        if item.is_none() && self.token.is_none() {
            return None;
        }
        let (app, token, now) = (self.app.clone(), self.token.clone(), self.now);
        Some(Box::pin(async move { log_failure(note(&app, token.as_ref(), item.as_ref(), now).await) }))
    }
}

/// Whether the origin could know the visitor: as our user, or by a cookie of its own.
fn is_somebody(session: Option<&Session>, headers: &HeaderMap) -> bool {
    session.is_some_and(|session| session.user.is_some()) || session::cookie::strip(headers).is_some()
}

async fn note(app: &App, token: Option<&Token>, item: Option<&ItemId>, now: Timestamp) -> Result<(), Error> {
    if let Some(token) = token
        && session::touch(&app.redis, token, item, View::Served, now, &app.config.session).await?.is_some()
    {
        return Ok(());
    }
    // A session that has ended is a visitor without one.
    match item {
        Some(item) => Ok(app.redis.run(ranking::count(item)).await?),
        None => Ok(()),
    }
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
