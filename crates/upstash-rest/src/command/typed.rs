//! Commands that know the type of their reply.

use std::{fmt, fmt::Display, marker::PhantomData};

use super::Command;

/// A command whose reply is read as a `T`. The functions of [`cmd`](crate::cmd) make them, and so does
/// [`Command::reply_as`].
pub struct Typed<T> {
    command: Command,
    reply: PhantomData<fn() -> T>,
}

impl<T> Typed<T> {
    /// Adds an argument, such as an option (`NX`, `COUNT`).
    #[must_use]
    pub fn arg(self, argument: impl AsRef<[u8]>) -> Self {
        self.command.arg(argument).into()
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<A: AsRef<[u8]>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments).into()
    }

    /// Adds a number, or any value that is written as its text.
    #[must_use]
    pub fn num(self, number: impl Display + Copy) -> Self {
        self.command.num(number).into()
    }

    /// Declares that the command is idempotent, see [`Command::repeatable`].
    #[must_use]
    pub fn repeatable(self) -> Self {
        self.command.repeatable().into()
    }

    /// Declares the size of the reply in bytes, see [`Command::expecting`].
    #[must_use]
    pub fn expecting(self, bytes: usize) -> Self {
        self.command.expecting(bytes).into()
    }

    /// The same command with another type of reply: `cmd::get("n").reply_as::<Option<u64>>()`.
    #[must_use]
    pub fn reply_as<U>(self) -> Typed<U> {
        self.command.into()
    }
}

impl<T> From<Command> for Typed<T> {
    fn from(command: Command) -> Self {
        Self { command, reply: PhantomData }
    }
}

impl<T> From<Typed<T>> for Command {
    fn from(typed: Typed<T>) -> Self {
        typed.command
    }
}

impl<T> Clone for Typed<T> {
    fn clone(&self) -> Self {
        self.command.clone().into()
    }
}

impl<T> fmt::Debug for Typed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.command.fmt(f)
    }
}

/// Commands that are sent together, and the type `T` that their replies are read as.
///
/// A tuple of up to eight [`Typed`] commands gives a tuple, and an array or a vector of one type gives a vector. A list
/// of [`Command`]s is read as the type that the caller asks for.
pub trait CommandList<T> {
    /// The commands without their types.
    type Commands: AsRef<[Command]>;

    /// The commands, in order.
    fn into_commands(self) -> Self::Commands;
}

impl<'a, T> CommandList<T> for &'a [Command] {
    type Commands = &'a [Command];

    fn into_commands(self) -> Self::Commands {
        self
    }
}

impl<'a, T, const N: usize> CommandList<T> for &'a [Command; N] {
    type Commands = &'a [Command];

    fn into_commands(self) -> Self::Commands {
        self
    }
}

impl<'a, T> CommandList<T> for &'a Vec<Command> {
    type Commands = &'a [Command];

    fn into_commands(self) -> Self::Commands {
        self
    }
}

impl<T, const N: usize> CommandList<Vec<T>> for [Typed<T>; N] {
    type Commands = [Command; N];

    fn into_commands(self) -> Self::Commands {
        self.map(Command::from)
    }
}

impl<T> CommandList<Vec<T>> for Vec<Typed<T>> {
    type Commands = Vec<Command>;

    fn into_commands(self) -> Self::Commands {
        self.into_iter().map(Command::from).collect()
    }
}

macro_rules! tuple {
    ($length:literal, $($type:ident $field:tt),*) => {
        impl<$($type),*> CommandList<($($type,)*)> for ($(Typed<$type>,)*) {
            type Commands = [Command; $length];

            fn into_commands(self) -> Self::Commands {
                [$(self.$field.into()),*]
            }
        }
    };
}
tuple!(1, A 0);
tuple!(2, A 0, B 1);
tuple!(3, A 0, B 1, C 2);
tuple!(4, A 0, B 1, C 2, D 3);
tuple!(5, A 0, B 1, C 2, D 3, E 4);
tuple!(6, A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(7, A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(8, A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
