//! Accounts in D1. A user is a mail address in lower case: that is what the edge knows a session's user by (`Edge-User`).

use serde::Deserialize;
use serde_json::json;

use super::{Shop, catalogue, form::Input, visitor::Visitor};
use crate::{
    ports::{
        database::{Database, DatabaseError},
        error::Error,
        time::Timestamp,
    },
    schema::ids::UserId,
};

/// The accounts as they are at one moment.
pub(super) struct Accounts<'a> {
    pub database: &'a dyn Database,
    pub now: Timestamp,
}

#[derive(Deserialize)]
pub(super) struct Account {
    /// The mail address.
    pub id: String,
    pub name: String,
    /// The password's hash, a PHC string.
    pub password: String,
}

impl Accounts<'_> {
    /// The account of a mail address; None if there is none.
    pub(super) async fn find(&self, mail: &str) -> Result<Option<Account>, Error> {
        let sql = "SELECT id, name, password FROM users WHERE id = ?1";
        Ok(catalogue::read(self.database.query(sql, &[json!(mail)]).await?)?.pop())
    }

    /// Opens an account; false if there is one of this address already. Of two at once, one opens it: the schema decides.
    pub(super) async fn open(&self, mail: &str, name: &str, password: &str) -> Result<bool, Error> {
        let sql = "INSERT INTO users (id, name, password, created_at) VALUES (?1, ?2, ?3, ?4)";
        let bound = [json!(mail), json!(name), json!(password), json!(self.now.as_secs())];
        match self.database.query(sql, &bound).await {
            Ok(_) => Ok(true),
            Err(DatabaseError::Constraint(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The account of whoever asks. None for a guest, and for a user that another service of the shop signed in.
pub(super) async fn of(shop: Shop<'_>, visitor: &Visitor) -> Result<Option<Account>, Error> {
    match &visitor.user {
        Some(user) => shop.accounts().find(user).await,
        None => Ok(None),
    }
}

/// Says what is wrong with a mail address, and brings it into the form that is kept: people type theirs with capitals at times, and no
/// provider of today tells two by them.
pub(super) fn check_mail(mut input: Input) -> Input {
    input.value = input.value.to_ascii_lowercase();
    input = input.check_text();
    if input.problem.is_none() && !is_mail(&input.value) {
        input.problem = Some("This is no mail address such as ada@example.org.".to_owned());
    }
    input
}

/// A mailbox that we can name: the dot-atom form of RFC 5321 §4.1.2 without what no [`UserId`] may hold.
fn is_mail(text: &str) -> bool {
    let Some((mailbox, host)) = text.rsplit_once('@') else { return false };
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_atom = |atom: &str| !atom.is_empty() && !atom.contains(['@', '(', ')', '<', '>', '[', ']', ':', ';']);
    mailbox.split('.').all(is_atom)
        && host.contains('.')
        && host.split('.').all(is_label)
        && UserId::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_address_is_one_that_the_edge_can_name() {
        for mail in ["ada@example.org", "a.b+c@mail.example-shop.co.uk", "o'neill_1@x.io"] {
            assert!(is_mail(mail), "{mail}");
        }
        for mail in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@example",
            "ada@-a.org",
            "ada@a..org",
            ".ada@a.org",
            "a b@a.org",
            "a@b@c.org",
            "a,b@a.org",
            "<ada@a.org>",
            "ädä@a.org",
            "ada@ä.org",
            &format!("{}@a.org", "a".repeat(130)),
        ] {
            assert!(!is_mail(mail), "{mail}");
        }
        let typed = Input { value: "Ada@Example.ORG".to_owned(), ..Input::new("mail", "Mail", "email", "email", 128) };
        let checked = check_mail(typed);
        assert_eq!((checked.value.as_str(), checked.problem), ("ada@example.org", None));
    }
}
