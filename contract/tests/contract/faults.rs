//! Each broken clause is found, and no other one is reported.

use super::support::{Fault, Origin};

#[test]
fn an_origin_that_keeps_the_contract_passes() {
    let origin = Origin::start(Fault::None);
    let run = origin.check(&[]);
    assert_eq!((run.code, run.broken().as_slice()), (Some(0), &[][..]), "{}{}", run.output, run.errors);
    assert!(run.output.ends_with("27 hold, 0 broken, 0 not checked\n"), "{}", run.output);
}

#[test]
fn clauses_without_their_options_are_listed_as_not_checked() {
    let origin = Origin::start(Fault::None);
    let run = origin.check_pages();
    assert_eq!(run.code, Some(0), "{}", run.output);
    for line in ["not checked  order", "not checked  login ", "not checked  rows", "not checked  forwarded-host"] {
        assert!(run.output.contains(line), "{line}: {}", run.output);
    }
}

#[test]
fn an_origin_without_a_login_of_its_own_has_none_to_end() {
    let run = Origin::start(Fault::NoOwnLogin).check(&[]);
    assert_eq!(run.code, Some(0), "{}", run.output);
    for clause in ["session-none", "session-guest", "session-unknown"] {
        assert!(run.output.contains(&format!("not checked  {clause}")), "{}", run.output);
    }
}

#[test]
fn each_fault_breaks_its_clause() {
    let mut differences = Vec::new();
    for (fault, expected) in [
        (Fault::KeyIgnored, &["key-required", "key-forged-user", "key-forged-host", "rows-key"][..]),
        (Fault::KeyPrefix, &["key-required", "key-forged-user"]),
        (Fault::Underscores, &["key-forged-user"]),
        (Fault::RefusesLate, &["key-required"]),
        (Fault::Head, &["health"]),
        (Fault::SharedStatus, &["shared-status", "item"]),
        (Fault::SharedCookie, &["shared-cookies"]),
        (Fault::SharedLogin, &["shared-directives"]),
        (Fault::SharedUser, &["shared-anonymous"]),
        (Fault::WrongItem, &["item"]),
        (Fault::NoItem, &["item"]),
        (Fault::LongTag, &["tags"]),
        (Fault::ManyTags, &["tags"]),
        (Fault::Reflection, &["no-reflection"]),
        (Fault::OwnHost, &["forwarded-host"]),
        (Fault::WrongScheme, &["forwarded-host"]),
        (Fault::NoUser, &["user", "session-other"]),
        (Fault::PublicAccount, &["user-private"]),
        (Fault::NoLogin, &["login"]),
        (Fault::PublicLogin, &["login"]),
        (Fault::InvalidUser, &["login"]),
        (Fault::AnyPassword, &["login-refused"]),
        (Fault::KeepsLogin, &["session-none", "session-guest"]),
        (Fault::EndsLogin, &["session-unknown"]),
        (Fault::OwnLoginWins, &["session-other"]),
        (Fault::KeepsGuestLogin, &["session-guest"]),
        (Fault::NoLogout, &["logout"]),
        (Fault::OddLogout, &["logout"]),
        (Fault::InvalidCart, &["cart"]),
        (Fault::NoCart, &["cart"]),
        (Fault::CartIgnored, &["cart-shown"]),
        (Fault::PublicCart, &["cart-shown"]),
        (Fault::InvalidOrder, &["order"]),
        (Fault::PublicOrder, &["order"]),
        (Fault::TwoOrders, &["order"]),
        (Fault::RowsObject, &["rows", "rows-missing"]),
        (Fault::RowsWithoutId, &["rows", "rows-missing"]),
        (Fault::RowsMissing, &["rows-missing"]),
        (Fault::RowsOpen, &["rows-key"]),
    ] {
        let origin = Origin::start(fault);
        let run = origin.check(&[]);
        if (run.code, run.broken().as_slice()) != (Some(1), expected) {
            differences.push(format!("{fault:?} breaks {:?}, expected {expected:?}. {}", run.broken(), run.errors));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}
