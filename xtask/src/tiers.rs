//! `cargo xtask tiers`: the configurations of the two tiers. Both are made of wrangler.toml, so that it stays the only
//! source of every variable.

use std::{
    fs,
    path::{self, Path},
};

use serde_json::{Map, Value, json};
use xtask::{
    failure::Failure,
    variables::Variables,
    wrangler_toml::{FILE, WranglerToml},
};

use crate::settings;

/// The entry point of `src/edge/entry.js` that only the binding reaches.
const ENTRY_POINT: &str = "home";
/// The sections for visitors only: static files and public addresses.
const OF_EDGE: [&str; 6] = ["assets", "route", "routes", "workers_dev", "preview_urls", "services"];
/// The sections that only the home tier needs.
const OF_HOME: [&str; 3] = ["d1_databases", "triggers", "placement"];

pub struct TierConfigs {
    pub edge: Value,
    pub home: Value,
}

impl TierConfigs {
    /// Makes them from wrangler.toml. The edge tier keeps the Worker's name and addresses.
    ///
    /// # Errors
    /// If the file has no name.
    pub fn of(file: &WranglerToml) -> Result<Self, Failure> {
        let wrong = |cause: &str| Failure::new(format!("{FILE}: {cause}"), "correct the file");
        let Ok(Value::Object(config)) = serde_json::to_value(file.table()) else { return Err(wrong("it is no table")) };
        let name = config.get("name").and_then(Value::as_str).ok_or_else(|| wrong("it has no name"))?;
        let home_name = format!("{name}-home");
        let without = |names: &[&str]| -> Map<String, Value> {
            config.clone().into_iter().filter(|(name, _)| !names.contains(&name.as_str())).collect()
        };
        let (mut edge, mut home) = (without(&OF_HOME), without(&OF_EDGE));
        edge.insert(
            "services".to_owned(),
            json!([{"binding": "HOME", "service": home_name, "entrypoint": ENTRY_POINT}]),
        );
        // A deployment without this key would leave the crons of a single tier.
        edge.insert("triggers".to_owned(), json!({"crons": []}));
        home.insert("name".to_owned(), json!(home_name));
        home.insert("workers_dev".to_owned(), json!(false));
        home.insert("preview_urls".to_owned(), json!(false));
        Ok(Self { edge: edge.into(), home: home.into() })
    }

    /// For local development: with these variables, and with paths for a file in another directory. No part is built
    /// again.
    pub fn set_local(&mut self, variables: &Variables) -> Result<(), Failure> {
        let absolute = |place: &str| path::absolute(place).map_err(|cause| Failure::file(place, &cause));
        for config in [&mut self.edge, &mut self.home] {
            config["vars"] = json!(variables);
            config["build"] = json!({});
            config["main"] = json!(absolute("build/index.js")?);
        }
        self.edge["assets"]["directory"] = json!(absolute("build/assets")?);
        if let Some(database) = self.home.pointer_mut("/d1_databases/0") {
            database["migrations_dir"] = json!(absolute("migrations")?);
        }
        Ok(())
    }
}

/// Writes a configuration.
///
/// # Errors
/// If the file cannot be written.
pub fn write(file: &Path, config: &Value) -> Result<(), Failure> {
    fs::write(file, format!("{config:#}\n")).map_err(|cause| Failure::file(file.display().to_string(), &cause))
}

/// Writes `wrangler.edge.json` and `wrangler.home.json` beside wrangler.toml.
///
/// # Errors
/// If wrangler.toml is wrong, or a file cannot be written.
pub fn run() -> Result<(), Failure> {
    settings::check_file()?;
    let TierConfigs { edge, home } = TierConfigs::of(&WranglerToml::read()?)?;
    write(Path::new("wrangler.home.json"), &home)?;
    write(Path::new("wrangler.edge.json"), &edge)?;
    println!(
        "Written from {FILE}. Deploy the home tier first:\n  npx wrangler deploy -c wrangler.home.json\n  npx wrangler \
         deploy -c wrangler.edge.json"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs(text: &str) -> TierConfigs {
        let configs = WranglerToml::parse(text).and_then(|file| TierConfigs::of(&file));
        configs.unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn each_part_of_the_configuration_belongs_to_its_tier() {
        let text = include_str!("../../wrangler.toml").replace(
            "[build]",
            "routes = [{ pattern = \"shop.example\", custom_domain = true }]\n[placement]\nregion = \"aws:eu-central-1\"\n[build]",
        );
        let TierConfigs { edge, home } = configs(&text);
        assert_eq!(edge["services"], json!([{"binding": "HOME", "service": "edgefront-home", "entrypoint": "home"}]));
        assert_eq!((&edge["name"], &home["name"]), (&json!("edgefront"), &json!("edgefront-home")));
        assert_eq!(edge["vars"], home["vars"]);
        assert_eq!(edge["ratelimits"], home["ratelimits"]);
        assert!(edge["routes"].is_array() && home.get("routes").is_none() && home["workers_dev"] == json!(false));
        assert!(home["placement"].is_object() && edge.get("placement").is_none());
        assert!(home["d1_databases"].is_array() && edge.get("d1_databases").is_none());
        assert_eq!(
            (home["triggers"]["crons"].as_array().map(Vec::len), &edge["triggers"]["crons"]),
            (Some(2), &json!([]))
        );
    }

    #[test]
    fn a_shop_without_a_database_runs_in_two_tiers() {
        let text = include_str!("../../wrangler.toml");
        let (before, section) = text.split_once("[[d1_databases]]").unwrap();
        let (_, after) = section.split_once("\n\n").unwrap();
        let mut configs = configs(&format!("{before}{after}"));
        assert!(configs.set_local(&Variables::new()).is_ok());
        assert!(configs.home.get("d1_databases").is_none());
    }
}
