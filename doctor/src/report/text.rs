//! The report as text: dangers first, then the kinds of pages, then the variables to paste.

use std::{collections::HashSet, fmt};

use super::{KindReport, Report, VisitorReport};
use crate::{advice::Rule, danger::Danger, difference::Difference};

/// Most differences that are printed for one page; the JSON has more.
const MAX_DIFFERENCES: usize = 3;

/// The examined address is no origin: it will be the public address of edgefront.
const ORIGIN: &str = "# Set the address at which the shop answers without edgefront. The public address would be a loop.\n\
    # ORIGIN_URL = \"https://origin.shop.example\"";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut known = HashSet::new();
        for danger in &self.dangers {
            write_danger(f, danger, &mut known)?;
        }
        let (pages, kinds) = (counted(self.pages, "page"), counted(self.kinds.len(), "kind"));
        write!(f, "{}: {pages} of {kinds}, {} requests.", self.url, self.requests)?;
        match &self.preset {
            None => writeln!(f, " No preset fits.")?,
            Some(preset) if preset.traces.is_empty() => writeln!(f, " Judged with the preset {}.", preset.name)?,
            Some(preset) => {
                writeln!(f, " Judged with the preset {}, recognized by {}.", preset.name, preset.traces.join(", "))?;
            }
        }
        for note in &self.notes {
            writeln!(f, "Note: {note}.")?;
        }
        for kind in &self.kinds {
            write_kind(f, kind, &mut known)?;
        }
        writeln!(f, "\nExpected hit ratio: {}.", ratios(self.hit_ratio, self.hit_ratio_with_rules))?;
        writeln!(f, "{}", self.estimate)?;
        writeln!(f, "\nReplace these lines in wrangler.toml:\n\n[vars]\n{ORIGIN}")?;
        for (name, value) in &self.vars {
            // A TOML string has JSON's escapes.
            writeln!(f, "{name} = {value}")?;
        }
        Ok(())
    }
}

fn write_danger(f: &mut fmt::Formatter<'_>, danger: &Danger, known: &mut HashSet<&'static str>) -> fmt::Result {
    writeln!(f, "DANGER {} ({}, such as {})", danger.kind, counted(danger.pages, "page"), danger.example)?;
    writeln!(f, "  {}", danger.sentence)?;
    write_differences(f, &danger.differences)?;
    writeln!(f, "  Remedy: {}", danger.remedy)?;
    for rule in &danger.rules {
        write_rule(f, rule, known)?;
    }
    writeln!(f)
}

fn write_kind(f: &mut fmt::Formatter<'_>, kind: &KindReport, known: &mut HashSet<&'static str>) -> fmt::Result {
    writeln!(f, "\n{} ({}, such as {})", kind.kind, counted(kind.pages, "page"), kind.example)?;
    if kind.stored > 0 {
        writeln!(f, "  stored: {} of {}", kind.stored, kind.pages)?;
    }
    for reason in &kind.not_stored {
        write!(f, "  not stored: {} of {}, {}", reason.pages, kind.pages, reason.reason)?;
        if reason.cause.is_empty() { writeln!(f)? } else { writeln!(f, " ({})", reason.cause)? }
    }
    for header in &kind.headers {
        writeln!(f, "  header {header}")?;
    }
    if let Some(warning) = &kind.warning {
        writeln!(f, "  warning: {warning}")?;
    }
    for cookie in &kind.set_cookies {
        let dropped = if cookie.is_dropped { ", dropped from shared pages" } else { "" };
        writeln!(f, "  sets the cookie {}: {}{dropped}", cookie.name, cookie.rule)?;
    }
    for visitor in &kind.visitors {
        write_visitor(f, visitor, kind.stored > 0)?;
    }
    if kind.renders_differ > 0 {
        writeln!(f, "  two visitors' renders differ: {} of {} pages", kind.renders_differ, kind.pages)?;
        write_differences(f, &kind.differences)?;
    }
    if let Some(remedy) = &kind.remedy {
        writeln!(f, "  remedy: {remedy}")?;
    }
    for rule in &kind.rules {
        write_rule(f, rule, known)?;
    }
    writeln!(f, "  expected hit ratio: {}", ratios(kind.hit_ratio, kind.hit_ratio_with_rules))
}

fn write_visitor(f: &mut fmt::Formatter<'_>, report: &VisitorReport, is_stored: bool) -> fmt::Result {
    let VisitorReport { visitor, cookies, pages, gets_stored_page, own_page_differs, differences } = report;
    if *gets_stored_page > 0 {
        writeln!(f, "  {} get the stored page: {gets_stored_page} of {pages}", visitor.subject())?;
    } else if is_stored {
        writeln!(f, "  {} get pages of their own: {}", visitor.subject(), cookies.join(", "))?;
    }
    if *own_page_differs > 0 {
        writeln!(f, "  {} see a different page: {own_page_differs} of {pages}", visitor.subject())?;
        write_differences(f, differences)?;
    }
    Ok(())
}

fn write_differences(f: &mut fmt::Formatter<'_>, differences: &[Difference]) -> fmt::Result {
    let text = |excerpt: &str| if excerpt.is_empty() { "nothing".to_owned() } else { format!("`{excerpt}`") };
    for Difference { kind, one, other, before, after, .. } in differences.iter().take(MAX_DIFFERENCES) {
        write!(f, "    {}: {} or {}", kind.as_str(), text(one), text(other))?;
        for (side, context) in [("after", before), ("before", after)] {
            if !context.is_empty() {
                write!(f, ", {side} `{context}`")?;
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

/// `known` are the risks that the report has named already: many kinds of pages have the same rules.
fn write_rule(f: &mut fmt::Formatter<'_>, rule: &Rule, known: &mut HashSet<&'static str>) -> fmt::Result {
    let Rule { variable, value, risk } = rule;
    writeln!(f, "    {variable}: {value}")?;
    if known.insert(risk) { writeln!(f, "      Risk: {risk}") } else { Ok(()) }
}

/// `1 page`, `2 pages`.
fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn ratios(now: f64, with_rules: f64) -> String {
    let is_same = (with_rules - now).abs() < 0.005;
    if is_same { format!("{now:.2}") } else { format!("{now:.2}, with the proposed rules {with_rules:.2}") }
}
