//! Login tokens: check, touch, log in, log out.
