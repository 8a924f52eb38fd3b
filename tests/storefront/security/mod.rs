//! What an attacker tries, by the requirements of OWASP's Application Security Verification Standard 5.0, which each test names. What else
//! proves them is listed in SECURITY.md.

/// V2.4, V6.3: anti-automation.
mod limits;
/// V2.3, V2.4: what moves the ranking.
mod views;
