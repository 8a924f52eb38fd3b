//! edgefront behind an HTTP server in this process. It runs on one thread, like an isolate.

use std::{
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use edgefront::{App, jobs, routes};
use edgefront_gateway::Gateway;
use futures_util::future::LocalBoxFuture;
use tokio::task::spawn_local;

use super::{
    HttpServer, Store, TestClock,
    logs::{self, Lines},
    server::Handler,
    shop::Progress,
    store,
};

/// A running native edgefront.
pub struct Native {
    server: HttpServer,
    progress: Arc<Mutex<Progress>>,
    lines: Lines,
}

impl Native {
    pub fn start(store: &Store, variables: &[(String, String)]) -> Self {
        let config = store::config(variables);
        let gateway = store.gateway.clone();
        let progress = Arc::<Mutex<Progress>>::default();
        let lines = Lines::default();
        let (for_server, for_log) = (progress.clone(), lines.clone());
        let server = HttpServer::start(move || {
            logs::keep_this_threads(for_log);
            let app = Rc::new(store::app(config, TestClock::ticking()));
            handler(app, gateway, for_server)
        });
        Self { server, progress, lines }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn logs(&self) -> Vec<String> {
        self.lines.all()
    }

    pub fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn handler(app: Rc<App>, gateway: Arc<Gateway>, progress: Arc<Mutex<Progress>>) -> Handler {
    Rc::new(move |request| -> LocalBoxFuture<'static, _> {
        let (app, gateway, progress) = (app.clone(), gateway.clone(), progress.clone());
        Box::pin(async move {
            let note = move |change: &dyn Fn(&mut Progress)| {
                change(&mut progress.lock().unwrap_or_else(PoisonError::into_inner));
            };
            if request.uri().path() == "/cdn-cgi/local/scheduled" {
                let query = request.uri().query().unwrap_or_default();
                let cron = query.trim_start_matches("cron=").replace('+', " ");
                jobs::run_cron(&app, &cron, app.clock.now()).await;
                return Some(http::Response::default());
            }
            let (before, forwarded) = (gateway.received(), gateway.forwarded());
            let answer = routes::handle(&app, request).await;
            let (blocking, forwarded) = (gateway.received() - before, gateway.forwarded() - forwarded);
            let tasks = answer.background.len() as u64;
            note(&|progress| {
                let background = progress.background + tasks;
                *progress = Progress { background, blocking, forwarded, ..Progress::default() };
            });
            for work in answer.background {
                let note = note.clone();
                spawn_local(async move {
                    work.await;
                    note(&|progress| progress.background -= 1);
                });
            }
            Some(answer.response)
        })
    })
}
