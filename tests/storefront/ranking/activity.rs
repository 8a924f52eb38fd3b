//! The background writes of an isolate.

use std::rc::Rc;

use edgefront::{App, ranking::activity::Viewer, schema::ids::UserId, sessions};
use edgefront_gateway::{
    Fault, FaultScope,
    server::{Server, ServerOptions},
};

use super::{item, views};
use crate::support::Store;

/// Runs the writes of one request.
async fn write(app: &Rc<App>) {
    app.activity.flush(&app.redis, &app.clock, &app.limits.views, app.clock.now()).expect("pending activity").await;
}

/// The script of the touches is unknown after a restart of the server, and the request with its source is refused. The
/// first request has counted the other view.
#[tokio::test]
async fn a_view_that_was_counted_beside_a_refused_script_counts_once() {
    let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let store = Store::on(&format!("{}/0", server.url())).await;
    let app = store.app(&[]);
    let now = app.clock.now();
    let user = UserId::parse("ada").unwrap();
    let token = sessions::log_in(&app.redis, None, &user, now, &app.config.session).await.unwrap();
    let record = |token, name| app.activity.record_visit(Viewer { token, network: None }, Some(&item(name)), now);
    record(Some(&token), "cup");
    record(None, "mug");

    store.gateway.set_fault_for(Fault::quota(), FaultScope::Every(2));
    write(&app).await;
    assert_eq!((views(&store, "mug").await, views(&store, "cup").await), (Some(1.0), None));

    store.gateway.set_fault(None);
    write(&app).await;
    assert_eq!((views(&store, "mug").await, views(&store, "cup").await), (Some(1.0), Some(1.0)));
}
