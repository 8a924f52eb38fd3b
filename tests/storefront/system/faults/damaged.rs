//! Keys that another program has damaged: each action of a shop while one key has another type.
//!
//! A page is stored and served as usual. A call fails only if the damaged key holds its data.

use futures_util::{StreamExt, stream};
use upstash_rest::Command;

use super::{
    AT_ONCE, Layout,
    action::{
        ACTIONS,
        Action::{self, *},
    },
    world::World,
};

/// The keys, and the actions that may fail. `T` is the visitor's token, `H` the page's hash.
const KEYS: [(&str, &[Action]); 31] = [
    ("login:", &[Session, Login, FormLogin, Logout, CartAdd, CartSet, Reserve]),
    ("recent:", &[Login, FormLogin, Logout, CartSet]),
    ("viewed:T", &[]),
    ("cart:T", &[]),
    ("sessions:ada", &[]),
    ("devices:ada", &[]),
    ("abandoned:", &[]),
    // A shop may have keys of this name. Nothing of it is deleted.
    ("order:order-1", &[Order]),
    ("viewed:", &[]),
    ("rescaled:", &[]),
    ("ranked:", &[]),
    ("ranked:hour", &[]),
    ("cache:H", &[]),
    ("variants:H", &[]),
    ("render:H", &[]),
    ("purged:", &[]),
    ("purged:latest", &[]),
    ("stored:", &[]),
    ("schedule:", &[Row]),
    ("delay:", &[Row]),
    ("inv:mug", &[]),
    ("inv:pan", &[]),
    ("flash:pan", &[Reserve]),
    ("held:pan", &[]),
    // The repeated report finds the order counted.
    ("bought:", &[Order]),
    ("rescaled:bought", &[Order]),
    ("bought:mug", &[]),
    ("led-to:mug", &[]),
    ("traffic:", &[]),
    ("traffic:totals", &[]),
    ("jobs:", &[]),
];

#[tokio::test]
async fn a_damaged_key_costs_only_what_it_holds() {
    let hash = hash_of_the_page().await;
    let fields = KEYS.iter().flat_map(|key| ACTIONS.iter().map(move |(action, _)| (*key, *action)));
    let tried = fields.map(async |((key, may_fail), action)| {
        let problem = problem(key, &hash, action, may_fail.contains(&action)).await;
        problem.map(|problem| format!("{key} {action:?}: {problem}"))
    });
    let problems: Vec<_> =
        stream::iter(tried).buffer_unordered(AT_ONCE).filter_map(async |problem| problem).collect().await;
    assert!(problems.is_empty(), "{} fields:\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn a_member_that_is_not_utf8_is_left_out() {
    let world = World::new(Layout::Book.store().await);
    CartAdd.prepare(&world).await;
    let token = world.token();
    let member = [0xff];
    for command in [
        // Only the last argument of a command may be arbitrary bytes.
        Command::write("EVAL")
            .arg("return redis.call('HSET', KEYS[1], ARGV[1], 1)")
            .num(1)
            .arg(format!("cart:{token}"))
            .arg(member),
        Command::write("ZADD").arg(format!("viewed:{token}")).num(1).arg(member),
        Command::write("ZADD").arg("viewed:").num(-1).arg(member),
    ] {
        world.store.aside.run::<()>(command).await.unwrap();
    }
    for path in ["/_edge/v1/session", "/_edge/v1/cart", "/_edge/v1/recent", "/_edge/v1/popular"] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
    let seen = CartAdd.act(&world).await;
    assert_eq!(seen.status, 200, "{}", String::from_utf8_lossy(&seen.body));
}

async fn hash_of_the_page() -> String {
    let world = World::new(Layout::Book.store().await);
    PageHit.prepare(&world).await;
    let keys = world.store.raw(&["KEYS", "cache:*"]).await;
    keys[0].as_str().expect("a key").trim_start_matches("cache:").to_owned()
}

/// The harm of the damaged key to the action and to the visitor's next requests, if any.
async fn problem(key: &str, hash: &str, action: Action, may_fail: bool) -> Option<String> {
    let world = World::new(Layout::Book.store().await);
    action.prepare(&world).await;
    let token = world.token();
    if key.ends_with('T') && token.is_empty() {
        return None;
    }
    let key = key.replace('T', &token).replace('H', hash);
    world.store.raw(&["DEL", &key]).await;
    let is_string =
        ["cache:", "render:", "purged:latest", "rescaled:", "inv:"].iter().any(|name| key.starts_with(name));
    let set = if is_string { "RPUSH" } else { "SET" };
    world.store.raw(&[set, &key, "another program's"]).await;
    let seen = action.act(&world).await;
    if seen.status >= 500 && !may_fail {
        return Some(format!("{} {}", seen.status, String::from_utf8_lossy(&seen.body)));
    }
    let holds_sessions = ["login:", "recent:"].contains(&key.as_str());
    for path in ["/products/mug", "/_edge/v1/session", "/_edge/v1/cart", "/_edge/v1/recent"] {
        let seen = world.get(path).await;
        let cache = seen.header("cache-status");
        if !holds_sessions && (seen.status != 200 || cache.contains("redis-down")) {
            return Some(format!("then {path} {} {cache}", seen.status));
        }
    }
    if action.is_page() && key != "viewed:" {
        let again = world.get("/products/mug").await;
        if !again.header("cache-status").contains("; hit") {
            return Some(format!("then {}", again.header("cache-status")));
        }
    }
    None
}
