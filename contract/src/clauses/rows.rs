//! The rows of `ROWS_URL`.

use edgefront::schema::ids::id_text;
use http::{Method, StatusCode};
use serde_json::{Map, Value};
use xtask::failure::Failure;

use crate::{
    arguments::ContractArguments,
    clause::{Outcome, Report},
    origin::{Answer, Origin, Visitor},
};

/// An id that no row has.
const NO_ROW: &str = "contract-no-such-row";

pub(super) async fn check(arguments: &ContractArguments, origin: &Origin, report: &mut Report) -> Result<(), Failure> {
    let (Some(path), Some(row)) = (&arguments.rows, &arguments.row) else {
        report.add("rows", Outcome::not_checked("needs --rows and --row"));
        return Ok(());
    };
    let separator = if path.contains('?') { '&' } else { '?' };
    let call = |ids: &str| {
        let path = format!("{path}{separator}ids={ids}");
        origin
            .call(Method::GET, &path, Visitor::None)
            .header("edge-session", None)
            .header("accept", Some("application/json"))
    };
    report.add("rows", judge(&call(row.as_str()).send().await?, &[row.as_str()]));
    report.add("rows-missing", judge_missing(&call(&format!("{NO_ROW},{row}")).send().await?, row.as_str()));
    let forged = call(row.as_str()).header("edge-key", None).send().await?;
    report.add(
        "rows-key",
        if forged.is_refused() {
            Outcome::holds(format!("rows without the key get {}", forged.status))
        } else {
            Outcome::broken(format!("rows without the key get {}", forged.status), "refuse requests without Edge-Key")
        },
    );
    Ok(())
}

/// The ids of a response, as edgefront reads them.
fn ids(answer: &Answer) -> Result<Vec<String>, String> {
    if answer.status != StatusCode::OK {
        return Err(format!("status {}", answer.status));
    }
    let rows: Vec<Map<String, Value>> =
        serde_json::from_str(&answer.body).map_err(|_| "a body that is not a JSON list of objects".to_owned())?;
    let id = |row: &Map<String, Value>| {
        id_text("id", row.get("id").unwrap_or(&Value::Null)).map(std::borrow::Cow::into_owned)
    };
    rows.iter().map(|row| id(row).map_err(|error| format!("a row without a valid id: {error}"))).collect()
}

fn judge(answer: &Answer, expected: &[&str]) -> Outcome {
    match ids(answer) {
        Ok(ids) if ids == expected => Outcome::holds(format!("a JSON list with the row {}", expected.concat())),
        Ok(ids) => Outcome::broken(format!("rows {ids:?} instead of {expected:?}"), "send the requested rows only"),
        Err(error) => Outcome::broken(error, "answer 200 with a JSON list of objects, each with its id"),
    }
}

fn judge_missing(answer: &Answer, row: &str) -> Outcome {
    match judge(answer, &[row]) {
        Outcome::Holds(_) => Outcome::holds("a missing row is left out"),
        Outcome::Broken { cause, .. } => {
            Outcome::broken(format!("with a missing row: {cause}"), "leave a missing row out, and send the others")
        }
        outcome @ Outcome::NotChecked(_) => outcome,
    }
}
