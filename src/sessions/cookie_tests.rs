//! What is and what is not a session's cookie.

use proptest::prelude::*;

use super::*;

const DAY: Duration = Duration::from_hours(24);
const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

fn keyring(keys: &[&str]) -> Keyring {
    let signing_keys = keys.iter().map(|key| crate::config::Secret::new(*key)).collect();
    Keyring::new(&SessionConfig { signing_keys, limit: 10, idle: DAY, max_age: 90 * DAY, view_window: DAY })
}

fn headers(cookies: &[&str]) -> HeaderMap {
    cookies.iter().map(|cookie| (header::COOKIE, HeaderValue::from_str(cookie).unwrap())).collect()
}

fn new_key() -> Keyring {
    keyring(&["the new key, of 32 characters ..", "the old key, of 32 characters .."])
}

fn old_key() -> Keyring {
    keyring(&["the old key, of 32 characters .."])
}

#[test]
fn a_cookie_is_read_back_wherever_it_stands() {
    let (keyring, token) = (new_key(), Token::new(NOW).unwrap());
    let pair = keyring.pair(&token).unwrap();
    for cookies in [
        vec![pair.clone()],
        vec![format!("a=b; {pair}; c=d")],
        vec!["a=b".to_owned(), format!("c=d;{pair}")],
        vec![format!("{NAME}=; {NAME}; {NAME}=forged.forged"), pair.clone()],
        vec![format!("=;;, ; {pair} ;")],
    ] {
        let cookies: Vec<_> = cookies.iter().map(String::as_str).collect();
        assert_eq!(keyring.read(&headers(&cookies), NOW), Some(token.clone()), "{cookies:?}");
    }
}

#[test]
fn of_two_sessions_the_first_counts() {
    let (keyring, first, second) = (new_key(), Token::new(NOW).unwrap(), Token::new(NOW).unwrap());
    let both = format!("{}; {}", keyring.pair(&first).unwrap(), keyring.pair(&second).unwrap());
    assert_eq!(keyring.read(&headers(&[&both]), NOW), Some(first));
}

#[test]
fn a_forged_truncated_or_foreign_cookie_is_none() {
    let (keyring, token) = (new_key(), Token::new(NOW).unwrap());
    let pair = keyring.pair(&token).unwrap();
    let other = keyring.pair(&Token::new(NOW).unwrap()).unwrap();
    let (_, other_mac) = other.split_once('.').unwrap();
    let foreign = keyring_of_another_shop().pair(&token).unwrap();
    for cookie in [
        String::new(),
        "; = ;".to_owned(),
        NAME.to_owned(),
        format!("{NAME}=."),
        format!("{NAME}={}", token.as_str()),
        format!("{NAME}={}.", token.as_str()),
        format!("{NAME}={}.{other_mac}", token.as_str()),
        pair.get(..pair.len() - 1).unwrap().to_owned(),
        format!("{pair}A"),
        format!("{pair}="),
        pair.replace(NAME, "session"),
        pair.replace(NAME, &NAME.to_lowercase()),
        format!("{NAME}={}", "A".repeat(100_000)),
        foreign,
    ] {
        assert_eq!(keyring.read(&headers(&[&cookie]), NOW), None, "{cookie}");
    }
    assert_eq!(keyring.read(&HeaderMap::new(), NOW), None);
}

fn keyring_of_another_shop() -> Keyring {
    keyring(&["somebody else's, of 32 characters"])
}

#[test]
fn keys_rotate() {
    let token = Token::new(NOW).unwrap();
    let (signed_before, signed_after) = (old_key().pair(&token).unwrap(), new_key().pair(&token).unwrap());
    assert_eq!(new_key().read(&headers(&[&signed_before]), NOW), Some(token.clone()));
    assert_eq!(new_key().read(&headers(&[&signed_after]), NOW), Some(token));
    assert_eq!(old_key().read(&headers(&[&signed_after]), NOW), None, "the first key signs");
}

// D7
#[test]
fn a_session_ends_at_its_maximum_age_without_asking_redis() {
    let (keyring, token) = (new_key(), Token::new(NOW).unwrap());
    let cookie = headers(&[&keyring.pair(&token).unwrap()]);
    let last = NOW + 90 * DAY - Duration::from_millis(1);
    assert_eq!(keyring.read(&cookie, last), Some(token));
    assert_eq!(keyring.read(&cookie, NOW + 90 * DAY), None);
}

#[test]
fn a_browser_is_told_to_guard_the_cookie_and_to_forget_it() {
    let token = Token::new(NOW).unwrap();
    let set = new_key().set(&token).unwrap();
    let (pair, attributes) = set.to_str().unwrap().split_once("; ").unwrap();
    assert_eq!(pair, new_key().pair(&token).unwrap());
    assert_eq!(attributes, "Max-Age=7776000; Path=/; HttpOnly; Secure; SameSite=Lax");
    assert!(set.is_sensitive());
    assert_eq!(clear(), format!("{NAME}=; Max-Age=0; {ATTRIBUTES}"));
}

#[test]
fn the_origin_gets_all_cookies_but_ours() {
    let strip = |cookies: &[&str]| strip(&headers(cookies)).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(strip(&[]), None);
    assert_eq!(strip(&["__Host-session=x"]), None);
    assert_eq!(strip(&["__Host-session", " ; "]), None);
    assert_eq!(strip(&["a=b; __Host-session=x.y;c=\"d e\""]).as_deref(), Some("a=b; c=\"d e\""));
    assert_eq!(strip(&["a=b", "__Host-session=x; c"]).as_deref(), Some("a=b; c"));
    assert_eq!(
        strip(&["__Host-session2=x; a__Host-session=y"]).as_deref(),
        Some("__Host-session2=x; a__Host-session=y")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_no_session_and_do_no_harm(lines: Vec<Vec<u8>>) {
        let headers: HeaderMap = lines
            .iter()
            .filter_map(|line| HeaderValue::from_bytes(line).ok())
            .map(|line| (header::COOKIE, line))
            .collect();
        prop_assert_eq!(new_key().read(&headers, NOW), None);
        let _ = strip(&headers);
    }

    #[test]
    fn one_changed_byte_breaks_a_cookie(place in 0..72_usize, byte in 0x21..0x7f_u8) {
        let token = Token::new(NOW).unwrap();
        let pair = new_key().pair(&token).unwrap();
        let mut changed = pair.clone().into_bytes();
        changed[NAME.len() + 1 + place] = byte;
        prop_assume!(changed != pair.as_bytes());
        let changed = String::from_utf8(changed).unwrap();
        prop_assert_eq!(new_key().read(&headers(&[&changed]), NOW), None);
    }
}
