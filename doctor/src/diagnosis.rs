//! The examination, step by step: crawl, recognize the software, examine every page, try rules, print the report.

use std::{collections::BTreeMap, rc::Rc};

use edgefront::{
    App,
    config::item_routes::ItemRoutes,
    page_cache::{PageKey, Reason},
};
use serde_json::Value;
use url::Url;
use xtask::failure::Failure;

use super::{
    advice::{self, Renders, Rule},
    arguments::DoctorArguments,
    crawl::{Crawl, Sample},
    danger::{self, Danger},
    difference::DifferenceKind,
    examine::{Examined, Examiner, Visit},
    files, fragments,
    hole_trial::{HoleOutcome, HoleTrial},
    kinds::{self, Shape},
    login,
    negotiation::{self, Finding},
    render::{self, NotStored},
    report::{ESTIMATE, KindReport, PresetReport, Report, average},
    robots::Robots,
    settings::Settings,
    shop::Shop,
    siblings::{self, PagesOfKind, Site},
    trial::{self, Outcome, Trial},
    visitor::{Visitor, Visitors},
};

/// The remedy for a page with a token that is in no element that a rule can name, or that has an unusual name.
const SESSION_TOKEN: &str = "No rule covers the token of the session, so this page stays personal. See \
    docs/holes.md#tokens-of-a-session.";

/// The heading of rules that a trial found safe.
const TRIED: &str = "tried, and safe:";

/// Runs the command.
///
/// # Errors
/// When the shop cannot be examined.
pub async fn run(arguments: DoctorArguments) -> Result<(), Failure> {
    let report = diagnose(&arguments).await?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&report);
        println!("{}", json.map_err(|error| Failure::new(format!("the report is no JSON: {error}"), ""))?);
    } else {
        print!("{report}");
    }
    Ok(())
}

async fn diagnose(arguments: &DoctorArguments) -> Result<Report, Failure> {
    let start = &arguments.address;
    let given = Settings::new(start, arguments.preset.as_deref(), &arguments.variables)?;
    let config = given.config()?.page;
    let shop = Rc::new(Shop::new(start, arguments.pause, config.max_bytes)?);
    let visitors = Visitors::new(arguments.login.as_deref())?;
    let robots = Robots::read(&shop, start).await?;
    let crawl = Crawl { shop: &shop, robots: &robots, visitors: &visitors, rules: &config.urls };
    let sample = crawl.run(start, arguments.pages).await?;
    let (settings, preset) = choose_preset(given, &sample);
    let given = settings.clone();
    let app = render::edgefront(&settings, &shop)?;
    let mut examined = examine_all(&Examiner { app: app.clone(), shop: &shop, visitors: &visitors }, &sample).await;
    trial::forget_bound_tokens(&mut examined, &settings, &shop, &visitors).await?;
    let has_item =
        |routes: &ItemRoutes| examined.iter().any(|page| routes.item(page.url.path(), page.url.query()).is_some());
    let settings = settings.with_default_items(has_item);
    let mut diagnosis = Diagnosis { app, shop, visitors, settings, examined };
    let kinds = diagnosis.kinds(&sample);
    let endangered = diagnosis.endangered(&kinds);
    let (mut dangers, mut found, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut noise, mut declared) = (Vec::new(), Vec::new());
    // First, because the trials then know the cookies that keep a visitor's choice.
    let chosen = diagnosis.visitors.chosen.take();
    for Finding { note, rules } in
        negotiation::find(&diagnosis.shop, &diagnosis.examined, &diagnosis.app.config.page, &chosen).await
    {
        notes.push(note);
        diagnosis.settings = diagnosis.settings.with_rules(&rules);
    }
    for (kind, of_kind) in kinds {
        let pages: Vec<_> = of_kind.pages.iter().filter_map(|index| diagnosis.examined.get(*index)).collect();
        let mut report = KindReport::of(&kind, &pages, &diagnosis.app.config.page);
        let settings = diagnosis.find_rules(&mut report, &of_kind, &endangered).await?;
        diagnosis.settings = settings;
        let protecting = of_kind.dangers.iter().flat_map(|danger| &danger.rules);
        diagnosis.settings = diagnosis.settings.with_rules(protecting);
        notes.extend(of_kind.is_joined.then(|| siblings::note(&kind, &pages)));
        noise.extend(pages.iter().find_map(|page| page.noise.first()).map(|found| (kind.clone(), found.clone())));
        notes.extend(danger::notes_of_kind(&kind, &pages));
        notes.extend(danger::note_on_personal(&kind, &pages, &report.rules));
        declared.extend(pages.iter().any(|page| page.is_claimed()).then(|| kind.clone()));
        found.push((report, of_kind));
    }
    for (report, of_kind) in &mut found {
        if of_kind.dangers.is_empty() && report.hit_ratio_with_rules > 0.0 {
            diagnosis.settings = diagnosis.find_holes(report, &of_kind.pages, &given).await?;
        }
        diagnosis.settings = diagnosis.add_write_rules(report, &of_kind.pages);
        dangers.append(&mut of_kind.dangers);
    }
    let mut reports: Vec<_> = found.into_iter().map(|(report, _)| report).collect();
    let holes = diagnosis.settings.config()?.page.cookies.holes;
    for report in &mut reports {
        report.rules.retain(|rule| !rule.is_of_cookie_in(&holes));
    }
    let (has_login, rules) = (arguments.login.is_some(), reports.iter().flat_map(|report| &report.rules));
    notes.extend(danger::note_on_sessions(&rules.collect::<Vec<_>>(), has_login));
    let cookies = diagnosis.settings.config()?.page.cookies;
    let has_no_rule = !has_login && cookies.personal.is_empty() && cookies.holes.is_empty();
    notes.extend(danger::note_on_declared(&declared).filter(|_| has_no_rule));
    notes.extend(danger::notes_on_noise(noise));
    if let Some((note, rules)) = robots.personal_paths(&diagnosis.settings.config()?.page.urls.personal_paths) {
        notes.push(note);
        diagnosis.settings = diagnosis.settings.with_rules(&rules);
    }
    let found = files::note(&diagnosis.shop, &robots, &diagnosis.settings, &diagnosis.examined).await?;
    if let Some((note, settings)) = found {
        notes.push(note);
        diagnosis.settings = settings;
    }
    let mut report = diagnosis.finish(start, preset, sample, (dangers, reports));
    report.notes.extend(notes);
    Ok(report)
}

/// Without a given preset, the shop's traces choose one.
fn choose_preset(given: Settings, sample: &Sample) -> (Settings, Option<PresetReport>) {
    if let Some(name) = given.preset() {
        let preset = PresetReport { name: name.to_owned(), traces: Vec::new() };
        return (given, Some(preset));
    }
    match sample.traces.recognize() {
        Some(recognized) => {
            let preset = PresetReport { name: recognized.preset.to_owned(), traces: recognized.traces };
            (given.with_preset(recognized.preset), Some(preset))
        }
        None => (given, None),
    }
}

async fn examine_all(examiner: &Examiner<'_>, sample: &Sample) -> Vec<Examined> {
    let mut pages = Vec::new();
    for (index, url) in sample.pages.iter().enumerate() {
        eprintln!("...  examining page {} of {}: {url}", index + 1, sample.pages.len());
        pages.extend(examiner.examine(url).await);
    }
    pages
}

/// One page for each reason why pages are not stored, and the number of these pages. The most frequent reason comes first, because its
/// rules often store other pages, too.
fn refused<'a>(pages: &[&'a Examined]) -> Vec<(&'a Examined, usize)> {
    let mut refused: Vec<(&Examined, usize)> = Vec::new();
    for page in pages.iter().filter(|page| page.verdict.is_err()) {
        match refused.iter_mut().find(|(known, _)| known.is_refused_as(page)) {
            Some((_, count)) => *count += 1,
            None => refused.push((page, 1)),
        }
    }
    refused.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    refused
}

/// All findings about the shop.
struct Diagnosis {
    app: Rc<App>,
    shop: Rc<Shop>,
    visitors: Visitors,
    /// With the rules that are proposed so far.
    settings: Settings,
    examined: Vec<Examined>,
}

impl Diagnosis {
    /// The pages by kind.
    fn kinds(&self, sample: &Sample) -> BTreeMap<String, PagesOfKind> {
        let rules = &self.app.config.page.urls;
        let shapes: Vec<_> = sample.addresses.iter().map(|url| Shape::of(url, rules)).collect();
        let patterns = kinds::patterns(&shapes);
        let kind = |page: &Examined| {
            let known = sample.addresses.iter().zip(&patterns).find(|(url, _)| **url == page.url);
            known.map_or_else(|| page.path.clone(), |(_, pattern)| pattern.clone())
        };
        let mut kinds: BTreeMap<String, PagesOfKind> = BTreeMap::new();
        for (index, page) in self.examined.iter().enumerate() {
            kinds.entry(kind(page)).or_default().pages.push(index);
        }
        for (kind, PagesOfKind { pages, dangers, .. }) in &mut kinds {
            *dangers = danger::of_kind(kind, &self.pages(pages));
        }
        let path =
            |url: &Url| PageKey::of_url(url.as_str(), rules).map_or(url.path().to_owned(), |key| key.path().to_owned());
        let addresses: Vec<_> = sample.addresses.iter().map(path).zip(patterns.iter().cloned()).collect();
        siblings::join(kinds, &Site { examined: &self.examined, addresses: &addresses, linked: &sample.linked })
    }

    /// The examined pages with these indices.
    fn pages(&self, indices: &[usize]) -> Vec<&Examined> {
        indices.iter().filter_map(|index| self.examined.get(*index)).collect()
    }

    /// The pages of all kinds that are in danger.
    fn endangered(&self, kinds: &BTreeMap<String, PagesOfKind>) -> Vec<Url> {
        let kinds = kinds.values().filter(|kind| !kind.dangers.is_empty());
        let pages = kinds.flat_map(|kind| &kind.pages).filter_map(|index| self.examined.get(*index));
        pages.map(|page| page.url.clone()).collect()
    }

    /// Looks for rules for the pages that are not stored, unless they are in danger. Returns the settings with them.
    async fn find_rules(
        &self,
        report: &mut KindReport,
        of_kind: &PagesOfKind,
        endangered: &[Url],
    ) -> Result<Settings, Failure> {
        let (mut settings, pages) = (self.settings.clone(), self.pages(&of_kind.pages));
        let refused = refused(&pages);
        let Some((page, _)) = refused.first() else { return Ok(settings) };
        // A trial with CSRF_COOKIE shows whether such tokens stay a difference.
        let is_unsafe = |page: &&&Examined| {
            let between = page.renders_differ.iter().flatten();
            between.into_iter().any(|found| found.kind != DifferenceKind::CsrfToken)
        };
        if let Some(page) = pages.iter().find(is_unsafe) {
            let is_silent = |why: &NotStored| matches!(why.reason, Reason::NoItem | Reason::SetCookie);
            let is_silent = page.verdict.as_ref().is_err_and(is_silent);
            let personal = advice::keep_personal(&report.kind, Renders::Different).filter(|_| is_silent);
            if let Some((text, rule)) = personal {
                return Ok(report.keep_personal(text, rule, &self.settings));
            }
            let why = format!("None: two visitors' renders of {} differ, so it must not be shared.", page.url);
            report.remedy = Some(why);
            return Ok(settings);
        }
        if endangered.contains(&page.url) {
            report.remedy = Some("None: these pages are in danger, so no rule may share them.".to_owned());
            return Ok(settings);
        }
        let (shop, visitors, sample) = (&self.shop, &self.visitors, self.examined.as_slice());
        let siblings = if of_kind.is_joined { pages.as_slice() } else { &[] };
        let other_tokens = &of_kind.other_tokens;
        eprintln!("...  trying rules for {}", report.kind);
        let (mut is_stored, mut failures) = (false, Vec::new());
        for (page, count) in refused {
            let trial = Trial { shop, visitors, settings: &settings, sample, endangered, siblings, other_tokens };
            match trial.run(&report.kind, page).await? {
                Outcome::Works { rules, settings: with_rules } => {
                    report.hit_ratio_with_rules += average([(1.0, count), (0.0, pages.len() - count)].into_iter());
                    report.rules.extend(rules);
                    (is_stored, settings) = (true, with_rules);
                }
                Outcome::Differs { rules, differences, at, .. } => {
                    let are_tokens = differences.iter().all(|found| found.kind == DifferenceKind::CsrfToken);
                    let of_session = are_tokens && at == page.url.as_str() && !differences.is_empty();
                    report.differences.extend(differences);
                    let shared = || {
                        let names = advice::names(&rules);
                        format!("None: {names} would store {at}, which is not the same for all visitors.")
                    };
                    failures.push((page, if of_session { SESSION_TOKEN.to_owned() } else { shared() }));
                }
                Outcome::Personal(text, rule) => return Ok(report.keep_personal(text, rule, &self.settings)),
                Outcome::NoRule(text) => failures.push((page, text)),
            }
        }
        let failure = failures.into_iter().next();
        if is_stored {
            let text = if report.rules.is_empty() { "the other proposed rules store these pages, too." } else { TRIED };
            report.remedy = Some(text.to_owned());
            let warning =
                |(page, text): (&Examined, String)| format!("pages such as {} stay unstored. {text}", page.url);
            report.warning = report.warning.take().or_else(|| failure.map(warning));
        } else {
            report.remedy = failure.map(|(_, text)| text);
        }
        Ok(settings)
    }

    /// Looks for holes of shared pages, for visitors who otherwise get pages of their own. Returns the settings with them.
    async fn find_holes(
        &self,
        report: &mut KindReport,
        indices: &[usize],
        given: &Settings,
    ) -> Result<Settings, Failure> {
        let pages = self.pages(indices);
        let (settings, sample) = (&self.settings, self.examined.as_slice());
        let trial = HoleTrial { shop: &self.shop, visitors: &self.visitors, given, settings, sample };
        let holes = match trial.run(&report.kind, &pages).await? {
            HoleOutcome::Works(holes) => holes,
            HoleOutcome::NotCovered(warning) => {
                report.warning.get_or_insert(warning);
                return Ok(self.settings.clone());
            }
            HoleOutcome::NoRule => return Ok(self.settings.clone()),
        };
        report.remedy.get_or_insert_with(|| TRIED.to_owned());
        report.rules.extend(holes.rules);
        Ok(holes.settings)
    }

    /// Rules for writes that change only what their visitor sees: forms that a shared page sends to itself or to the cart, and
    /// logins. Returns the settings with them.
    fn add_write_rules(&self, report: &mut KindReport, indices: &[usize]) -> Settings {
        let pages = self.pages(indices);
        let (config, mut rules) = (&self.app.config, Vec::new());
        let kind = advice::path_pattern(&report.kind);
        if let Some(value) = login::route(&report.kind)
            && !config.origin.login_routes.contains(&value)
        {
            rules.push(Rule { variable: "LOGIN_ROUTES", value, risk: login::RISK });
        } else if report.hit_ratio_with_rules > 0.0 {
            let to_itself = kind.filter(|_| pages.iter().any(|page| page.posts_to.contains(&page.path)));
            let forms = pages.iter().flat_map(|page| page.posts_to.iter().map(|target| (target, &page.path)));
            let to_cart = forms.filter_map(|(target, path)| crate::carts::cart_paths(target, path, &report.kind));
            let routes = [&config.page.urls.personal_writes, &config.origin.cart_routes];
            let is_new = |value: &String| !routes.iter().any(|routes| routes.contains(value));
            for value in to_itself.into_iter().chain(to_cart).filter(is_new) {
                let rule = Rule { variable: "WRITES_PERSONAL", value, risk: advice::WRITE_RISK };
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
        let settings = self.settings.with_rules(&rules);
        report.rules.extend(rules);
        settings
    }

    /// A note if the signed-in visitor sees what everybody sees. Fragments (ESI), which may show the account, are not compared.
    fn doubtful_login(&self) -> Option<String> {
        if self.examined.iter().any(|page| !page.fragments.is_empty()) {
            return None;
        }
        let mut visits = self.examined.iter().flat_map(|page| &page.visits);
        let is_signed_in = |visit: &&Visit| visit.visitor == Visitor::SignedIn;
        let is_same = visits.clone().filter(is_signed_in).all(|visit| visit.differences.is_empty());
        let text = "the signed-in visitor sees the same pages as everybody: scripts fill in the account's parts, or the cookies of \
            --login are no longer valid, or only with the User-Agent of their browser";
        visits.any(|visit| is_signed_in(&visit)).then_some(text).filter(|_| is_same).map(str::to_owned)
    }

    fn finish(
        self,
        start: &Url,
        preset: Option<PresetReport>,
        sample: Sample,
        (dangers, mut kinds): (Vec<Danger>, Vec<KindReport>),
    ) -> Report {
        for kind in &mut kinds {
            let is_personal = |rule: &Rule| rule.variable == "PATHS_PERSONAL";
            let of_kind = dangers.iter().filter(|danger| danger.kind == kind.kind).flat_map(|danger| &danger.rules);
            if of_kind.chain(&kind.rules).any(is_personal) {
                kind.hit_ratio_with_rules = 0.0;
            }
        }
        let mut notes: Vec<_> = sample.stopped.into_iter().collect();
        if sample.forbidden > 0 {
            notes.push(format!("robots.txt forbids {} links, which were not requested", sample.forbidden));
        }
        if let Some(recognized) = sample.traces.recognize()
            && preset.as_ref().is_some_and(|preset| preset.name != recognized.preset)
        {
            let traces = recognized.traces.join(", ");
            notes.push(format!("the shop has traces of {} ({traces}); compare with --preset {0}", recognized.preset));
        }
        if self.examined.len() < sample.pages.len() {
            let (count, all) = (sample.pages.len() - self.examined.len(), sample.pages.len());
            notes.push(format!(
                "{count} of {all} pages did not answer again, or answered 429 or an error; try a longer --pause"
            ));
        }
        notes.extend(self.doubtful_login());
        notes.extend(danger::notes(&self.examined));
        notes.extend(fragments::note(&self.examined));
        let text = |value: &str| Value::String(value.to_owned());
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.pages));
        Report {
            url: start.to_string(),
            preset,
            pages: self.examined.len(),
            requests: self.shop.requests(),
            notes,
            dangers,
            hit_ratio: average(kinds.iter().map(|kind| (kind.hit_ratio, kind.pages))),
            hit_ratio_with_rules: average(kinds.iter().map(|kind| (kind.hit_ratio_with_rules, kind.pages))),
            kinds,
            estimate: ESTIMATE,
            vars: self.settings.iter().map(|(name, value)| (name.to_owned(), text(value))).collect(),
        }
    }
}
