//! The Worker's configuration for the examined shop: a preset, variables, and rules that the doctor proposes.

use std::collections::BTreeMap;

use edgefront::config::{
    Config,
    item_routes::ItemRoutes,
    presets::Preset,
    variables::{CSRF_COOKIE, HOLES, ITEM_ROUTES, LOGIN_ROUTES, ORIGIN_URL, PAGE_MAX_BYTES, PRESET, VARIABLES},
};
use url::Url;
use xtask::{
    failure::Failure,
    variables::{Variables, check_names},
};

use super::advice::{OF_VISITORS, Rule};

/// Values that the configuration demands and the doctor never uses: it asks no Redis and signs nothing.
const UNUSED: [(&str, &str); 3] = [
    ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1:1"),
    ("UPSTASH_REDIS_REST_TOKEN", "unused"),
    ("SESSION_KEYS", "unused unused unused unused unused"),
];

/// The variables of the shop, as they stand in `wrangler.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings(Variables);

impl Settings {
    /// Reads the command line.
    ///
    /// # Errors
    /// When a variable or the preset is unknown.
    pub fn new(origin: &Url, preset: Option<&str>, variables: &[(String, String)]) -> Result<Self, Failure> {
        let mut settings: Variables = variables.iter().cloned().collect();
        check_names("--var", settings.keys(), VARIABLES.iter().map(|(variable, _)| variable.name))?;
        if let Some(name) = preset {
            if Preset::find(name).is_none() {
                let remedy = format!("choose one of {}", Preset::names());
                return Err(Failure::new(format!("--preset {name}: there is no preset of this name"), remedy));
            }
            settings.insert(PRESET.name.to_owned(), name.to_owned());
        }
        settings.insert(ORIGIN_URL.name.to_owned(), origin.origin().ascii_serialization());
        Ok(Self(settings))
    }

    /// The checked configuration.
    ///
    /// # Errors
    /// When a value is wrong.
    pub fn config(&self) -> Result<Config, Failure> {
        let unused: BTreeMap<_, _> = UNUSED.into();
        let config = Config::from_lookup(|name| {
            self.0.get(name).cloned().or_else(|| unused.get(name).map(|value| (*value).to_owned()))
        });
        config.map_err(|errors| Failure::new(errors.to_string(), "correct --var or --preset"))
    }

    /// The preset's name. None: no preset.
    pub fn preset(&self) -> Option<&str> {
        self.0.get(PRESET.name).map(String::as_str)
    }

    /// The settings with this preset.
    #[must_use]
    pub fn with_preset(&self, name: &str) -> Self {
        let mut settings = self.0.clone();
        settings.insert(PRESET.name.to_owned(), name.to_owned());
        Self(settings)
    }

    /// The settings that name the default routes of items at which the shop has pages, because a proposed route replaces the
    /// default. Routes of the preset or of the command line stay.
    #[must_use]
    pub fn with_default_items(&self, has_item: impl Fn(&ItemRoutes) -> bool) -> Self {
        let name = ITEM_ROUTES.name;
        let inherited = self.preset().and_then(Preset::find).and_then(|preset| preset.get(name));
        let is_default = inherited.is_none() && self.0.get(name).is_none_or(String::is_empty);
        let is_used = |route: &&str| ItemRoutes::parse(route).is_ok_and(|route| has_item(&route));
        let used: Vec<_> = default_items().filter(is_used).filter(|_| is_default).collect();
        let mut settings = self.0.clone();
        if !used.is_empty() {
            settings.insert(name.to_owned(), used.join(", "));
        }
        Self(settings)
    }

    /// The settings with one more rule. A list keeps what it has and what the preset says; another variable is
    /// replaced.
    #[must_use]
    pub fn with_rule(&self, variable: &str, value: &str) -> Self {
        let mut settings = self.0.clone();
        let own = settings.get(variable).filter(|own| !own.is_empty()).cloned();
        let inherited = || self.preset().and_then(Preset::find).and_then(|preset| preset.get(variable));
        let combined = if [CSRF_COOKIE.name, PAGE_MAX_BYTES.name].contains(&variable) {
            value.to_owned()
        } else if let Some(own) = own.as_ref().filter(|_| variable == HOLES.name) {
            with_hole(own, value)
        } else if let Some(own) = own {
            let mut entries = own.trim_start_matches('+').split(',').map(str::trim);
            if entries.any(|entry| entry == value) { own.clone() } else { format!("{own}, {value}") }
        } else if variable == ITEM_ROUTES.name {
            // Not a list that `+` can extend.
            inherited().map_or_else(|| value.to_owned(), |preset| format!("{preset}, {value}"))
        } else if variable == LOGIN_ROUTES.name {
            format!("{}, {value}", inherited().unwrap_or(LOGIN_ROUTES.default))
        } else {
            format!("+ {value}")
        };
        settings.insert(variable.to_owned(), combined);
        Self(settings)
    }

    /// The settings with these rules.
    #[must_use]
    pub fn with_rules<'a>(&self, rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        rules.into_iter().fold(self.clone(), |settings, rule| settings.with_rule(rule.variable, &rule.value))
    }

    /// The settings without a variable.
    #[must_use]
    pub fn without(&self, variable: &str) -> Self {
        let mut settings = self.0.clone();
        settings.remove(variable);
        Self(settings)
    }

    /// The settings without the rules for visitors with a cookie that [`Settings::with_rule`] added.
    #[must_use]
    pub fn without_cookie(&self, name: &str) -> Self {
        let mut settings = self.0.clone();
        for variable in OF_VISITORS {
            let Some(list) = settings.get(variable).and_then(|list| list.strip_prefix('+')) else { continue };
            let is_other = |entry: &&str| entry.split('=').next() != Some(name);
            let kept: Vec<_> = list.split(',').map(str::trim).filter(is_other).collect();
            if kept.is_empty() {
                settings.remove(variable);
            } else {
                settings.insert(variable.to_owned(), format!("+ {}", kept.join(", ")));
            }
        }
        Self(settings)
    }

    /// Name and value of each variable, in the order of wrangler.toml. `ORIGIN_URL` is left out: it is the examined
    /// address, and edgefront would be its own origin there. Routes of items are left out if all of them are default ones.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let names = VARIABLES.iter().map(|(variable, _)| variable.name).filter(|name| *name != ORIGIN_URL.name);
        let variables = names.filter_map(|name| Some((name, self.0.get(name)?.as_str())));
        let is_default = |route: &str| default_items().any(|own| own == route.trim());
        variables.filter(move |(name, value)| *name != ITEM_ROUTES.name || !value.split(',').all(is_default))
    }
}

fn default_items() -> impl Iterator<Item = &'static str> {
    ITEM_ROUTES.default.split(',').map(str::trim)
}

/// The rules of `HOLES` with one more, such as `/p/* #user <- .`. A rule with the same element covers both paths, because there
/// may be 20 rules.
fn with_hole(own: &str, hole: &str) -> String {
    let (plus, rules) = own.strip_prefix('+').map_or(("", own), |rules| ("+ ", rules));
    let (path, element) = hole.split_once(' ').unwrap_or((hole, ""));
    let mut is_there = false;
    let joined = rules.split(';').map(str::trim).map(|rule| match rule.split_once(' ') {
        Some((paths, own)) if own == element => {
            is_there = true;
            let has_path = paths.split(',').any(|own| own == path);
            if has_path { rule.to_owned() } else { format!("{paths},{path} {element}") }
        }
        _ => rule.to_owned(),
    });
    let mut rules: Vec<_> = joined.collect();
    if !is_there {
        rules.push(hole.to_owned());
    }
    format!("{plus}{}", rules.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(preset: Option<&str>, variables: &[(&str, &str)]) -> Result<Settings, Failure> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::new(&Url::parse("https://shop.example/start").unwrap(), preset, &variables)
    }

    #[test]
    fn a_rule_adds_to_the_preset() {
        let oscar = settings(Some("django-oscar"), &[]).unwrap();
        let more = oscar.with_rule("ITEM_ROUTES", "/book/{item}").with_rule("COOKIES_PERSONAL", "loyalty");
        let config = more.config().unwrap().page;
        assert!(
            config.urls.items.item("/book/1", None).is_some()
                && config.urls.items.item("/catalogue/1/", None).is_some()
        );
        assert!(config.cookies.personal.contains("messages") && config.cookies.personal.contains("loyalty"));
        let twice = more.with_rule("COOKIES_PERSONAL", "club");
        assert_eq!(twice, twice.with_rule("COOKIES_PERSONAL", "loyalty"), "it is there already");
        let twice = twice.config().unwrap().page;
        assert!(["messages", "loyalty", "club"].iter().all(|name| twice.cookies.personal.contains(name)));
    }

    #[test]
    fn holes_with_one_selector_are_one_rule() {
        let holes = [("/a/*", "#user"), ("/a/*", "b.cart"), ("/", "#user"), ("/", "#user"), ("/", "b.cart")];
        let settings = settings(None, &[]).unwrap();
        let add = |settings: Settings, (path, element)| settings.with_rule("HOLES", &format!("{path} {element} <- ."));
        let settings = holes.into_iter().fold(settings, add);
        assert_eq!(settings.0["HOLES"], "+ /a/*,/ #user <- .; /a/*,/ b.cart <- .");
        assert_eq!(settings.config().unwrap().page.holes.of_path("/a/1").count(), 2);
        let personal = settings.with_rule("COOKIES_PERSONAL", "sid").with_rule("COOKIES_PERSONAL", "id");
        assert_eq!(personal.without_cookie("sid").0["COOKIES_PERSONAL"], "+ id");
        assert_eq!(settings.with_rule("COOKIES_VARIED", "sid=e30").without_cookie("sid"), settings);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let unknown = settings(Some("oscar"), &[]).unwrap_err().to_string();
        assert!(unknown.contains("django-oscar, evershop"), "{unknown}");
        assert!(settings(None, &[("COOKIES_PERSONEL", "a")]).is_err());
        assert!(settings(None, &[("PAGE_TTL", "soon")]).unwrap().config().is_err());
    }
}
