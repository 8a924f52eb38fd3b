//! Every fault of D1 during every action that uses D1, in workerd with the demo shop. Each field of the table is judged by
//! the same rules.

use edgefront::demo::FLASH_SALES;
use http::Method;
use serde_json::{Value, json};

use super::table::Table;
use crate::{
    demo::{
        checkout::buy,
        person::{PASSWORD, Page, Person},
    },
    page_cache::cache_status,
    routes::api::{Visitor, log_in, service},
    support::{Shop, eventually},
};

const MUG: &str = "enamel-mug-sage";
const SALE: &str = FLASH_SALES[0];
/// All tables that the Worker reads.
const TABLES: [&str; 6] = ["products", "inventory", "users", "orders", "order_lines", "flash_purchases"];

/// A fault with its name in the table.
const FAULTS: [(&str, Fault); 4] = [
    ("no fault", Fault::Nothing),
    ("tables missing", Fault::NoTables),
    ("overloaded", Fault::Set("refused")),
    ("reply to a write lost", Fault::Set("reply-lost")),
];

#[derive(Clone, Copy)]
enum Fault {
    Nothing,
    /// D1 refuses every statement that names a table.
    NoTables,
    /// A fault of the test bed, by its name.
    Set(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    PageStored,
    PageNotStored,
    Cart,
    CartChange,
    Form,
    Order,
    FlashForm,
    FlashOrder,
    SignUp,
    SignIn,
    Account,
    OrderPage,
    Row,
    RowWithoutCopy,
    Schedule,
    Refresh,
}

use Action::*;

const ACTIONS: [(Action, &str); 16] = [
    (PageStored, "stored page"),
    (PageNotStored, "page that is not stored"),
    (Cart, "cart page"),
    (CartChange, "cart, change by form"),
    (Form, "checkout, form"),
    (Order, "checkout, order"),
    (FlashForm, "flash sale, checkout form"),
    (FlashOrder, "flash sale, order"),
    (SignUp, "sign-up"),
    (SignIn, "sign-in"),
    (Account, "account page"),
    (OrderPage, "order page"),
    (Row, "`GET /rows/{id}`"),
    (RowWithoutCopy, "`GET /rows/{id}` without a copy"),
    (Schedule, "`PUT /rows/{id}/schedule`"),
    (Refresh, "cron, refresh rows"),
];

/// One field of the table, with a customer of its own.
struct Field<'a> {
    shop: &'a Shop,
    action: Action,
    person: Person<'a>,
    /// The user's or the guest's name.
    name: String,
    /// The page that was open before the fault.
    page: Option<Page>,
}

impl<'a> Field<'a> {
    async fn prepare(shop: &'a Shop, action: Action, number: usize) -> Self {
        let name = format!("user-{number}");
        let mut person = Person::at(shop);
        let mut page = None;
        match action {
            PageStored => {
                let path = format!("/products/{MUG}");
                eventually("the page is stored", async || cache_status(&shop.visit(&path).await).contains("; hit"))
                    .await;
            }
            Cart | Form | Order => {
                person.add(MUG, 1).await;
                page = Some(person.get("/checkout").await);
            }
            OrderPage => {
                person.add(MUG, 1).await;
                page = Some(buy(&person, &person.get("/checkout").await).await);
            }
            FlashForm | FlashOrder => {
                let mut visitor = log_in(shop, &name).await;
                let path = format!("/flash/{SALE}/reservations");
                assert_eq!(visitor.send(visitor.request(Method::POST, &path)).await.status, 201);
                person = Person::with_cookie(shop, &visitor.cookie.expect("a cookie"));
                page = Some(person.get(&format!("/flash/{SALE}/checkout")).await);
            }
            SignIn => Person::at(shop).sign_up(&format!("{name}@example.org")).await,
            Account => person.sign_up(&format!("{name}@example.org")).await,
            Row | RowWithoutCopy | Refresh => {
                assert_eq!(schedule(shop).await, 200);
                match action {
                    RowWithoutCopy => {
                        shop.store.raw(&["DEL", &format!("inv:{MUG}")]).await;
                        shop.store.raw(&["ZADD", "schedule:", "1", MUG]).await;
                    }
                    Refresh => {
                        shop.store.raw(&["SET", &format!("inv:{MUG}"), r#"{"stock":-1}"#]).await;
                        shop.store.raw(&["ZADD", "schedule:", "1", MUG]).await;
                    }
                    _ => {}
                }
            }
            Schedule => {
                for key in ["schedule:", "delay:"] {
                    shop.store.raw(&["ZREM", key, MUG]).await;
                }
                shop.store.raw(&["DEL", &format!("inv:{MUG}")]).await;
            }
            PageNotStored | CartChange | SignUp => {}
        }
        shop.settled().await;
        Self { shop, action, person, name, page }
    }

    /// Executes the action. A second call is a retry.
    async fn act(&self) -> Page {
        let email = format!("{}@example.org", self.name);
        let page = || self.page.as_ref().expect("a page");
        match self.action {
            PageStored => self.person.get(&format!("/products/{MUG}")).await,
            PageNotStored => self.person.get(&format!("/categories/desk?visit={}", self.name)).await,
            Cart => self.person.get("/cart").await,
            CartChange => self.person.post("/cart", &[("op", "set"), ("id", MUG), ("quantity", "1")]).await,
            Form => self.person.get("/checkout").await,
            Order => buy(&self.person, page()).await,
            FlashForm => self.person.get(&format!("/flash/{SALE}/checkout")).await,
            FlashOrder => {
                let order_id = page().field("order_id");
                let fields = [("order_id", &*order_id), ("price_cents", "7900"), ("name", "Ada"), ("email", &email)];
                let fields = [
                    &fields[..],
                    &[("address", "1 Analytical Street"), ("postcode", "W1"), ("city", "London"), ("country", "UK")],
                ]
                .concat();
                self.person.post(&format!("/flash/{SALE}/checkout"), &fields).await
            }
            SignUp => {
                let fields = [("name", "Ada"), ("email", &*email), ("password", PASSWORD), ("next", "/account")];
                self.person.post("/signup", &fields).await
            }
            SignIn => self.sign_in().await,
            Account => self.person.get("/account").await,
            OrderPage => self.person.get(page().location()).await,
            Row | RowWithoutCopy => self.person.get(&format!("/_edge/v1/rows/{MUG}")).await,
            Schedule => {
                let status = schedule(self.shop).await;
                Page {
                    status: status.try_into().expect("a status"),
                    headers: http::HeaderMap::new(),
                    text: String::new(),
                }
            }
            Refresh => {
                let status = service(self.shop, Method::POST, "/jobs/refresh-rows", None).await.status;
                Page {
                    status: status.try_into().expect("a status"),
                    headers: http::HeaderMap::new(),
                    text: String::new(),
                }
            }
        }
    }

    async fn sign_in(&self) -> Page {
        let email = format!("{}@example.org", self.name);
        self.person.post("/login", &[("email", &email), ("password", PASSWORD), ("next", "/account")]).await
    }

    /// The number of times that the action took effect. None: it has no effect, or the response shows it.
    async fn done(&self) -> Option<u64> {
        let count = async |sql: String| {
            let rows = self.shop.sql(&format!("SELECT count(*) AS n FROM {sql}")).await;
            rows[0]["n"].as_u64()
        };
        let order_id = || self.page.as_ref().expect("a page").field("order_id");
        match self.action {
            Order => count(format!("order_lines WHERE order_id = '{}'", order_id())).await,
            FlashOrder => count(format!("flash_purchases WHERE order_id = '{}'", order_id())).await,
            SignUp => count(format!("users WHERE id = '{}@example.org'", self.name)).await,
            Schedule => Some(u64::from(!self.shop.store.raw(&["ZSCORE", "schedule:", MUG]).await.is_null())),
            Refresh => {
                let copy = self.shop.store.raw(&["GET", &format!("inv:{MUG}")]).await;
                let copy: Value = serde_json::from_str(copy.as_str().expect("a copy")).expect("JSON");
                Some(u64::from(copy["stock"] != -1))
            }
            _ => None,
        }
    }
}

async fn schedule(shop: &Shop) -> u16 {
    let path = format!("/rows/{MUG}/schedule");
    service(shop, Method::PUT, &path, Some(&json!({"every": 3600}))).await.status
}

impl Fault {
    async fn begin(self, shop: &Shop) {
        match self {
            Self::Nothing => {}
            Self::NoTables => rename(shop, "", "away_").await,
            Self::Set(name) => shop.set_database_fault(name).await,
        }
    }

    async fn end(self, shop: &Shop) {
        match self {
            Self::Nothing => {}
            Self::NoTables => rename(shop, "away_", "").await,
            Self::Set(_) => shop.set_database_fault("").await,
        }
    }
}

async fn rename(shop: &Shop, from: &str, to: &str) {
    for table in TABLES {
        shop.sql(&format!("ALTER TABLE {from}{table} RENAME TO {to}{table}")).await;
    }
}

/// Tests an action under a fault, asserts the rules, and returns the field of the table.
async fn judge(shop: &Shop, fault: Fault, action: Action, number: usize) -> String {
    let field = Field::prepare(shop, action, number).await;
    fault.begin(shop).await;
    let seen = field.act().await;
    shop.settled().await;
    fault.end(shop).await;
    let done = field.done().await;
    let said = format!("{action:?}: {seen:?}, done {done:?}");
    let status = seen.status.as_u16();
    assert!(status < 400 || status == 503, "{said}");
    if status == 503 && !matches!(action, Schedule | Refresh) {
        assert!(seen.headers.contains_key("retry-after"), "{said}");
    }
    assert!(!seen.text.contains("D1_ERROR") && !seen.text.contains("no such table"), "{said}");
    assert!(done.is_none_or(|times| times <= 1), "{said}");
    let is_claimed = status < 400 && action != Refresh;
    assert!(!is_claimed || done.is_none_or(|times| times == 1), "{said}");
    if matches!(action, RowWithoutCopy | Refresh) {
        // After a failed read, the row waits for its next turn.
        shop.store.raw(&["ZADD", "schedule:", "1", MUG]).await;
    }
    // The same form or call, after the fault.
    let again = field.act().await;
    match action {
        SignUp if again.status.as_u16() >= 400 => assert_eq!(field.sign_in().await.status, 303, "{again:?}"),
        _ => assert!(again.status.as_u16() < 400, "the retry of {said}: {again:?}"),
    }
    assert!(field.done().await.is_none_or(|times| times == 1), "after the retry of {said}");
    match done {
        Some(_) if action == Refresh => if done == Some(1) { "done" } else { "the next run" }.to_owned(),
        Some(1) => format!("{status}, done"),
        Some(_) => format!("{status}, not done"),
        None => status.to_string(),
    }
}

#[tokio::test]
async fn database_faults_have_the_documented_results() {
    let variables = [("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory"), ("ROW_MEMORY", "0"), ("FLASH_HOLD", "3600")];
    let shop = Shop::workerd(&variables).await;
    let sale = format!("/rows/{SALE}/schedule");
    assert_eq!(service(&shop, Method::PUT, &sale, Some(&json!({"every": 3600}))).await.status, 200);
    assert_eq!(Visitor::new(&shop).get(&format!("/flash/{SALE}")).await.json["state"], "live");
    let labels = FAULTS.map(|(label, _)| label);
    let mut table = Table::new(&labels);
    for (row, (action, title)) in ACTIONS.into_iter().enumerate() {
        let mut fields = Vec::new();
        for (column, (label, fault)) in FAULTS.into_iter().enumerate() {
            println!("{title}, {label}");
            fields.push(judge(&shop, fault, action, row * FAULTS.len() + column).await);
        }
        table.row(title, fields.into_iter());
    }
    table.hold("docs/faults.md", "database");
}
