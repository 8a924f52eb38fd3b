//! An address: four fields of a form, and one text in the database.

use crate::demo::forms::{FormField, SubmittedForm};

/// Largest number of saved addresses of an account, as in `migrations/0010_addresses.sql`.
pub(in crate::demo) const MAX_ADDRESSES: usize = 5;

/// Street, postal code, city and country.
pub(in crate::demo) const fn address_fields() -> [FormField; 4] {
    [
        FormField::new("address", "Street and number", "text", "address-line1", 200),
        FormField::new("postcode", "Postal code", "text", "postal-code", 20),
        FormField::new("city", "City", "text", "address-level2", 100),
        FormField::new("country", "Country", "text", "country-name", 60),
    ]
}

/// The submitted values, with the problem of each field.
pub(super) fn checked_fields(form: &SubmittedForm) -> [FormField; 4] {
    address_fields().map(|field| field.filled_from(form).check_text())
}

/// The values of the fields, each on a line of its own.
pub(in crate::demo) fn address_lines(fields: &[FormField]) -> String {
    fields.iter().map(|field| &*field.value).collect::<Vec<_>>().join("\n")
}
