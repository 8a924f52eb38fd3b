//! The storefront behind all candidates: every path is a page of 20 KB, made without any work, so that what is measured is not the origin.
//! Only `/rows` answers with rows.

use std::{convert::Infallible, io, net::Ipv4Addr};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

use super::workload::PAGE_BYTES;
use xtask::failure::Failure;

/// A running origin; ends when dropped.
pub struct Origin {
    url: String,
    _serving: JoinSet<()>,
}

impl Origin {
    /// # Errors
    /// When there is no free port.
    pub async fn start() -> Result<Self, Failure> {
        let failed = |cause: io::Error| Failure::new(format!("the origin: {cause}"), "");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener));
        Ok(Self { url, _serving: serving })
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
                    let answer = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request, page.clone()))));
                    // A client that goes away is no failure.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

fn answer(request: &Request<Incoming>, page: Bytes) -> Response<Full<Bytes>> {
    if request.uri().path() == "/rows" {
        let ids = request.uri().query().and_then(|query| query.strip_prefix("ids=")).unwrap_or_default();
        let rows: Vec<_> = ids.split(',').map(|id| json!({"id": id, "stock": 42})).collect();
        return Response::new(Full::new(json!(rows).to_string().into()));
    }
    let mut answer = Response::new(Full::new(page));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    answer
}

/// The same for every item: an origin that reads the path would be slower, and nobody reads the page.
fn page() -> Bytes {
    let line = "<p>A page of a shop: what it is called, what it costs, what else there is.</p>\n";
    line.repeat(PAGE_BYTES.div_ceil(line.len()) + 1).into()
}
