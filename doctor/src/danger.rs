//! Dangers: a stored page would show one visitor's data to another, or would replace a visitor's own page.

use edgefront::sessions::cookie;
use serde::Serialize;

use super::{
    advice::{PATH_RISK, Rule, path_pattern},
    cookies::names_session,
    difference::{Difference, DifferenceKind},
    examine::{Examined, Visit},
    tokens,
    visitor::Visitor,
};

/// One danger at one kind of page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Danger {
    pub kind: String,
    pub example: String,
    pub pages: usize,
    pub sentence: String,
    pub differences: Vec<Difference>,
    pub remedy: &'static str,
    /// Rules that protect the visitors behind edgefront.
    pub rules: Vec<Rule>,
}

/// Most excerpts in a note.
const MAX_EXCERPTS: usize = 3;

const COOKIE_RISK: &str = "none for visitors: those with this cookie always get pages of their own.";

const REMEDY_PUBLIC: &str = "let the shop send Cache-Control: private for this page. A response that is public must be \
    the same for all visitors (RFC 9111, section 5.2.2.9).";
const REMEDY_SILENT: &str = "let the shop send Cache-Control: private for this page. edgefront then never stores it.";
const REMEDY_HOLES: &str = "add the parts that differ to HOLES. A cookie of COOKIES_HOLES must change nothing else.";

/// The remedy for pages that differ in nonces of a content security policy only.
pub const REMEDY_NONCES: &str = "let the shop name its scripts in the policy by hashes or 'self' instead of nonces: a nonce that all visitors \
    of a stored page get protects nobody.";

/// The dangers of the pages of one kind. Equal dangers of several pages are one.
pub fn of_kind(kind: &str, pages: &[&Examined]) -> Vec<Danger> {
    let mut dangers: Vec<Danger> = Vec::new();
    for page in pages {
        let of_visits = page.visits.iter().filter_map(|visit| of_visit(kind, page, visit));
        for danger in between_renders(kind, page).into_iter().chain(of_visits) {
            match dangers.iter_mut().find(|known| known.sentence == danger.sentence) {
                Some(known) => known.pages += 1,
                None => dangers.push(danger),
            }
        }
    }
    dangers
}

/// Notes on content that visitors lose because the rules ignore their cookies. The rules accept this loss.
pub fn notes_of_kind(kind: &str, pages: &[&Examined]) -> Vec<String> {
    let (mut notes, mut visitors) = (Vec::new(), Vec::new());
    for (page, visit) in pages.iter().flat_map(|page| page.visits.iter().map(move |visit| (*page, visit))) {
        let Some(names) = visit.ignored.as_ref().filter(|_| is_accepted_loss(page, visit)) else { continue };
        if !visitors.contains(&visit.visitor) {
            visitors.push(visit.visitor);
            notes.push(note(kind, names, visit));
        }
    }
    notes
}

/// Notes on invisible values of the kinds' pages that change at each request, such as a time in a script: one for each place.
pub fn notes_on_noise(of_kinds: Vec<(String, Difference)>) -> Vec<String> {
    let mut places: Vec<(Vec<String>, Difference)> = Vec::new();
    for (kind, found) in of_kinds {
        match places.iter_mut().find(|(_, known)| known.has_place_of(&found)) {
            Some((kinds, _)) => kinds.push(kind),
            None => places.push((vec![kind], found)),
        }
    }
    let note = |(kinds, found): (Vec<String>, Difference)| {
        let (kinds, one, other) = (kinds.join(", "), found.one, found.other);
        format!(
            "pages of {kinds} contain an invisible value that changes at each request: `{one}` or `{other}`; all visitors of a stored \
             page get the same one, so check that no script takes it for the current time, or for an id of its own"
        )
    };
    places.into_iter().map(note).collect()
}

/// A note if hits are lost for text that visitors may do without: the proposed `rules` make the cookies personal that the shop
/// itself set, such as a list of recently viewed products.
pub fn note_on_personal(kind: &str, pages: &[&Examined], rules: &[Rule]) -> Option<String> {
    let is_proposed = |name: &&String| {
        !names_session(name) && rules.iter().any(|rule| rule.variable == "COOKIES_PERSONAL" && rule.value == **name)
    };
    let mut visits = pages.iter().flat_map(|page| &page.visits);
    let visit = visits.find(|visit| visit.visitor == Visitor::WithOwnCookies && !visit.differences.is_empty())?;
    let is_text = visit.differences.iter().all(|found| found.kind == DifferenceKind::VisibleText);
    let names: Vec<_> = visit.maybe_personal.iter().filter(is_proposed).map(String::as_str).collect();
    let excerpts = excerpts(visit).filter(|_| is_text && !names.is_empty())?;
    let names = names.join(", ");
    Some(format!(
        "visitors with {names} see on {kind}: {excerpts}; if they can do without it, and {names} holds nothing else, no session \
         and no basket, name it in COOKIES_IGNORED instead of COOKIES_PERSONAL: these visitors then get stored pages"
    ))
}

/// A note on a shop that starts a session on each page, unless it has holes for visitors with a session: a form starts it, too. Without
/// `--login`, the doctor has not looked for holes.
pub fn note_on_sessions(rules: &[&Rule], has_login: bool) -> Option<String> {
    let of =
        |variable: &'static str| rules.iter().filter(move |rule| rule.variable == variable).map(|rule| &rule.value);
    let is_dropped = |name: &&String| of("COOKIES_DROPPED").any(|rule| rule.split('@').next() == Some(name.as_str()));
    let mut names: Vec<_> = of("COOKIES_PERSONAL").filter(is_dropped).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let others: Vec<_> = names.iter().copied().filter(|name| !names_session(name)).collect();
    let others = (!others.is_empty()).then(|| {
        let others = others.join(", ");
        format!(
            ". If {others} keeps no session, basket or choice, name it in COOKIES_IGNORED instead of COOKIES_PERSONAL"
        )
    });
    let names = names.join(", ");
    let advice = if has_login {
        ""
    } else {
        ". Run the doctor with --login: it looks for holes for visitors with these cookies"
    };
    (!names.is_empty()).then(|| {
        format!(
            "visitors get {names} with their first form or personal page, and from then on pages of their own: the expected hit ratio is that \
             of new visitors{}{advice}",
            others.unwrap_or_default()
        )
    })
}

/// The notes on all pages.
pub fn notes(pages: &[Examined]) -> impl Iterator<Item = String> {
    [note_on_own_name(pages), note_on_links(pages)].into_iter().flatten()
}

/// A note on a cookie of the shop with the name of edgefront's own. It never reaches the shop.
fn note_on_own_name(pages: &[Examined]) -> Option<String> {
    let sets = |page: &Examined| page.set_cookies.iter().any(|name| name == cookie::NAME);
    let sends = |visit: &Visit| visit.cookies.iter().any(|name| name == cookie::NAME);
    pages.iter().any(|page| sets(page) || page.visits.iter().any(sends)).then(|| {
        format!(
            "the shop sets {0}, the name of edgefront's own session cookie. edgefront never sends this cookie to the shop, so the \
             shop would lose its sessions: give the shop's cookie another name",
            cookie::NAME
        )
    })
}

/// A note on pages with links or forms that have another address for each visitor.
fn note_on_links(pages: &[Examined]) -> Option<String> {
    let find = |page: &Examined| {
        let found = page.renders_differ.iter().flatten().find(|found| found.kind == DifferenceKind::Address)?;
        Some((page.url.clone(), found.clone()))
    };
    pages.iter().find_map(find).map(|(url, Difference { one, other, .. })| {
        format!(
            "the addresses of links on {url} differ for each visitor: `{one}` or `{other}`. If they contain the id of a session, let the \
             shop keep such ids in cookies only, and run the doctor again: session.use_trans_sid = 0 in PHP, \
             <tracking-mode>COOKIE</tracking-mode> in a Java application"
        )
    })
}

/// A note on pages of these kinds that the shop declares shared, if no `--login` shows what visitors with an account see there.
pub fn note_on_declared(kinds: &[String]) -> Option<String> {
    (!kinds.is_empty()).then(|| {
        format!(
            "the shop declares {} public, and no rule names a cookie of an account, so visitors with an account get these pages, too. Run \
             the doctor with --login: it shows if their own pages differ, and proposes the rules",
            kinds.join(", ")
        )
    })
}

/// Excerpts of the visitor's own page. None if it only lacks something.
fn excerpts(visit: &Visit) -> Option<String> {
    let texts = visit.differences.iter().map(|found| &found.other).filter(|text| !text.is_empty());
    let excerpts: Vec<_> = texts.take(MAX_EXCERPTS).map(|text| format!("`{text}`")).collect();
    (!excerpts.is_empty()).then(|| excerpts.join(", "))
}

fn note(kind: &str, names: &[String], visit: &Visit) -> String {
    let loss = match excerpts(visit) {
        None => format!("see the page for everybody on {kind}, although their own one differs"),
        Some(excerpts) => format!("lose on {kind}: {excerpts}"),
    };
    if names.is_empty() {
        return format!("visitors with the CSRF cookie {loss}");
    }
    let (names, rule) = (names.join(", "), visit.maybe_personal.join(", "));
    if rule.is_empty() {
        return format!("visitors with {names} {loss}");
    }
    format!("visitors with {names} {loss}; to keep it, add COOKIES_PERSONAL = \"+ {rule}\", at the cost of hits")
}

/// Returns whether a visitor gets the page for everybody instead of an own one because the rules ignore the visitor's
/// cookies. A page that the shop declares public stays a danger: other caches may share the visitor's own page.
fn is_accepted_loss(page: &Examined, visit: &Visit) -> bool {
    visit.ignored.is_some() && visit.gets_stored_page && !page.is_claimed() && !visit.differences.is_empty()
}

/// A warning if stored pages have visible content that belongs to no visitor, although it changes at each request.
pub fn warning_on_random(kind: &str, pages: &[&Examined]) -> Option<String> {
    let page = pages.iter().find(|page| page.has_random_content)?;
    let is_text = |found: &&Difference| found.kind == DifferenceKind::VisibleText;
    let Difference { one, other, .. } = page.renders_differ.iter().flatten().find(is_text)?;
    let path = path_pattern(kind);
    let rule = path.map(|path| format!(" If that is wrong, add {path} to PATHS_PERSONAL.")).unwrap_or_default();
    Some(format!(
        "`{one}` or `{other}` changes at each request, also for one visitor: random content, a counter or a question of a form. All \
         visitors of a stored page see the same.{rule}"
    ))
}

/// Two visitors without cookies get different pages.
fn between_renders(kind: &str, page: &Examined) -> Option<Danger> {
    let differences = page.renders_differ.as_ref().filter(|differences| !differences.is_empty())?;
    if page.has_random_content {
        return None;
    }
    let (who, consequence) = match (page.is_declared_shared, page.verdict.is_ok()) {
        (true, true) => ("the shop declares this page public", "One would see the other's."),
        (false, true) => ("edgefront would store this page", "One would see the other's."),
        (true, false) => ("the shop declares this page public", "edgefront does not store it, but other caches may."),
        (false, false) => return None,
    };
    let sentence = format!("Possible leak: {who}, but two visitors get different ones. {consequence}");
    let are_nonces = page.differs_in_nonces();
    let rules = if page.verdict.is_ok() && !are_nonces { personal_path(kind) } else { Vec::new() };
    let found = danger(kind, page, sentence, differences.clone(), rules);
    Some(if are_nonces { Danger { remedy: REMEDY_NONCES, ..found } } else { found })
}

/// A visitor with cookies gets another page than everybody, although the page counts as shared.
fn of_visit(kind: &str, page: &Examined, visit: &Visit) -> Option<Danger> {
    let concerns = page.is_claimed() || visit.gets_stored_page;
    if visit.differences.is_empty() || !concerns || is_accepted_loss(page, visit) {
        return None;
    }
    let who = visit.visitor.subject();
    let start =
        if page.is_declared_shared { "The shop declares this page public" } else { "edgefront would store this page" };
    let end = if visit.gets_stored_page {
        ". They would get the page for everybody instead of their own."
    } else {
        "; edgefront's rules protect them, but other caches do not know these rules."
    };
    let rules = if visit.gets_stored_page { personal_cookies(kind, visit) } else { Vec::new() };
    let is_of_holes = visit.gets_stored_page && visit.ignored.is_none() && rules.is_empty();
    let sentence = format!("{start}, but {who} get another one{end}");
    let mut found = danger(kind, page, sentence, visit.differences.clone(), rules);
    if is_of_holes && visit.cookies.iter().any(|name| !visit.maybe_personal.contains(name)) {
        found.remedy = REMEDY_HOLES;
    }
    Some(found)
}

fn danger(kind: &str, page: &Examined, sentence: String, differences: Vec<Difference>, rules: Vec<Rule>) -> Danger {
    Danger {
        kind: kind.to_owned(),
        example: page.url.to_string(),
        pages: 1,
        sentence,
        differences,
        remedy: if page.is_declared_shared { REMEDY_PUBLIC } else { REMEDY_SILENT },
        rules,
    }
}

/// Makes the visitor's cookies personal. A visitor without a cookie that counts needs a rule for the path. Cookies that the
/// rules ignore, and those of holes, never make a path personal.
fn personal_cookies(kind: &str, visit: &Visit) -> Vec<Rule> {
    if visit.ignored.is_none() && visit.cookies.is_empty() {
        return personal_path(kind);
    }
    let rule = |name: &String| Rule { variable: "COOKIES_PERSONAL", value: name.clone(), risk: COOKIE_RISK };
    // Beside another cookie, that of a token identifies nobody, and each visitor may have it.
    let has_other = visit.maybe_personal.iter().any(|name| !tokens::is_csrf_cookie(name));
    visit.maybe_personal.iter().filter(|name| !has_other || !tokens::is_csrf_cookie(name)).map(rule).collect()
}

fn personal_path(kind: &str) -> Vec<Rule> {
    let path = path_pattern(kind);
    path.map(|value| Rule { variable: "PATHS_PERSONAL", value, risk: PATH_RISK }).into_iter().collect()
}
