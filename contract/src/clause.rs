//! The result of one check, and the report.

use std::fmt;

/// The result of the check of one clause.
pub enum Outcome {
    /// The evidence.
    Holds(String),
    Broken {
        cause: String,
        remedy: &'static str,
    },
    /// The options that the check needs, or why the clause does not apply.
    NotChecked(String),
}

impl Outcome {
    pub fn holds(evidence: impl Into<String>) -> Self {
        Self::Holds(evidence.into())
    }

    pub fn broken(cause: impl Into<String>, remedy: &'static str) -> Self {
        Self::Broken { cause: cause.into(), remedy }
    }

    pub fn not_checked(reason: impl Into<String>) -> Self {
        Self::NotChecked(reason.into())
    }
}

/// All clauses that were looked at, in order.
#[derive(Default)]
pub struct Report {
    lines: Vec<(&'static str, Outcome)>,
}

impl Report {
    pub fn add(&mut self, clause: &'static str, outcome: Outcome) {
        self.lines.push((clause, outcome));
    }

    pub fn is_broken(&self) -> bool {
        self.lines.iter().any(|(_, outcome)| matches!(outcome, Outcome::Broken { .. }))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut holding, mut broken, mut unchecked) = (0_u32, 0_u32, 0_u32);
        for (clause, outcome) in &self.lines {
            match outcome {
                Outcome::Holds(evidence) => {
                    holding += 1;
                    writeln!(f, "holds        {clause:<18} {evidence}")?;
                }
                Outcome::Broken { cause, remedy } => {
                    broken += 1;
                    writeln!(f, "BROKEN       {clause:<18} {cause}\n{:32}{remedy}", "")?;
                }
                Outcome::NotChecked(reason) => {
                    unchecked += 1;
                    writeln!(f, "not checked  {clause:<18} {reason}")?;
                }
            }
        }
        write!(f, "{holding} hold, {broken} broken, {unchecked} not checked")
    }
}
