//! Concurrent calls. Redis executes them in any order; the assertions hold in every order.

use std::time::Duration;

use edgefront::{orders::flash_sale::GRACE, ports::error::Error, schema::token::Token};
use futures_util::future::join_all;
use serde_json::json;

use super::{HOLD, Sale};

const CROWD: usize = 20;

async fn crowd(sale: &Sale) -> Vec<Token> {
    let mut tokens = Vec::new();
    for buyer in 0..CROWD {
        tokens.push(sale.log_in(&format!("buyer-{buyer}")).await);
    }
    tokens
}

/// Returns the number of users in the crowd that got a piece.
async fn reserve_all(sale: &Sale, tokens: &[Token]) -> usize {
    let results = join_all(tokens.iter().map(|token| sale.reserve(token))).await;
    results.into_iter().flatten().count()
}

#[tokio::test]
async fn a_crowd_reserves_exactly_the_pieces_of_the_sale() {
    let sale = Sale::of(7).await;
    let tokens = crowd(&sale).await;
    assert_eq!(reserve_all(&sale, &tokens).await, 7);
    assert_eq!((sale.counts().await, sale.stored_reservations().await), ((0, 7), json!(7)));
}

#[tokio::test]
async fn concurrent_attempts_of_one_user_get_one_piece() {
    let sale = Sale::of(7).await;
    let mut tokens = Vec::new();
    for _ in 0..CROWD {
        tokens.push(sale.log_in("ada").await);
    }
    let results = join_all(tokens.iter().map(|token| sale.reserve(token))).await;
    let reserved: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    assert_eq!(reserved.iter().filter(|one| one.created).count(), 1);
    assert!(reserved.iter().all(|one| one.reservation == reserved[0].reservation));
    assert_eq!(sale.counts().await, (6, 1));
}

#[tokio::test]
async fn an_expired_reservation_goes_to_one_of_the_waiting_users() {
    let sale = Sale::of(1).await;
    let tokens = crowd(&sale).await;
    sale.reserve(&sale.log_in("ada").await).await.unwrap();
    sale.advance(HOLD + GRACE);
    assert_eq!(reserve_all(&sale, &tokens).await, 1);
    assert_eq!((sale.counts().await, sale.stored_reservations().await), ((0, 1), json!(1)));
}

#[tokio::test]
async fn cancelling_while_it_expires_returns_one_piece() {
    for before_the_end in [Duration::from_millis(1), Duration::ZERO] {
        let sale = Sale::of(1).await;
        let tokens = crowd(&sale).await;
        let ada = sale.log_in("ada").await;
        let held = sale.reserve(&ada).await.unwrap().reservation;
        sale.advance((HOLD + GRACE).saturating_sub(before_the_end));

        let (got, ..) = tokio::join!(
            reserve_all(&sale, &tokens),
            join_all((0..5).map(|_| sale.cancel(&ada, &held.id))),
            join_all((0..5).map(|_| sale.read(None))),
        );

        // Before the expiry, calls that Redis executes before the cancellation get no piece.
        assert!(got <= 1, "{got} pieces of one");
        assert!(before_the_end > Duration::ZERO || got == 1);
        assert_eq!(sale.counts().await, (1 - got as u64, got as u64));
    }
}

#[tokio::test]
async fn of_concurrent_cancellations_one_succeeds() {
    let sale = Sale::of(2).await;
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    let results = join_all((0..CROWD).map(|_| sale.cancel(&ada, &held.id))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(Error::NotFound("reservation")))));
    assert_eq!(sale.counts().await, (2, 0));
}

#[tokio::test]
async fn concurrent_reports_of_one_order_count_it_once() {
    let sale = Sale::of(5).await;
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    let report = async || sale.confirm(&held.id, "ada", "order-1").await;
    tokio::join!(join_all((0..CROWD).map(|_| report())), async {
        let _ = sale.cancel(&ada, &held.id).await;
    });
    assert_eq!(sale.counts().await, (4, 0));
    assert!(sale.read(Some(&ada)).await.unwrap().bought);
}
