//! Bytes in the platform's memory. In a Worker, that is the memory of JavaScript: a response takes the bytes from there
//! without a copy. The memory of wasm, which never shrinks, stays small.

use std::{any::Any, fmt, rc::Rc};

use bytes::Bytes;

/// Bytes in the platform's memory.
pub trait HeldBytes {
    /// The number of bytes.
    fn size(&self) -> usize;

    /// A copy of the bytes.
    fn read(&self) -> Bytes;

    /// The implementing type, for the module that defines it.
    fn as_any(&self) -> &dyn Any;
}

/// Bytes in the memory of this program, or in that of the platform. A clone shares them.
#[derive(Clone)]
pub enum Content {
    Here(Bytes),
    Held(Rc<dyn HeldBytes>),
}

impl Content {
    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::Held(held) => held.size(),
        }
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes; a copy if the platform holds them.
    #[must_use]
    pub fn read(&self) -> Bytes {
        match self {
            Self::Here(bytes) => bytes.clone(),
            Self::Held(held) => held.read(),
        }
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Held(held), Self::Held(other)) if Rc::ptr_eq(held, other) => true,
            _ => self.len() == other.len() && self.read() == other.read(),
        }
    }
}

impl Eq for Content {}

impl Default for Content {
    fn default() -> Self {
        Self::Here(Bytes::new())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.len())
    }
}

impl<B: Into<Bytes>> From<B> for Content {
    fn from(bytes: B) -> Self {
        Self::Here(bytes.into())
    }
}
