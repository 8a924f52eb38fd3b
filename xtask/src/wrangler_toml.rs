//! wrangler.toml: the configuration of the Worker. Only this module parses the file.

use std::fs;

use toml::{Table, Value};

use crate::{failure::Failure, variables::Variables};

/// The path of the file.
pub const FILE: &str = "wrangler.toml";

#[derive(Debug, Clone)]
pub struct WranglerToml {
    table: Table,
}

impl WranglerToml {
    /// Reads the file.
    ///
    /// # Errors
    /// When the file cannot be read, or is no TOML.
    pub fn read() -> Result<Self, Failure> {
        Self::parse(&fs::read_to_string(FILE).map_err(|cause| Failure::file(FILE, &cause))?)
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// With the number of the first line that is no TOML.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let table = text.parse().map_err(|cause: toml::de::Error| {
            let before = cause.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            Failure::new(format!("{FILE}, line {line}: {}", cause.message()), "correct the line")
        })?;
        Ok(Self { table })
    }

    /// The table `[vars]`. Its names are not checked.
    ///
    /// # Errors
    /// When a variable is not a string.
    pub fn variables(&self) -> Result<Variables, Failure> {
        variables_of(FILE, &self.table)
    }

    /// The tables `[env.NAME.vars]`, each with its place for messages. An environment inherits no variable of `[vars]`.
    ///
    /// # Errors
    /// When a variable is not a string.
    pub fn variables_of_environments(&self) -> Result<Vec<(String, Variables)>, Failure> {
        let environments = self.table.get("env").and_then(Value::as_table).into_iter().flatten();
        let tables = environments.filter_map(|(name, table)| Some((name, table.as_table()?)));
        tables
            .map(|(name, table)| {
                let place = format!("{FILE}, [env.{name}.vars]");
                variables_of(&place, table).map(|variables| (place, variables))
            })
            .collect()
    }

    /// Returns whether the Worker has a D1 database.
    #[must_use]
    pub fn has_database(&self) -> bool {
        self.table.contains_key("d1_databases")
    }

    /// The date that selects the behaviour of workerd.
    ///
    /// # Errors
    /// When it is missing or not a string.
    pub fn compatibility_date(&self) -> Result<&str, Failure> {
        let date = self.table.get("compatibility_date").and_then(Value::as_str);
        date.ok_or_else(|| Failure::new(format!("{FILE}: it has no compatibility_date"), "add one, in quotes"))
    }

    /// The whole configuration.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }
}

/// The variables of the Worker, or of one environment. `place`: for messages.
fn variables_of(place: &str, table: &Table) -> Result<Variables, Failure> {
    let variables = table.get("vars").and_then(Value::as_table).into_iter().flatten();
    let variables = variables.map(|(name, value)| match value.as_str() {
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(Failure::new(format!("{place}: {name} is not a string"), "put its value in quotes")),
    });
    variables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_or_its_absence_is_an_error() {
        let file = WranglerToml::parse("compatibility_date = '2026-01-02' # quotes of either kind\n[[d1_databases]]\n");
        let file = file.unwrap();
        assert_eq!((file.compatibility_date(), file.has_database()), (Ok("2026-01-02"), true));
        let empty = WranglerToml::parse("").unwrap();
        assert_eq!((empty.variables(), empty.has_database()), (Ok(Variables::new()), false));
        assert_eq!(empty.compatibility_date().unwrap_err().cause, "wrangler.toml: it has no compatibility_date");
    }
}
