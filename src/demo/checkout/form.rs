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

/// The fields name, email, street, postal code, city and country, with values and problems.
pub(in crate::demo) struct CheckoutForm([FormField; 6]);

impl CheckoutForm {
    pub(in crate::demo) fn empty() -> Self {
        Self([
            FormField::new("name", "Full name", "text", "name", 100),
            FormField::new("email", "Email", "email", "email", 128),
            FormField::new("address", "Street and number", "text", "address-line1", 200),
            FormField::new("postcode", "Postal code", "text", "postal-code", 20),
            FormField::new("city", "City", "text", "address-level2", 100),
            FormField::new("country", "Country", "text", "country-name", 60),
        ])
    }

    /// The submitted values, with the problem of each field.
    pub(in crate::demo) fn checked(form: &SubmittedForm) -> Self {
        Self(Self::empty().0.map(|field| field.filled_from(form)).map(|field| match field.name {
            "email" => accounts::check_email(field),
            _ => field.check_text(),
        }))
    }

    /// Fills in name and email from the visitor's account, if there is one, and the address of the last order.
    pub(in crate::demo) async fn prefilled(shop: Shop<'_>, shopper: &Shopper) -> Result<Self, Error> {
        let Self([mut name, mut email, mut address @ ..]) = Self::empty();
        if let Some(account) = accounts::of_shopper(shop, shopper).await? {
            let last = shop.orders().last_address(&account.email).await?.unwrap_or_default();
            for (field, line) in address.iter_mut().zip(last.lines()) {
                line.clone_into(&mut field.value);
            }
            (name.value, email.value) = (account.name, account.email);
        }
        let [street, postcode, city, country] = address;
        Ok(Self([name, email, street, postcode, city, country]))
    }

    pub(in crate::demo) fn fields(&self) -> &[FormField] {
        &self.0
    }

    /// The customer; None if a field has a problem.
    pub(in crate::demo) fn customer<'a>(&'a self, user: Option<&'a str>) -> Option<Customer<'a>> {
        let [name, email, address @ ..] = &self.0;
        let is_valid = self.0.iter().all(|field| field.problem.is_none());
        is_valid.then_some(Customer { user, email: &email.value, name: &name.value, address: lines(address) })
    }
}

/// The values of the fields, each on a line of its own.
fn lines(fields: &[FormField]) -> String {
    fields.iter().map(|field| &*field.value).collect::<Vec<_>>().join("\n")
}
