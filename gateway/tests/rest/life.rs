//! Start, end, and the server's restarts.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use edgefront_gateway::{
    Gateway, Options, StartError,
    server::{Server, ServerError, ServerOptions},
};
use tokio::net::TcpStream;

use crate::support::{Rest, TOKEN, fresh_database, rest};

async fn start_error(options: Options) -> String {
    match Gateway::start(options).await {
        Err(error) => error.to_string(),
        Ok(gateway) => panic!("{} must not start", gateway.url()),
    }
}

#[tokio::test]
async fn a_wrong_start_names_cause_and_remedy() {
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let message = start_error(Options::new(format!("redis://{unused}"), TOKEN)).await;
    assert!(message.contains(&unused.to_string()) && message.contains("check that it is running"), "{message}");

    let message = start_error(Options::new("http://127.0.0.1:6379", TOKEN)).await;
    assert!(message.contains("redis://127.0.0.1:6379/0"), "{message}");

    let database = fresh_database();
    let (server, _) = database.rsplit_once('/').expect("a database number");
    let message = start_error(Options::new(format!("{server}/100000"), TOKEN)).await;
    assert!(message.contains("address, password and database"), "{message}");

    let with_password = database.replace("redis://", "redis://:hunter2@");
    let message = start_error(Options::new(with_password, TOKEN)).await;
    assert!(message.contains("password") && !message.contains("hunter2"), "{message}");

    assert!(start_error(Options::new(&database, "")).await.contains("token is empty"));

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = taken.local_addr().expect("an address");
    let options = Options { listen, ..Options::new(&database, TOKEN) };
    let Err(StartError::Listen { address, .. }) = Gateway::start(options).await else {
        panic!("two listeners on {listen}");
    };
    assert_eq!(address, listen);
}

#[tokio::test]
async fn a_dropped_gateway_stops_listening_and_closes_its_connections() {
    let rest = rest().await;
    let address = rest.gateway.url().replace("http://", "");
    let idle = TcpStream::connect(&address).await.expect("a connection");
    rest.command(r#"["PING"]"#).await;
    drop(rest);
    idle.readable().await.expect("a closed connection");
    let deadline = Instant::now() + Duration::from_secs(5);
    while TcpStream::connect(&address).await.is_ok() {
        assert!(Instant::now() < deadline, "{address} still listens");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn after_a_restart_of_the_server_the_same_database_answers_again() {
    let data = std::env::temp_dir().join(format!("edgefront-gateway-{}", std::process::id()));
    std::fs::create_dir_all(&data).expect("a directory");
    let options = ServerOptions { dir: Some(data.clone()), databases: 9, ..ServerOptions::default() };
    let mut server = Server::start(options).expect("a server");
    let gateway = Gateway::start(Options::new(format!("{}/7", server.url()), TOKEN)).await.expect("a gateway");
    let rest = Rest { gateway };
    rest.command(r#"["SET","k","kept in 7"]"#).await;

    server.stop();
    let down = rest.send("GET", "/get/k", &[], b"").await;
    assert!([502, 503].contains(&down.status), "{down:?}");
    let down = rest.send("GET", "/get/k", &[], b"").await;
    let error = r#"{"error":"ERR Redis is unreachable, nothing was executed"}"#;
    assert_eq!((down.status, down.text()), (503, error));

    server.start_again().expect("the server again");
    assert_eq!(rest.command(r#"["GET","k"]"#).await, r#"{"result":"kept in 7"}"#);
    std::fs::remove_dir_all(&data).expect("the directory is ours");
}

#[test]
fn a_server_that_does_not_come_up_shows_its_log() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let Err(error @ ServerError::Ended { .. }) = Server::start(ServerOptions { port, ..ServerOptions::default() })
    else {
        panic!("two servers on port {port}");
    };
    assert!(error.to_string().contains("already in use"), "{error}");

    let binary = Some("/nowhere/valkey-server".into());
    let error = Server::start(ServerOptions { binary, ..ServerOptions::default() }).err();
    assert!(error.is_some_and(|error| error.to_string().contains("/nowhere/valkey-server")));
}

#[test]
fn a_dropped_server_is_gone() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let address = ("127.0.0.1", server.port());
    assert!(std::net::TcpStream::connect(address).is_ok());
    drop(server);
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// Starts itself again as the user that is to be killed, told so by the environment.
#[test]
fn a_server_ends_with_its_user_even_when_that_is_killed() {
    const NAME: &str = "life::a_server_ends_with_its_user_even_when_that_is_killed";
    if std::env::var_os("TO_BE_KILLED").is_some() {
        let server = Server::start(ServerOptions::default()).expect("a server");
        println!("\nport={}", server.port());
        loop {
            std::thread::park();
        }
    }
    let mut user = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", NAME, "--nocapture"])
        .env("TO_BE_KILLED", "yes")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program again");
    let lines = BufReader::new(user.stdout.take().expect("its output")).lines();
    let port = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("port=")?.parse::<u16>().ok());
    let address = ("127.0.0.1", port.expect("a port"));
    assert!(std::net::TcpStream::connect(address).is_ok());

    user.kill().expect("a running user");
    user.wait().expect("its end");
    let deadline = Instant::now() + Duration::from_secs(5);
    while std::net::TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < deadline, "the server outlives its user");
        std::thread::sleep(Duration::from_millis(5));
    }
}
