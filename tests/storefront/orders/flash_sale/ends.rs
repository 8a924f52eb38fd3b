//! The end of a reservation: it expires, its user cancels it, or an order confirms it.

use edgefront::{
    orders::flash_sale::{GRACE, ReservationId},
    ports::error::{Error, Refusal},
};
use serde_json::json;

use super::{HOLD, MOMENT, Sale, refused};

#[tokio::test]
async fn the_piece_of_an_expired_reservation_returns_once() {
    let sale = Sale::of(1).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let held = sale.reserve(&ada).await.unwrap().reservation;
    assert_eq!(sale.reserve(&bob).await, refused(Refusal::SoldOut));

    sale.advance(HOLD.saturating_sub(MOMENT));
    assert_eq!(sale.read(Some(&ada)).await.unwrap().reservation, Some(held.clone()));
    sale.advance(MOMENT);
    // The visitor no longer sees the reservation. The grace period still covers a payment.
    assert_eq!(sale.read(Some(&ada)).await.unwrap().reservation, None);
    assert_eq!(sale.counts().await, (0, 1));
    assert_eq!(sale.reserve(&bob).await, refused(Refusal::SoldOut));
    assert_eq!(sale.reserve(&ada).await, refused(Refusal::SoldOut), "its holder has no priority");
    sale.advance(GRACE);

    assert_eq!(sale.counts().await, (1, 0));
    assert_eq!(sale.cancel(&ada, &held.id).await, Err(Error::NotFound("reservation")));
    assert_eq!(sale.counts().await, (1, 0));
    assert!(sale.reserve(&bob).await.unwrap().created);
    assert_eq!(sale.cancel(&ada, &held.id).await, Err(Error::NotFound("reservation")));
    assert_eq!((sale.counts().await, sale.stored_reservations().await), ((0, 1), json!(1)));
}

#[tokio::test]
async fn a_user_with_an_expired_reservation_can_reserve_another_piece() {
    let sale = Sale::of(2).await;
    let ada = sale.log_in("ada").await;
    let first = sale.reserve(&ada).await.unwrap().reservation;
    sale.advance(HOLD);
    let second = sale.reserve(&ada).await.unwrap();
    assert!(second.created);
    assert_ne!(second.reservation.id, first.id);
    assert_eq!((second.sale.left, second.sale.held), (1, 1), "the new reservation replaces the old one");
    assert_eq!(sale.cancel(&ada, &first.id).await, Err(Error::NotFound("reservation")));
    sale.cancel(&ada, &second.reservation.id).await.unwrap();
    assert_eq!(sale.counts().await, (2, 0));
}

#[tokio::test]
async fn a_reservation_is_cancelled_once_and_only_by_its_user() {
    let sale = Sale::of(1).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let held = sale.reserve(&ada).await.unwrap().reservation;
    let unknown = Err(Error::NotFound("reservation"));
    assert_eq!(sale.cancel(&bob, &held.id).await, unknown);
    let guessed = format!("{}A", &held.id.as_str()[..held.id.as_str().len() - 1]);
    if let Some(guessed) = ReservationId::parse(&guessed).filter(|guessed| *guessed != held.id) {
        assert_eq!(sale.cancel(&ada, &guessed).await, unknown);
    }
    assert_eq!(sale.counts().await, (0, 1));

    assert_eq!(sale.cancel(&ada, &held.id).await, Ok(()));

    assert_eq!(sale.cancel(&ada, &held.id).await, unknown);
    assert_eq!(sale.counts().await, (1, 0));
    assert!(sale.reserve(&bob).await.unwrap().created);
    assert_eq!(sale.cancel(&ada, &held.id).await, unknown);
    assert_eq!(sale.counts().await, (0, 1));
}

#[tokio::test]
async fn an_order_is_counted_once_and_its_user_can_reserve_no_other_piece() {
    let sale = Sale::of(3).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let held = sale.reserve(&ada).await.unwrap().reservation;
    for _ in 0..3 {
        sale.confirm(&held.id, "ada", "order-1").await;
    }
    assert_eq!(sale.counts().await, (2, 0));
    let found = sale.read(Some(&ada)).await.unwrap();
    assert!(found.bought && found.reservation.is_none());
    assert!(!sale.read(Some(&bob)).await.unwrap().bought);
    assert_eq!(sale.reserve(&ada).await, refused(Refusal::AlreadyBought));
    assert_eq!(sale.cancel(&ada, &held.id).await, Err(Error::NotFound("reservation")));
    sale.confirm(&held.id, "ada", "order-2").await;
    assert_eq!(sale.counts().await, (1, 0), "the shop sold the user a second piece");
}

#[tokio::test]
async fn an_order_counts_even_if_its_reservation_has_expired() {
    let sale = Sale::of(1).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let held = sale.reserve(&ada).await.unwrap().reservation;
    sale.advance(HOLD + GRACE);
    let bobs = sale.reserve(&bob).await.unwrap().reservation;
    sale.confirm(&held.id, "ada", "order-1").await;
    assert_eq!(sale.counts().await, (0, 1));
    assert!(sale.read(Some(&ada)).await.unwrap().bought);
    assert_eq!(
        sale.read(Some(&bob)).await.unwrap().reservation,
        Some(bobs.clone()),
        "only the database can refuse bob"
    );
    sale.cancel(&bob, &bobs.id).await.unwrap();
    assert_eq!(sale.counts().await, (0, 0));
}
