//! Presets: the rules of well-known storefronts, kept as data in `presets/`. Variables override them.

/// The rules of one storefront software: lines `NAME = value`, and comments with the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset(&'static str);

/// The text of a preset without its comments, which the Worker does not need.
macro_rules! preset {
    ($name:literal) => {{
        const TEXT: &str = include_str!(concat!("../../presets/", $name, ".env"));
        const STRIPPED: ([u8; TEXT.len()], usize) = strip_comments(TEXT);
        match std::str::from_utf8(STRIPPED.0.split_at(STRIPPED.1).0) {
            Ok(lines) => lines,
            Err(_) => "",
        }
    }};
}

/// Removes the lines that begin with `#`. Returns the text and its length in bytes.
const fn strip_comments<const N: usize>(text: &str) -> ([u8; N], usize) {
    let (mut stripped, mut length) = ([0; N], 0);
    let (mut free, mut rest) = (stripped.as_mut_slice(), text.as_bytes());
    let mut is_comment = false;
    let mut is_start = true;
    while let [byte, after @ ..] = rest {
        is_comment = if is_start { *byte == b'#' } else { is_comment };
        is_start = *byte == b'\n';
        if !is_comment && let [slot, others @ ..] = free {
            *slot = *byte;
            (free, length) = (others, length + 1);
        }
        rest = after;
    }
    (stripped, length)
}

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        /// Every preset with the text of its file, by name.
        const PRESETS: &[(&str, &str)] = &[$(($name, preset!($name))),+];
    };
}

presets![
    "default",
    "django-oscar",
    "evershop",
    "magento",
    "nextjs",
    "opencart",
    "prestashop",
    "shopware",
    "spree",
    "woocommerce",
    "wordpress",
];

impl Preset {
    /// The rules for any storefront. Other presets and the variables add to them.
    pub const DEFAULT: Self = Self(preset!("default"));

    /// The preset of this name; None if there is none.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        PRESETS.iter().find(|(own, _)| *own == name).map(|(_, text)| Self(text))
    }

    /// The names of all presets, separated by commas.
    #[must_use]
    pub fn names() -> String {
        PRESETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// The value of a variable; None if the preset does not set it.
    #[must_use]
    pub fn get(self, variable: &str) -> Option<&'static str> {
        self.variables().find(|(name, _)| *name == variable).map(|(_, value)| value)
    }

    fn variables(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let pairs = self.0.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.trim(), value.trim()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{super::tests::read, *};

    /// The variables that a preset may set: they describe a storefront, and none is a secret or a limit.
    const ALLOWED: [&str; 18] = [
        "CART_ROUTES",
        "CHOICES",
        "COOKIES_DROPPED",
        "COOKIES_HOLES",
        "COOKIES_IGNORED",
        "COOKIES_PERSONAL",
        "COOKIES_VARIED",
        "CSRF_COOKIE",
        "HEADERS_NORMALIZED",
        "HEADERS_VARIED",
        "HOLES",
        "ITEM_ROUTES",
        "LOGIN_ROUTES",
        "PATHS_PERSONAL",
        "PATHS_SHARED",
        "QUERY_IGNORED",
        "QUERY_KEPT",
        "WRITES_PERSONAL",
    ];

    #[test]
    fn every_preset_is_valid_and_sets_only_rules() {
        for (name, _) in PRESETS {
            let config = read(&[("PRESET", name)]);
            assert!(config.is_ok(), "{name}: {}", config.err().map(|errors| errors.to_string()).unwrap_or_default());
            let preset = Preset::find(name).unwrap();
            let mut seen = HashSet::new();
            for (variable, value) in preset.variables() {
                assert!(ALLOWED.contains(&variable) && !value.is_empty(), "{name}: {variable}");
                assert!(seen.insert(variable), "{name}: {variable} twice");
            }
            assert!(!seen.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_variable_overrides_the_preset_and_a_plus_adds_to_it() {
        let config = |more: &[(&'static str, &'static str)]| {
            read(&[&[("PRESET", "django-oscar")], more].concat()).ok().unwrap().page
        };
        let preset = config(&[]);
        assert!(preset.urls.personal_paths.contains("/checkout/"));
        let replaced = config(&[("PATHS_PERSONAL", "/x/*")]);
        assert!(!replaced.urls.personal_paths.contains("/checkout/"));
        let added = config(&[("PATHS_PERSONAL", "+ /x/*"), ("COOKIES_IGNORED", "+mine")]);
        assert!(added.urls.personal_paths.contains("/checkout/") && added.urls.personal_paths.contains("/x/1"));
        assert!(added.cookies.ignored.contains("_ga") && added.cookies.ignored.contains("mine"));
    }

    #[test]
    fn an_unknown_preset_names_the_known_ones() {
        let errors = read(&[("PRESET", "oscar")]).err().unwrap();
        assert!(errors.to_string().contains("default, django-oscar, evershop"), "{errors}");
    }
}
