//! The checkout form: the buyer's name, email and address.

use crate::{
    demo::{
        Shop, accounts,
        forms::{FormField, SubmittedForm},
        orders::Customer,
        shopper::Shopper,
    },
    ports::error::Error,
};

/// The fields name, email and address, with values and problems.
pub(in crate::demo) struct CheckoutForm([FormField; 3]);

impl CheckoutForm {
    pub(in crate::demo) fn empty() -> Self {
        Self([
            FormField::new("name", "Full name", "text", "name", 100),
            FormField::new("email", "Email", "email", "email", 128),
            FormField::new("address", "Shipping address", "textarea", "street-address", 500)
                .with_hint("Street, town, postcode and country, each on its own line."),
        ])
    }

    /// The submitted values, with the problem of each field.
    pub(in crate::demo) fn checked(form: &SubmittedForm) -> Self {
        Self(Self::empty().0.map(|field| field.filled_from(form)).map(|field| match field.name {
            "email" => accounts::check_email(field),
            _ => field.check_text(),
        }))
    }

    /// Fills in name and email from the visitor's account, if there is one.
    pub(in crate::demo) async fn prefilled(shop: Shop<'_>, shopper: &Shopper) -> Result<Self, Error> {
        let Self([mut name, mut email, address]) = Self::empty();
        if let Some(account) = accounts::of_shopper(shop, shopper).await? {
            (name.value, email.value) = (account.name, account.email);
        }
        Ok(Self([name, email, address]))
    }

    pub(in crate::demo) fn fields(&self) -> &[FormField] {
        &self.0
    }

    /// The customer; None if a field has a problem.
    pub(in crate::demo) fn customer<'a>(&'a self, user: Option<&'a str>) -> Option<Customer<'a>> {
        let [name, email, address] = &self.0;
        let is_valid = self.0.iter().all(|field| field.problem.is_none());
        is_valid.then_some(Customer { user, email: &email.value, name: &name.value, address: &address.value })
    }
}
