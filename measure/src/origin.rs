//! The storefront behind all Workers. Every path is the same page of 20 KB, so that a measurement contains almost no
//! work of the origin. Only `/rows` returns rows. A row whose id begins with `sale` is a running flash sale.

use std::{convert::Infallible, io, net::Ipv4Addr};

use bytes::Bytes;
use edgefront_models::histories::stock::PIECES;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use xtask::failure::Failure;

/// The smallest size of a page.
pub const PAGE_BYTES: usize = 20_000;

/// A running origin. Dropping it closes its port.
pub struct Origin {
    url: String,
    _server: JoinSet<()>,
}

impl Origin {
    /// Starts an origin on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start() -> Result<Self, Failure> {
        let failed = |cause: io::Error| Failure::new(format!("the origin does not start: {cause}"), "");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let mut server = JoinSet::new();
        server.spawn(serve(listener));
        Ok(Self { url, _server: server })
    }

    /// For `ORIGIN_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

async fn serve(listener: TcpListener) {
    let page = page();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                let _ = stream.set_nodelay(true);
                let page = page.clone();
                connections.spawn(async move {
                    let service = service_fn(|request| {
                        std::future::ready(Ok::<_, Infallible>(respond(&request, page.clone())))
                    });
                    // A client that closes its connection is not an error.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

fn respond(request: &Request<Incoming>, page: Bytes) -> Response<Full<Bytes>> {
    if request.uri().path() == "/rows" {
        let ids = request.uri().query().and_then(|query| query.strip_prefix("ids=")).unwrap_or_default();
        let rows: Vec<_> = ids.split(',').map(row).collect();
        return Response::new(Full::new(json!(rows).to_string().into()));
    }
    let mut response = Response::new(Full::new(page));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn row(id: &str) -> Value {
    if !id.starts_with("sale") {
        return json!({"id": id, "stock": 42});
    }
    json!({"id": id, "sale_starts_at": 1, "sale_ends_at": 4_102_444_800_u64, "sale_pieces": PIECES, "sale_sold": 0})
}

/// One page for all items: reading the path would make the origin slower.
fn page() -> Bytes {
    let line = "<p>A page of a shop: what it is called, what it costs, what else there is.</p>\n";
    let visitor = "<p><b class=user>Sign in</b> <i class=cart>0</i></p>\n";
    [visitor, &line.repeat(PAGE_BYTES.div_ceil(line.len()) + 1)].concat().into()
}
