//! The kinds of visitors.

/// A kind of visitor, by the cookies that the visitor sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sends no cookies and keeps none.
    NoCookies,
    /// Sends analytics cookies and keeps no others.
    Analytics,
    /// A browser: keeps all cookies, and has analytics cookies. Has no basket and no account.
    Browsing,
    /// Has something in the basket, but no account.
    Basket,
    /// Is signed in and has something in the basket.
    SignedIn,
    /// Signs in before each round of pages, reads one page, and signs out.
    SignedOut,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::NoCookies, Self::Analytics, Self::Browsing, Self::Basket, Self::SignedIn, Self::SignedOut];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoCookies => "no cookies",
            Self::Analytics => "analytics cookies only",
            Self::Browsing => "browsing",
            Self::Basket => "with a basket",
            Self::SignedIn => "signed in",
            Self::SignedOut => "just signed out",
        }
    }

    /// Returns whether the visitor has nothing personal: product pages come from the store in any shop.
    pub fn has_nothing_personal(self) -> bool {
        matches!(self, Self::NoCookies | Self::Analytics)
    }

    /// Returns whether the client keeps the cookies that it gets.
    pub fn keeps_cookies(self) -> bool {
        matches!(self, Self::Browsing | Self::Basket | Self::SignedIn | Self::SignedOut)
    }
}
