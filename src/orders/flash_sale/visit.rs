//! A visitor at a flash sale: looks at it, and takes a piece.

use serde::Deserialize;

use super::{FlashSale, GRACE, KEEP, Reservation, ReservationId, buyer::Buyer, reservation};
use crate::schema::scripts::FLASH;
use crate::{
    config::Config,
    ports::{
        error::{Error, Refusal},
        time::Timestamp,
    },
    row_cache::{self, RowSource, Schedule},
    schema::{ids::RowId, keys::Keys, token::Token},
    upstash::{self, Command, FromReply, Redis, Reply},
};

/// A sale, with the piece that is the visitor's now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReserveOutcome {
    pub sale: FlashSale,
    pub reservation: Reservation,
    /// It was taken just now, and not found.
    pub created: bool,
}

/// The sale, as the visitor of `token` finds it.
///
/// One script; a scheduled row without a copy is loaded first, as [`row_cache::read`] does it.
///
/// # Errors
/// [`Error::NotFound`] if the row is not scheduled or is no flash sale, [`Error::NotYet`] if it is being loaded or its source
/// fails, [`Error::Redis`].
pub async fn look(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    sale: &RowId,
    token: Option<&Token>,
    now: Timestamp,
    config: &Config,
) -> Result<FlashSale, Error> {
    let who = Buyer::find(redis, token, now, &config.session).await?;
    let ask = command(redis.keys(), "look", sale, &who, now, "", config);
    find(redis, source, sale, now, &[ask]).await?.sale(now)
}

/// Holds a piece for the visitor, or finds the one that is held for them already.
///
/// One script, since what it takes depends on all that it reads. It may be sent twice: the second time it finds what the first
/// one took.
///
/// # Errors
/// [`Error::NotSignedIn`] without a user's session, [`Error::Refused`] if there is no piece for them; else as [`look`].
pub async fn reserve(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    sale: &RowId,
    token: &Token,
    now: Timestamp,
    config: &Config,
) -> Result<ReserveOutcome, Error> {
    let random = reservation::draw()?;
    let (keys, who) = (redis.keys(), Buyer::find(redis, Some(token), now, &config.session).await?);
    let ask = command(keys, "reserve", sale, &who, now, &random, config);
    let ask: Vec<_> = [ask].into_iter().chain(who.seen(keys, now)).collect();
    let found = find(redis, source, sale, now, &ask).await?;
    match found.outcome.as_str() {
        "nobody" => return Err(Error::NotSignedIn),
        "already-bought" => return Err(Refusal::AlreadyBought.into()),
        "not-started" => return Err(Refusal::NotStarted.into()),
        "ended" => return Err(Refusal::Ended.into()),
        "sold-out" => return Err(Refusal::SoldOut.into()),
        _ => {}
    }
    let sale = found.sale(now)?;
    let reservation = sale.reservation.clone().ok_or(upstash::Error::UnexpectedType)?;
    let created = reservation.id.is_of(&random);
    Ok(ReserveOutcome { sale, reservation, created })
}

fn command(
    layout: Keys,
    operation: &str,
    sale: &RowId,
    who: &Buyer<'_>,
    now: Timestamp,
    random: &str,
    config: &Config,
) -> Command {
    let keys = [layout.schedule(), layout.delay(), layout.row(sale), layout.flash_sale(sale), layout.holds(sale)];
    let keep = config.flash.hold + GRACE + KEEP;
    Command::script(&FLASH, keys.into_iter().chain(who.keys(layout)))
        .args([operation, who.name()])
        .num(now - config.session.idle)
        .arg(sale.as_str())
        .num(now)
        .num(now - GRACE)
        .num(now + config.flash.hold)
        .arg(random)
        .num(keep.as_secs())
        .repeatable()
}

/// Asks by the first of the commands; and, if the row is scheduled and has no copy, loads it and asks once more.
async fn find(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    sale: &RowId,
    now: Timestamp,
    ask: &[Command],
) -> Result<Found, Error> {
    let found = first(redis, ask).await?;
    if found.outcome != "no-copy" {
        return Ok(found);
    }
    row_cache::read(redis, source, sale, now).await?;
    first(redis, ask).await
}

async fn first(redis: &Redis, commands: &[Command]) -> Result<Found, Error> {
    let reply = redis.pipeline(commands).await?.into_iter().next();
    Ok(Found::from_reply(reply.ok_or(upstash::Error::UnexpectedType)??)?)
}

/// The script's answer.
#[derive(Deserialize)]
struct Found {
    outcome: String,
    id: Option<String>,
    until: Option<f64>,
    /// None if there is no such sale.
    #[serde(flatten)]
    sale: Option<Terms>,
}

#[derive(Deserialize)]
struct Terms {
    /// Of the row's refresh, Unix seconds, and its period in seconds.
    due: f64,
    every: f64,
    /// Unix seconds.
    starts: u64,
    ends: u64,
    pieces: u64,
    left: u64,
    held: u64,
    price_cents: Option<i64>,
    list_cents: Option<i64>,
    bought: bool,
}

impl FromReply for Found {
    fn from_reply(reply: Reply) -> Result<Self, upstash::Error> {
        serde_json::from_str(&String::from_reply(reply)?).map_err(|_| upstash::Error::UnexpectedType)
    }
}

impl Found {
    fn reservation(&self) -> Result<Option<Reservation>, upstash::Error> {
        let (Some(id), Some(until)) = (&self.id, self.until) else { return Ok(None) };
        let id = ReservationId::parse(id).ok_or(upstash::Error::UnexpectedType)?;
        Ok(Some(Reservation { id, until: Timestamp::from_score(until) }))
    }

    fn sale(self, now: Timestamp) -> Result<FlashSale, Error> {
        let reservation = self.reservation()?;
        let Some(terms) = self.sale else {
            let is_loading = self.outcome == "no-copy";
            return Err(if is_loading { Error::NotYet("row") } else { Error::NotFound("flash sale") });
        };
        let schedule = Schedule::new(Some(terms.every), Some(terms.due));
        Ok(FlashSale {
            starts: seconds(terms.starts),
            ends: seconds(terms.ends),
            pieces: terms.pieces,
            left: terms.left,
            held: terms.held,
            price_cents: terms.price_cents,
            list_cents: terms.list_cents,
            reservation,
            bought: terms.bought,
            overdue: schedule.is_some_and(|schedule| schedule.is_overdue(now)),
        })
    }
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1000))
}
