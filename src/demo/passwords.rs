//! Passwords: which are good enough, and how they are kept.
//!
//! They are hashed by Argon2id with 7 MiB, 5 passes and 1 lane: of the settings that OWASP's Password Storage Cheat Sheet counts as
//! equally strong, the one with the least memory, since an isolate's 128 MB hold all of its requests. Measured alone in workerd (CPU time
//! of one hash, optimised, on a shared Intel Xeon): m=7168 t=5, m=12288 t=3 and m=19456 t=2 take 60 ms each, within the noise. It is
//! 15 KB of the Worker's 672 KB of gzipped wasm. The platform's own PBKDF2 takes 23 ms for 100,000 iterations, which is all that
//! Cloudflare allows, and a sixth of the 600,000 that OWASP asks for; a graphics card runs it in parallel, which Argon2's memory
//! prevents.
//!
//! Neither fits the 10 ms of CPU that the Free plan gives a request: a shop that lets people sign in with the demo's
//! accounts needs the Paid plan (30 s by default). Everything else of edgefront, signing in by `Edge-Login` from an origin too, does not hash.

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{self, PasswordHasher, PasswordVerifier, phc::PasswordHash},
};

use crate::ports::{error::Error, random};

/// Characters of a password at least: NIST SP 800-63B-4, §3.1.1.2, for a password that is the only factor. There is no rule
/// about kinds of characters: they make passwords harder to remember, not to guess.
const SHORTEST: usize = 15;
/// Bytes at most: far more than the 64 characters that NIST wants to be possible, and no work for who sends megabytes.
const LONGEST: usize = 512;
/// The rule, as a visitor reads it before typing.
pub(super) const RULE: &str = "At least 15 characters. Four words that have nothing to do with each other are fine.";

/// Those of the well-known lists (`SecLists`, 10 million passwords) that have 15 characters or more and are no repetition or row of keys.
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

/// Rows and runs that fingers type by themselves, both ways.
const RUNS: [&str; 4] =
    ["12345678901234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm"];

/// Says what is wrong with a new password of whoever has this `mail` and `name`; None if it is good.
pub(super) fn problem(password: &str, mail: &str, name: &str) -> Option<&'static str> {
    if password.chars().count() < SHORTEST {
        return Some("At least 15 characters, please: a few words will do.");
    }
    if password.len() > LONGEST {
        return Some("At most 512 bytes, please.");
    }
    let plain: String = password.to_ascii_lowercase().chars().filter(|character| !character.is_whitespace()).collect();
    let own = |known: &str| {
        !plain.is_empty()
            && known.len() > 3
            && plain.replace(&known.to_ascii_lowercase().replace(' ', ""), "").len() < 5
    };
    let name_of_mail = mail.split('@').next().unwrap_or_default();
    if [mail, name, name_of_mail].into_iter().any(own) {
        return Some("This is your own name or address: everybody who knows you would try it.");
    }
    let is_common = COMMON.iter().any(|common| common.replace(' ', "") == plain);
    (is_common || is_repetition(&plain) || is_run(&plain)).then_some("This is one of the first that anybody would try.")
}

/// Returns whether it is one short piece again and again: `passwordpassword`, `123123123123123`.
fn is_repetition(text: &str) -> bool {
    let characters: Vec<_> = text.chars().collect();
    (1..=8).any(|period| characters.iter().zip(characters.iter().skip(period)).all(|(one, next)| one == next))
}

/// Returns whether it is part of one of [`RUNS`].
fn is_run(text: &str) -> bool {
    let backwards: String = text.chars().rev().collect();
    RUNS.iter().any(|run| run.contains(text) || run.contains(&backwards))
}

/// The hash to keep, as a PHC string.
///
/// # Errors
/// [`Error::Platform`] if there are no random bits, or no memory.
pub(super) fn hash(password: &str) -> Result<String, Error> {
    let salt = random::bytes::<16>()?;
    let hash: PasswordHash = argon()?.hash_password_with_salt(password.as_bytes(), &salt).map_err(|e| failed(&e))?;
    Ok(hash.to_string())
}

/// Returns whether `password` is the one that was `kept`. With None, for a user that there is not, it is not, and to say so takes as long: the
/// time does not tell who has an account.
///
/// # Errors
/// [`Error::Platform`] if what was kept is no hash, or there is no memory.
pub(super) fn is_right(password: &str, kept: Option<&str>) -> Result<bool, Error> {
    if password.len() > LONGEST {
        return Ok(false);
    }
    let Some(kept) = kept else {
        let wasted: Result<PasswordHash, _> = argon()?.hash_password_with_salt(password.as_bytes(), &[0; 16]);
        return wasted.map(|_| false).map_err(|error| failed(&error));
    };
    let kept = PasswordHash::new(kept).map_err(|_| Error::Platform("what is kept is no hash".to_owned()))?;
    // By the costs that stand in it, and in constant time.
    match argon()?.verify_password(password.as_bytes(), &kept) {
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
    fn a_hash_names_its_costs_and_knows_its_password() {
        let kept = hash("four unrelated words here").unwrap();
        assert!(kept.starts_with("$argon2id$v=19$m=7168,t=5,p=1$"), "{kept}");
        assert_eq!(is_right("four unrelated words here", Some(&kept)), Ok(true));
        assert_eq!(is_right("four unrelated words there", Some(&kept)), Ok(false));
        assert_ne!(hash("four unrelated words here").unwrap(), kept, "each has a salt of its own");
        assert_eq!(is_right("four unrelated words here", None), Ok(false));
        assert!(is_right("four unrelated words here", Some("plain text")).is_err());
    }

    /// The vector of another implementation (the reference one, `argon2 -id`): what is kept can be taken elsewhere.
    #[test]
    fn a_hash_of_other_costs_still_counts() {
        let kept = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert_eq!(is_right("password", Some(kept)), Ok(true));
        assert_eq!(is_right("passwore", Some(kept)), Ok(false));
    }

    #[test]
    fn nobody_hashes_megabytes() {
        assert_eq!(is_right(&"a".repeat(LONGEST + 1), None), Ok(false));
        assert!(problem(&"abcdefghij klmno".repeat(40), "", "").is_some());
    }

    #[test]
    fn a_password_is_long_and_not_the_first_guess() {
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
