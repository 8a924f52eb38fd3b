//! Tries rules for one kind of page: edgefront renders a page with them, and two renders are compared. Only rules that
//! store the page, and whose two renders are equal, are proposed. No rule is proposed that stores a page in danger.

use std::rc::Rc;

use edgefront::{
    App,
    config::rules::CookieKind,
    page_cache::{PageKey, Reason},
};

use super::{
    advice::{self, Advice, Refused, Renders, Rule, advise},
    cookies,
    difference::Difference,
    elements,
    examine::{Examined, Examiner},
    pieces::Pieces,
    render::{self, NotStored, set_cookies},
    settings::Settings,
    shop::Shop,
    siblings,
    visitor::Visitors,
};
use url::Url;
use xtask::failure::Failure;

/// Most rounds for one kind. The first rules often uncover the next obstacle: without its cookies, a page still lacks
/// freshness.
const MAX_ROUNDS: usize = 3;

/// The result of a trial.
pub enum Outcome {
    /// With these rules, the pages are stored. `settings` has them.
    Works { rules: Vec<Rule>, settings: Settings },
    /// With these rules, a page with different renders would be stored: they are not proposed.
    Differs { rules: Vec<Rule>, settings: Settings, differences: Vec<Difference>, at: String },
    /// The page belongs to one visitor: the reason, and the rule that keeps it personal.
    Personal(String, Rule),
    /// No rules lead to a stored page: what to do instead.
    NoRule(String),
}

/// Tries rules.
pub struct Trial<'a> {
    pub shop: &'a Rc<Shop>,
    pub visitors: &'a Visitors,
    pub settings: &'a Settings,
    /// The whole sample.
    pub sample: &'a [Examined],
    /// The kinds that are in danger have these pages. No rule may store one of them.
    pub endangered: &'a [Url],
    /// The other pages of a joined kind, which are compared with the rules, too. Empty: the kind is not joined.
    pub siblings: &'a [&'a Examined],
    /// See [`other_tokens`](super::siblings::PagesOfKind::other_tokens).
    pub other_tokens: &'a [String],
}

impl Trial<'_> {
    /// Looks for the rules that store `page`, of the kind `kind`.
    ///
    /// # Errors
    /// When a proposed rule is not a valid setting.
    pub async fn run(&self, kind: &str, page: &Examined) -> Result<Outcome, Failure> {
        let (mut rules, mut settings) = (Vec::new(), self.settings.clone());
        let mut renders = Renders::Equal;
        // A page without a form sets the cookie, too.
        let csrf_cookie = self.sample.iter().find_map(|page| page.csrf_cookie.as_deref());
        let common_cookies = cookies::common(self.sample);
        for round in 0..=MAX_ROUNDS {
            let app = render::edgefront(&settings, self.shop)?;
            let config = &app.config.page;
            let key = PageKey::of_url(page.url.as_str(), &config.urls);
            let (reason, set_cookies, bytes) = match &key {
                Err(reason) => (*reason, Vec::new(), 0),
                Ok(key) => {
                    let Some(first) = render::variant(&app, key, &self.visitors.group_variant(config)).await else {
                        return Ok(not_verified(&page.url));
                    };
                    let Err(NotStored { reason, .. }) = first.verdict() else {
                        let outcome = self.check_sharing(rules, settings, page).await?;
                        let outcome = self.with_tokens(outcome, kind, page).await?;
                        return self.with_other_tokens(outcome, kind, page).await;
                    };
                    renders = self.renders(&app, page, key).await;
                    // The token is the value of a dropped cookie.
                    let is_token = reason == Reason::Personal && renders == Renders::DifferentTokens;
                    let has_holes = rules.iter().any(|rule: &Rule| rule.variable == "HOLES");
                    let holes = if is_token && !has_holes {
                        self.token_holes(&settings, (kind, page)).await?
                    } else {
                        Vec::new()
                    };
                    if !holes.is_empty() {
                        settings = settings.with_rules(&holes);
                        rules.extend(holes);
                        continue;
                    }
                    (reason, set_cookies(&first.headers), first.body.len())
                }
            };
            let advice = advise(&Refused {
                reason,
                kind,
                may_be_item: self.siblings.is_empty(),
                has_siblings_at_top: siblings::are_at_top(self.sample),
                path: key.as_ref().map_or(page.path.as_str(), PageKey::path),
                is_claimed: page.is_claimed(),
                harmless_cookies: &page.harmless_cookies(),
                set_cookies: &set_cookies,
                csrf_cookie,
                common_cookies: &common_cookies,
                renders,
                bytes,
                config,
            });
            match advice {
                Advice::Rules(more) if round < MAX_ROUNDS && !more.is_empty() => {
                    settings = settings.with_rules(&more);
                    rules.extend(more);
                    if let Err(problem) = settings.config() {
                        return Ok(Outcome::NoRule(format!("The rules do not fit beside the others: {problem}.")));
                    }
                }
                Advice::Rules(_) => break,
                Advice::Personal(text, rule) => return Ok(Outcome::Personal(text, rule)),
                Advice::NoRule(text) => {
                    return Ok(Outcome::NoRule(with_tried(text, safe_rules(&rules, page, renders))));
                }
                Advice::Declare(text) => {
                    let text = with_tried(text, safe_rules(&rules, page, renders));
                    let personal = page.personal_cookies(|name| {
                        csrf_cookie != Some(name) && config.cookies.kind(name, "") == CookieKind::Unknown
                    });
                    return Ok(Outcome::NoRule(with_personal(text, &personal)));
                }
            }
        }
        Ok(Outcome::NoRule("No rule stores this page.".to_owned()))
    }

    /// Compares the renders for two visitors again, if they differed and a CSRF cookie may make them equal.
    async fn renders(&self, app: &Rc<App>, page: &Examined, key: &PageKey) -> Renders {
        if page.lasting_differences().next().is_none() {
            return Renders::Equal;
        }
        let is_covered = app.config.page.cookies.csrf.is_some() && {
            let examiner = Examiner { app: app.clone(), shop: self.shop, visitors: self.visitors };
            let is_noise = |found: &Difference| page.noise.iter().any(|noise| noise.explains(found));
            examiner.two_renders(key).await.is_some_and(|(_, differences)| differences.iter().all(is_noise))
        };
        if is_covered {
            Renders::EqualWithCsrfCookie
        } else if page.renders_differ.iter().flatten().all(|found| found.kind.is_token()) {
            Renders::DifferentTokens
        } else {
            Renders::Different
        }
    }

    /// If the renders differ in tokens of the session only, tries holes for them: see docs/holes.md#tokens-of-a-session. The
    /// session's cookie stays personal, because only `--login` shows what else it changes.
    async fn with_tokens(&self, outcome: Outcome, kind: &str, page: &Examined) -> Result<Outcome, Failure> {
        let Outcome::Differs { rules, settings, differences, at } = &outcome else { return Ok(outcome) };
        let are_tokens = differences.iter().all(|found| found.kind.is_token());
        if !are_tokens || differences.is_empty() || *at != page.url.as_str() {
            return Ok(outcome);
        }
        let mut more = self.token_holes(settings, (kind, page)).await?;
        let Some(pattern) = advice::path_pattern(kind).filter(|_| !more.is_empty()) else { return Ok(outcome) };
        let mut settings = settings.clone();
        for rule in rules {
            if rule.variable != "CSRF_COOKIE" {
                more.push(rule.clone());
                continue;
            }
            // The token is not valid for a cookie that all visitors share.
            settings = settings.without(rule.variable);
            let (name, dropped) = (rule.value.clone(), format!("{}@{pattern}", rule.value));
            more.push(Rule { variable: "COOKIES_DROPPED", value: dropped, risk: advice::DROP_RISK });
            more.push(Rule { variable: "COOKIES_IGNORED", value: name, risk: cookies::TOKEN_COOKIE_RISK });
        }
        let with_holes = settings.with_rules(&more);
        if with_holes.config().is_err() {
            return Ok(outcome);
        }
        match self.check_sharing(more, with_holes, page).await? {
            works @ Outcome::Works { .. } => Ok(works),
            _ => Ok(outcome),
        }
    }

    /// If rules drop cookies, adds holes for tokens that only other pages of the shop have: a page that the sample lacks may have
    /// them, too.
    async fn with_other_tokens(&self, outcome: Outcome, kind: &str, page: &Examined) -> Result<Outcome, Failure> {
        let Outcome::Works { rules, settings } = &outcome else { return Ok(outcome) };
        let drops = rules.iter().any(|rule| rule.variable == "COOKIES_DROPPED");
        let Some(pattern) = advice::path_pattern(kind).filter(|_| drops) else { return Ok(outcome) };
        let holes = self.other_tokens.iter().map(|selector| format!("{pattern} {selector} <- token"));
        let holes = holes.map(|value| Rule { variable: "HOLES", value, risk: advice::TOKEN_RISK });
        let holes: Vec<_> = holes.filter(|hole| !rules.contains(hole)).collect();
        if holes.is_empty() {
            return Ok(outcome);
        }
        let settings = settings.with_rules(&holes);
        let rules = rules.iter().cloned().chain(holes).collect();
        if let Err(problem) = settings.config() {
            return Ok(Outcome::NoRule(format!("The rules do not fit beside the others: {problem}.")));
        }
        self.check_sharing(rules, settings, page).await
    }

    /// The rules for the tokens by which two renders differ. Empty if something else differs, too.
    async fn token_holes(&self, settings: &Settings, (kind, page): (&str, &Examined)) -> Result<Vec<Rule>, Failure> {
        let app = render::edgefront(settings, self.shop)?;
        let examiner = Examiner { app: app.clone(), shop: self.shop, visitors: self.visitors };
        let key = PageKey::of_url(page.url.as_str(), &app.config.page.urls);
        let (Some(pattern), Ok(key)) = (advice::path_pattern(kind), key) else { return Ok(Vec::new()) };
        let renders = (examiner.render(&key).await, examiner.render(&key).await);
        let (Some(one), Some(other)) = renders else { return Ok(Vec::new()) };
        let pieces = |html: &str| Pieces::of(html, examiner.csrf_tokens());
        let selectors = elements::tokens(&pieces(&one.text()), &pieces(&other.text()), &page.noise).unwrap_or_default();
        let holes = selectors.iter().map(|selector| format!("{pattern} {selector} <- token"));
        Ok(holes.map(|value| Rule { variable: "HOLES", value, risk: advice::TOKEN_RISK }).collect())
    }

    /// Compares all renders of the page, of the siblings, and of every other page that the rules store, too, and that had
    /// differences or is in danger.
    async fn check_sharing(&self, rules: Vec<Rule>, settings: Settings, page: &Examined) -> Result<Outcome, Failure> {
        let app = render::edgefront(&settings, self.shop)?;
        let before = self.settings.config()?.page;
        let after = &app.config.page;
        let is_item =
            |page: &Examined, urls| PageKey::of_url(page.url.as_str(), urls).is_ok_and(|key| key.item().is_some());
        let is_shared =
            |page: &Examined, urls| PageKey::of_url(page.url.as_str(), urls).is_ok_and(|key| key.is_at_shared_path());
        let is_affected = |page: &&Examined| {
            let cookies = &page.set_cookies;
            let drops = |rules: &edgefront::config::rules::CookieRules| {
                cookies.iter().filter(|name| rules.is_dropped(name, &page.path)).count()
            };
            page.verdict.is_err()
                && (page.has_differences() || self.endangered.contains(&page.url))
                && (drops(&after.cookies) > drops(&before.cookies)
                    || is_item(page, &after.urls) && !is_item(page, &before.urls)
                    || is_shared(page, &after.urls) && !is_shared(page, &before.urls)
                    || after.max_bytes > before.max_bytes)
        };
        let is_sibling = |page: &&Examined| self.siblings.iter().any(|sibling| sibling.url == page.url);
        let others = self.sample.iter().filter(|other| other.url != page.url);
        let others = others.filter(|other| is_affected(other) || is_sibling(other));
        let examiner = Examiner { app: app.clone(), shop: self.shop, visitors: self.visitors };
        for page in std::iter::once(page).chain(others) {
            let Some(mut with_rules) = examiner.examine(&page.url).await else { return Ok(not_verified(&page.url)) };
            // The check for random content is stricter for a page that is not stored.
            with_rules.has_random_content &= page.has_random_content;
            let is_in_danger = with_rules.verdict.is_ok() && self.endangered.contains(&page.url);
            let differences = with_rules.unsafe_to_share().or_else(|| is_in_danger.then(Vec::new));
            if let Some(differences) = differences {
                return Ok(Outcome::Differs { rules, settings, differences, at: page.url.to_string() });
            }
        }
        Ok(Outcome::Works { rules, settings })
    }
}

/// The result without an answer of the shop for one of the compared pages.
fn not_verified(url: &Url) -> Outcome {
    Outcome::NoRule(format!(
        "Not verified: {url} did not answer during the trial. Run the doctor again, with a longer --pause."
    ))
}

/// The rules, if the page is then the same for all visitors; otherwise none.
fn safe_rules<'a>(rules: &'a [Rule], page: &Examined, renders: Renders) -> &'a [Rule] {
    let differs_in_tokens = renders == Renders::EqualWithCsrfCookie && page.differs_in_tokens();
    if page.has_differences() && !differs_in_tokens { &[] } else { rules }
}

/// The advice, with the rules that the page needs in any case.
fn with_tried(text: String, rules: &[Rule]) -> String {
    if rules.is_empty() { text } else { format!("{text} The page then also needs {}.", advice::names(rules)) }
}

/// The advice, with the rule for visitors whose pages differ. Without the rule, a page that the shop declares shared
/// would replace theirs.
fn with_personal(text: String, names: &[&str]) -> String {
    if names.is_empty() {
        return text;
    }
    let names = names.join(", ");
    format!("{text} Visitors with {names} see a different page: first add COOKIES_PERSONAL = \"+ {names}\".")
}
