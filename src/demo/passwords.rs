//! Passwords: which ones are strong enough, and how they are hashed.
//!
//! The hash is Argon2id with 7 MiB, 5 passes and 1 lane. OWASP's Password Storage Cheat Sheet lists several settings as
//! equally strong; this one needs the least memory, because all requests of an isolate share its 128 MB. Measured alone
//! in workerd (CPU time of one hash, optimised, on a shared Intel Xeon): m=7168 t=5, m=12288 t=3 and m=19456 t=2 take
//! 60 ms each, within the noise. Argon2 is 15 KB of the Worker's 672 KB of gzipped wasm.
//!
//! The platform's own PBKDF2 takes 23 ms for 100,000 iterations. Cloudflare allows no more, and OWASP requires 600,000.
//! A graphics card also computes PBKDF2 in parallel, which Argon2's memory prevents.
//!
//! Neither fits the 10 ms of CPU that the Free plan allows a request, so signing in with the demo's accounts needs the
//! Paid plan (30 s by default). No other part of edgefront hashes passwords: signing in by `Edge-Login` from an origin
//! does not.

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{self, PasswordHasher, PasswordVerifier, phc::PasswordHash},
};

use crate::ports::{error::Error, random};

/// Minimum length in characters: NIST SP 800-63B-4, §3.1.1.2, for a password that is the only factor. No rule asks for
/// digits or symbols: they make passwords harder to remember, not harder to guess.
const MIN_CHARACTERS: usize = 15;
/// Maximum length in bytes: far more than the 64 characters that NIST requires, and a bound on the work of hashing.
const MAX_BYTES: usize = 512;
/// The rule, shown beside the field.
pub(super) const RULE: &str = "At least 15 characters, for example four unrelated words.";

/// Passwords of at least 15 characters from `SecLists` (10 million passwords) that are neither a repetition nor a
/// keyboard run.
const COMMON: [&str; 14] = [
    "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb",
    "1qaz2wsx3edc4rfv",
    "q1w2e3r4t5y6u7i8o9p0",
    "correcthorsebatterystaple",
    "thisisapassword",
    "iloveyouforever",
    "letmeinplease123",
    "passwordpassword1",
    "administrator1234",
    "supercalifragilisticexpialidocious",
    "trustno1trustno1!",
    "welcome123456789",
    "password123456789",
];

/// Keyboard rows and sequences. A password that is part of one, forwards or backwards, is too easy to guess.
const RUNS: [&str; 4] =
    ["12345678901234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm"];

/// The reason why a new password of the user with this `email` and `name` is too weak, as a message for the visitor;
/// None if it is strong enough.
pub(super) fn problem(password: &str, email: &str, name: &str) -> Option<&'static str> {
    if password.chars().count() < MIN_CHARACTERS {
        return Some("This password is too short. Please use at least 15 characters.");
    }
    if password.len() > MAX_BYTES {
        return Some("This password is too long. Please use a shorter one.");
    }
    let plain: String = password.to_ascii_lowercase().chars().filter(|character| !character.is_whitespace()).collect();
    let is_mostly = |personal: &str| {
        !plain.is_empty()
            && personal.len() > 3
            && plain.replace(&personal.to_ascii_lowercase().replace(' ', ""), "").len() < 5
    };
    let mailbox = email.split('@').next().unwrap_or_default();
    if [email, name, mailbox].into_iter().any(is_mostly) {
        return Some("This password is your name or email. Please choose one that is harder to guess.");
    }
    let is_common = COMMON.iter().any(|common| common.replace(' ', "") == plain);
    (is_common || is_repetition(&plain) || is_run(&plain))
        .then_some("This password is too common. Please choose one that is harder to guess.")
}

/// True if `text` repeats a part of at most 8 characters: `passwordpassword`, `123123123123123`.
fn is_repetition(text: &str) -> bool {
    let characters: Vec<_> = text.chars().collect();
    (1..=8).any(|period| characters.iter().zip(characters.iter().skip(period)).all(|(one, next)| one == next))
}

/// True if `text` is part of one of the [`RUNS`], forwards or backwards.
fn is_run(text: &str) -> bool {
    let backwards: String = text.chars().rev().collect();
    RUNS.iter().any(|run| run.contains(text) || run.contains(&backwards))
}

/// Hashes a password with a random salt, to a PHC string.
///
/// # Errors
/// [`Error::Platform`] if the platform has no random bits or no memory.
pub(super) fn hash(password: &str) -> Result<String, Error> {
    let salt = random::bytes::<16>()?;
    let hash: PasswordHash = argon()?.hash_password_with_salt(password.as_bytes(), &salt).map_err(|e| failed(&e))?;
    Ok(hash.to_string())
}

/// True if `password` matches `stored_hash`. An unknown user has no hash (None): the answer is false after the same
/// work, so the response time does not reveal which accounts exist.
///
/// # Errors
/// [`Error::Platform`] if the stored hash is malformed, or there is no memory.
pub(super) fn verify(password: &str, stored_hash: Option<&str>) -> Result<bool, Error> {
    if password.len() > MAX_BYTES {
        return Ok(false);
    }
    let Some(stored_hash) = stored_hash else {
        let discarded: Result<PasswordHash, _> = argon()?.hash_password_with_salt(password.as_bytes(), &[0; 16]);
        return discarded.map(|_| false).map_err(|error| failed(&error));
    };
    let stored_hash = PasswordHash::new(stored_hash)
        .map_err(|_| Error::Platform("the stored password hash is malformed".to_owned()))?;
    // Uses the parameters in the stored hash, and compares in constant time.
    match argon()?.verify_password(password.as_bytes(), &stored_hash) {
        Ok(()) => Ok(true),
        Err(password_hash::Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(failed(&error)),
    }
}

fn argon() -> Result<Argon2<'static>, Error> {
    let params = Params::new(7168, 5, 1, None).map_err(|error| Error::Platform(format!("argon2: {error}")))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn failed(error: &password_hash::Error) -> Error {
    Error::Platform(format!("argon2: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_names_its_parameters_and_matches_only_its_password() {
        let stored = hash("four unrelated words here").unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=7168,t=5,p=1$"), "{stored}");
        assert_eq!(verify("four unrelated words here", Some(&stored)), Ok(true));
        assert_eq!(verify("four unrelated words there", Some(&stored)), Ok(false));
        assert_ne!(hash("four unrelated words here").unwrap(), stored, "each hash has its own salt");
        assert_eq!(verify("four unrelated words here", None), Ok(false));
        assert!(verify("four unrelated words here", Some("plain text")).is_err());
    }

    /// A hash by the reference implementation (`argon2 -id`): stored hashes are portable.
    #[test]
    fn a_hash_with_other_parameters_is_accepted() {
        let stored = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert_eq!(verify("password", Some(stored)), Ok(true));
        assert_eq!(verify("passwore", Some(stored)), Ok(false));
    }

    #[test]
    fn an_overlong_password_is_rejected_without_hashing() {
        assert_eq!(verify(&"a".repeat(MAX_BYTES + 1), None), Ok(false));
        assert!(problem(&"abcdefghij klmno".repeat(40), "", "").is_some());
    }

    #[test]
    fn a_password_must_be_long_and_hard_to_guess() {
        let problem = |password| problem(password, "ada.lovelace@example.org", "Ada King Lovelace");
        for good in ["four unrelated words", "ünïcödé ist auch gut", "K7#p-9vTq2!mZ4xW"] {
            assert_eq!(problem(good), None, "{good}");
        }
        for bad in [
            "short",
            "fourteen chars",
            "aaaaaaaaaaaaaaaa",
            "passwordpassword",
            "123123123123123",
            "123456789012345",
            "abcdefghijklmnop",
            "QwertyUiopAsdfgh",
            "ada.lovelace@example.org",
            "Ada King Lovelace 1",
            "correct horse battery staple",
            "long walk long walk long walk",
            "               x",
        ] {
            assert!(problem(bad).is_some(), "{bad}");
        }
    }
}
