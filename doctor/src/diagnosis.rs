//! The examination, step by step: crawl, recognize the software, examine every page, try rules, print the report.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use edgefront::{App, config::item_routes::ItemRoutes, page_cache::PageKey};
use serde_json::Value;
use url::Url;
use xtask::failure::Failure;

use super::{
    advice::{self, Rule},
    arguments::DoctorArguments,
    crawl::{Crawl, Sample},
    danger::{self, Danger},
    difference::Difference,
    examine::{Examined, Examiner},
    files, fragments,
    kinds::{self, Shape},
    login,
    negotiation::{Finding, Switchers},
    personal::has_personal_name,
    render,
    report::{ESTIMATE, KindReport, PresetReport, Report, average},
    robots::Robots,
    settings::Settings,
    shop::Shop,
    siblings::{self, PagesOfKind, Site},
    variants,
    visitor::{Visitor, Visitors},
};

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
    let mut visitors = Visitors::new(arguments.login.as_deref())?;
    let robots = Robots::read(&shop, start).await?;
    let crawl = Crawl { shop: &shop, robots: &robots, visitors: &visitors, rules: &config.urls };
    let mut sample = crawl.run(start, arguments.pages).await?;
    let (settings, preset) = choose_preset(given, &sample);
    let given = settings.clone();
    let of_links = rules_of_links(&shop, &sample, &settings).await?;
    let settings = settings.with_rules(of_links.iter().flat_map(|found| &found.rules));
    // A request for such an address would change the language of the --login session.
    let choices = settings.config()?.page.urls.choices;
    sample.pages.retain(|url| !choices.contains(url.path(), url.query()));
    if sample.switchers.redirects.links().any(|link| choices.contains(link.path(), link.query())) {
        // The crawl followed a link that changed the choice of its visitor.
        visitors.start_again(&shop, &sample.pages).await;
    }
    let app = render::edgefront(&settings, &shop)?;
    let examined = examine_all(&Examiner { app: app.clone(), shop: &shop, visitors: &visitors }, &sample).await;
    let has_item =
        |routes: &ItemRoutes| examined.iter().any(|page| routes.item(page.url.path(), page.url.query()).is_some());
    let settings = settings.with_default_items(has_item);
    let mut diagnosis = Diagnosis { app, shop, visitors, settings, examined, notes: Vec::new() };
    diagnosis.notes.extend(of_links.into_iter().map(|found| found.note));
    // First, because all other steps then know the cookies that keep a visitor's preferences.
    diagnosis.find_variants(&sample).await;
    diagnosis.examine_variants_again().await?;
    diagnosis.compare_countries(&sample).await;
    let kinds = diagnosis.kinds(&sample);
    let judged = diagnosis.judge(kinds).await?;
    let (dangers, reports) = diagnosis.complete_rules(judged.kinds, &given).await?;
    diagnosis.add_rules_of_forms(&sample)?;
    diagnosis.note_sessions(&reports, &judged.declared, arguments.login.is_some())?;
    let rules = diagnosis.settings.config()?.page.cookies;
    diagnosis.notes.extend(login::note_on_links(&diagnosis.shop, &diagnosis.visitors, &rules, start).await);
    diagnosis.notes.extend(danger::notes_on_noise(judged.noise));
    diagnosis.add_robots_rules(&robots)?;
    let found = files::note(&diagnosis.shop, &robots, &diagnosis.settings, &diagnosis.examined).await?;
    if let Some((note, settings)) = found {
        diagnosis.notes.push(note);
        diagnosis.settings = settings;
    }
    Ok(diagnosis.finish(start, preset, sample, (dangers, reports)))
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

/// The rules for links to a language or a currency that the session keeps.
async fn rules_of_links(shop: &Shop, sample: &Sample, settings: &Settings) -> Result<Vec<Finding>, Failure> {
    let rules = settings.config()?.page.urls;
    let mut pages: Vec<_> =
        sample.pages.first().into_iter().chain(variants::page_of_largest_kind(sample, &rules)).collect();
    pages.dedup();
    Ok(sample.switchers.rules_of_links(shop, &pages, &rules.choices).await)
}

async fn examine_all(examiner: &Examiner<'_>, sample: &Sample) -> Vec<Examined> {
    let mut pages = Vec::new();
    for (index, url) in sample.pages.iter().enumerate() {
        eprintln!("...  examining page {} of {}: {url}", index + 1, sample.pages.len());
        pages.extend(examiner.examine(url).await);
    }
    pages
}

/// All findings about the shop.
pub struct Diagnosis {
    pub app: Rc<App>,
    pub shop: Rc<Shop>,
    pub visitors: Visitors,
    /// With the rules that are proposed so far.
    pub settings: Settings,
    pub examined: Vec<Examined>,
    notes: Vec<String>,
}

/// The kinds of pages, with the rules that store them.
struct JudgedKinds {
    kinds: Vec<(KindReport, PagesOfKind)>,
    /// The kinds whose pages the shop declares public.
    declared: Vec<String>,
    /// An invisible difference of each kind that has one.
    noise: Vec<(String, Difference)>,
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

    /// Judges each kind of pages, and looks for rules that store its pages.
    async fn judge(&mut self, kinds: BTreeMap<String, PagesOfKind>) -> Result<JudgedKinds, Failure> {
        let endangered = self.endangered(&kinds);
        let mut judged = JudgedKinds { kinds: Vec::new(), declared: Vec::new(), noise: Vec::new() };
        // A rule for `/shop/*` also holds for `/shop/login`, so pages of one visitor come first.
        let (personal, others): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|(kind, _)| has_personal_name(kind));
        for (kind, of_kind) in personal.into_iter().chain(others) {
            let mut report = KindReport::of(&kind, &self.pages(&of_kind.pages), &self.app.config.page);
            self.settings = self.find_rules(&mut report, &of_kind, &endangered).await?;
            let protecting = of_kind.dangers.iter().flat_map(|danger| &danger.rules);
            self.settings = self.settings.with_rules(protecting);
            let pages = self.pages(&of_kind.pages);
            report.warning = report.warning.or_else(|| danger::warning_on_random(&kind, &pages));
            let mut notes: Vec<_> = of_kind.is_joined.then(|| siblings::note(&kind, &pages)).into_iter().collect();
            notes.extend(danger::notes_of_kind(&kind, &pages));
            notes.extend(danger::note_on_personal(&kind, &pages, &report.rules));
            judged
                .noise
                .extend(pages.iter().find_map(|page| page.noise.first()).map(|found| (kind.clone(), found.clone())));
            judged.declared.extend(pages.iter().any(|page| page.is_claimed()).then(|| kind.clone()));
            self.notes.extend(notes);
            judged.kinds.push((report, of_kind));
        }
        Ok(judged)
    }

    /// Adds the rules for holes and writes, which need the rules of all kinds. `given`: the settings without proposed rules.
    async fn complete_rules(
        &mut self,
        mut kinds: Vec<(KindReport, PagesOfKind)>,
        given: &Settings,
    ) -> Result<(Vec<Danger>, Vec<KindReport>), Failure> {
        let mut dangers = Vec::new();
        for (report, of_kind) in &mut kinds {
            if of_kind.dangers.is_empty() && report.hit_ratio_with_rules > 0.0 {
                self.settings = self.find_holes(report, &of_kind.pages, given).await?;
                self.settings = self.add_item_route(report, of_kind)?;
            }
            self.settings = self.add_write_rules(report, &of_kind.pages);
            dangers.append(&mut of_kind.dangers);
        }
        let mut reports: Vec<_> = kinds.into_iter().map(|(report, _)| report).collect();
        let holes = self.settings.config()?.page.cookies.holes;
        for report in &mut reports {
            report.rules.retain(|rule| !rule.is_of_cookie_in(&holes));
        }
        Ok((dangers, reports))
    }

    /// Adds rules for forms whose preference the session may keep. Without holes, visitors with a session get pages of their own anyway.
    fn add_rules_of_forms(&mut self, sample: &Sample) -> Result<(), Failure> {
        let config = self.settings.config()?;
        if !config.page.cookies.holes.is_empty() {
            self.add(sample.switchers.rules_of_forms(&sample.addresses, &config));
        }
        Ok(())
    }

    pub(super) fn add(&mut self, findings: Vec<Finding>) {
        for Finding { note, rules } in findings {
            self.notes.push(note);
            self.settings = self.settings.with_rules(&rules);
        }
    }

    /// Adds notes on the cookies of sessions, and on pages that the shop declares shared although no rule names such a cookie.
    fn note_sessions(&mut self, reports: &[KindReport], declared: &[String], has_login: bool) -> Result<(), Failure> {
        let rules: Vec<_> = reports.iter().flat_map(|report| &report.rules).collect();
        self.notes.extend(danger::note_on_sessions(&rules, has_login));
        let cookies = self.settings.config()?.page.cookies;
        let has_no_rule = !has_login && cookies.personal.is_empty() && cookies.holes.is_empty();
        self.notes.extend(danger::note_on_declared(declared).filter(|_| has_no_rule));
        Ok(())
    }

    /// Adds the personal paths that `robots.txt` forbids.
    fn add_robots_rules(&mut self, robots: &Robots) -> Result<(), Failure> {
        if let Some((note, rules)) = robots.personal_paths(&self.settings.config()?.page.urls.personal_paths) {
            self.notes.push(note);
            self.settings = self.settings.with_rules(&rules);
        }
        Ok(())
    }

    /// The examined pages with these indices.
    pub fn pages(&self, indices: &[usize]) -> Vec<&Examined> {
        indices.iter().filter_map(|index| self.examined.get(*index)).collect()
    }

    /// The pages of all kinds that are in danger.
    fn endangered(&self, kinds: &BTreeMap<String, PagesOfKind>) -> Vec<Url> {
        let kinds = kinds.values().filter(|kind| !kind.dangers.is_empty());
        let pages = kinds.flat_map(|kind| &kind.pages).filter_map(|index| self.examined.get(*index));
        pages.map(|page| page.url.clone()).collect()
    }

    /// A note if the signed-in visitor sees what everybody sees. If this visitor gets pages of their own nevertheless, the note names
    /// the rule that shares pages with them. Fragments (ESI), which may show the account, are not compared.
    fn doubtful_login(&self, switchers: &Switchers) -> Option<String> {
        if self.examined.iter().any(|page| !page.fragments.is_empty()) {
            return None;
        }
        let visits = self.examined.iter().flat_map(|page| &page.visits);
        let visits: Vec<_> = visits.filter(|visit| visit.visitor == Visitor::SignedIn).collect();
        if visits.is_empty() || visits.iter().any(|visit| !visit.differences.is_empty()) {
            return None;
        }
        let own = visits.iter().filter(|visit| !visit.gets_stored_page).flat_map(|visit| &visit.maybe_personal);
        let names: Vec<_> = own.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
        // Stored pages are those of visitors who have not chosen.
        let kept = self.settings.config().ok().and_then(|config| switchers.kept_by_session(&config));
        let kept = kept.map(|rule| format!("keep the choice of {rule} in a cookie, and then ")).unwrap_or_default();
        let remedy = format!(
            ": {kept}set COOKIES_IGNORED = \"+ {}\", so that these visitors get the stored pages, without flash messages",
            names.join(", ")
        );
        let remedy = if names.is_empty() { "" } else { &remedy };
        Some(format!(
            "the signed-in visitor sees the same pages as everybody. Scripts may fill in the account's parts{remedy}. Otherwise, the \
             cookies of --login have expired, or need the User-Agent of their browser: sign in again"
        ))
    }

    fn finish(
        self,
        start: &Url,
        preset: Option<PresetReport>,
        sample: Sample,
        (dangers, mut kinds): (Vec<Danger>, Vec<KindReport>),
    ) -> Report {
        for kind in &mut kinds {
            let path = advice::path_pattern(&kind.kind);
            let is_personal = |rule: &Rule| rule.variable == "PATHS_PERSONAL" && Some(&rule.value) == path.as_ref();
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
        notes.extend(self.doubtful_login(&sample.switchers));
        notes.extend(danger::notes(&self.examined));
        notes.extend(fragments::note(&self.examined));
        notes.extend(self.notes);
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
