//! Customer accounts in D1. An account's id is its email in lower case, which is also the edge's user (`Edge-User`).
//!
//! - `email`: checks an email. `address`: the fields of an address.
//! - `page`: the account's page.

mod address;
mod email;
mod page;

use serde::Deserialize;
use serde_json::json;

use self::address::MAX_ADDRESSES;
pub(super) use self::{
    address::{address_fields, address_lines},
    email::check_email,
    page::{change_addresses, show},
};
use super::{Shop, rows::deserialize_rows, shopper::Shopper};
use crate::ports::{
    database::{Database, DatabaseError},
    error::Error,
    time::Timestamp,
};

/// The accounts in the database; `now` is the time of a new account.
pub(super) struct AccountStore<'a> {
    pub database: &'a dyn Database,
    pub now: Timestamp,
}

#[derive(Deserialize)]
pub(super) struct Account {
    pub email: String,
    pub name: String,
    /// The password's hash as a PHC string.
    pub password_hash: String,
}

impl AccountStore<'_> {
    /// The account of an email; None if there is none.
    pub(super) async fn find(&self, email: &str) -> Result<Option<Account>, Error> {
        let sql = "SELECT id AS email, name, password AS password_hash FROM users WHERE id = ?1";
        Ok(deserialize_rows(self.database.query(sql, &[json!(email)]).await?)?.pop())
    }

    /// Creates an account; false if the email has one already. If two requests do so at once, the primary key lets one
    /// succeed.
    pub(super) async fn create(&self, email: &str, name: &str, password_hash: &str) -> Result<bool, Error> {
        let sql = "INSERT INTO users (id, name, password, created_at) VALUES (?1, ?2, ?3, ?4)";
        let binds = [json!(email), json!(name), json!(password_hash), json!(self.now.as_secs())];
        match self.database.query(sql, &binds).await {
            Ok(_) => Ok(true),
            Err(DatabaseError::Constraint(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The saved addresses of `user`, at most [`MAX_ADDRESSES`]: the last added or used first. Each order saves its
    /// address.
    pub(super) async fn addresses(&self, user: &str) -> Result<Vec<String>, Error> {
        let sql = "SELECT address FROM addresses WHERE user = ?1 ORDER BY used_at DESC, address";
        let rows: Vec<SavedAddress> = deserialize_rows(self.database.query(sql, &[json!(user)]).await?)?;
        Ok(rows.into_iter().map(|row| row.address).collect())
    }

    /// Saves an address, unless `user` has [`MAX_ADDRESSES`] already.
    async fn save(&self, user: &str, address: &str) -> Result<(), Error> {
        let sql = "INSERT INTO addresses (user, address, used_at)
            SELECT ?1, ?2, ?3 WHERE (SELECT count(*) FROM addresses WHERE user = ?1) < ?4
            ON CONFLICT (user, address) DO UPDATE SET used_at = excluded.used_at";
        let binds = [json!(user), json!(address), json!(self.now.as_millis()), json!(MAX_ADDRESSES)];
        self.database.query(sql, &binds).await?;
        Ok(())
    }

    async fn forget(&self, user: &str, address: &str) -> Result<(), Error> {
        let sql = "DELETE FROM addresses WHERE user = ?1 AND address = ?2";
        self.database.query(sql, &[json!(user), json!(address)]).await?;
        Ok(())
    }
}

#[derive(Deserialize)]
struct SavedAddress {
    address: String,
}

/// The visitor's account. None for a guest, and for a user that another service of the shop signed in.
pub(super) async fn of_shopper(shop: Shop<'_>, shopper: &Shopper) -> Result<Option<Account>, Error> {
    match &shopper.user {
        Some(user) => shop.accounts().find(user).await,
        None => Ok(None),
    }
}
