//! The checkout form: the buyer's name and email, and the address in four fields.

use crate::{
    demo::{
        Shop, accounts,
        forms::{FormField, SubmittedForm},
        orders::Customer,
        shopper::Shopper,
    },
    ports::error::Error,
};

/// The checkout form.
pub(in crate::demo) struct CheckoutForm {
    /// Name, email, street, postal code, city and country, with values and problems.
    fields: [FormField; 6],
    /// The addresses of the visitor's account, the last used first.
    addresses: Vec<String>,
}

impl CheckoutForm {
    pub(in crate::demo) fn empty() -> Self {
        let [street, postcode, city, country] = accounts::address_fields();
        let name = FormField::new("name", "Full name", "text", "name", 100);
        let email = FormField::new("email", "Email", "email", "email", 128);
        Self { fields: [name, email, street, postcode, city, country], addresses: Vec::new() }
    }

    /// The submitted values, with the problem of each field.
    pub(in crate::demo) fn checked(form: &SubmittedForm) -> Self {
        let Self { fields, addresses } = Self::empty();
        let fields = fields.map(|field| field.filled_from(form)).map(|field| match field.name {
            "email" => accounts::check_email(field),
            _ => field.check_text(),
        });
        Self { fields, addresses }
    }

    /// Fills in name and email from the visitor's account, if there is one, and a saved address. `query` names its place in
    /// the list, as [`choices`](Self::choices) do; the default is the last used one.
    pub(in crate::demo) async fn prefilled(shop: Shop<'_>, shopper: &Shopper, query: &str) -> Result<Self, Error> {
        let mut form = Self::empty();
        let Some(account) = accounts::of_shopper(shop, shopper).await? else { return Ok(form) };
        form.addresses = shop.accounts().addresses(&account.email).await?;
        let place: usize = query.strip_prefix("address=").and_then(|place| place.parse().ok()).unwrap_or_default();
        let saved = form.addresses.get(place).map(String::as_str).unwrap_or_default();
        let values = [&account.name, &account.email].into_iter().map(String::as_str).chain(saved.lines());
        for (field, value) in form.fields.iter_mut().zip(values) {
            value.clone_into(&mut field.value);
        }
        Ok(form)
    }

    pub(in crate::demo) fn fields(&self) -> &[FormField] {
        &self.fields
    }

    /// The saved addresses to choose from, each in one line. Empty if there is no choice.
    pub(in crate::demo) fn choices(&self) -> Vec<String> {
        let lines = self.addresses.iter().map(|address| address.replace('\n', ", "));
        if self.addresses.len() > 1 { lines.collect() } else { Vec::new() }
    }

    /// The customer; None if a field has a problem.
    pub(in crate::demo) fn customer<'a>(&'a self, user: Option<&'a str>) -> Option<Customer<'a>> {
        let [name, email, address @ ..] = &self.fields;
        let is_valid = self.fields.iter().all(|field| field.problem.is_none());
        is_valid.then_some(Customer {
            user,
            email: &email.value,
            name: &name.value,
            address: accounts::address_lines(address),
        })
    }
}
