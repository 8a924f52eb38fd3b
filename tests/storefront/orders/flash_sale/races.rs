//! Two or more at once. The order in which Redis takes them is its own; what must hold holds in every one.

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

/// How many of the crowd got a piece.
async fn reserve_all(sale: &Sale, tokens: &[Token]) -> usize {
    let results = join_all(tokens.iter().map(|token| sale.reserve(token))).await;
    results.into_iter().flatten().count()
}

#[tokio::test]
async fn a_crowd_takes_what_there_is() {
    let sale = Sale::of(7).await;
    let tokens = crowd(&sale).await;
    assert_eq!(reserve_all(&sale, &tokens).await, 7);
    assert_eq!((sale.counts().await, sale.stored().await), ((0, 7), json!(7)));
}

#[tokio::test]
async fn one_user_who_tries_from_everywhere_gets_one() {
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
async fn a_piece_that_comes_back_goes_to_one_of_those_who_wait() {
    let sale = Sale::of(1).await;
    let tokens = crowd(&sale).await;
    sale.reserve(&sale.log_in("ada").await).await.unwrap();
    sale.advance(HOLD + GRACE);
    assert_eq!(reserve_all(&sale, &tokens).await, 1);
    assert_eq!((sale.counts().await, sale.stored().await), ((0, 1), json!(1)));
}

#[tokio::test]
async fn giving_back_and_running_out_at_once_return_one_piece() {
    for before_the_end in [Duration::from_millis(1), Duration::ZERO] {
        let sale = Sale::of(1).await;
        let tokens = crowd(&sale).await;
        let ada = sale.log_in("ada").await;
        let held = sale.reserve(&ada).await.unwrap().reservation;
        sale.advance((HOLD + GRACE).saturating_sub(before_the_end));

        let (got, ..) = tokio::join!(
            reserve_all(&sale, &tokens),
            join_all((0..5).map(|_| sale.cancel(&ada, &held.id))),
            join_all((0..5).map(|_| sale.look(None))),
        );

        // Before the end, those who came before ada went away with nothing.
        assert!(got <= 1, "{got} pieces of one");
        assert!(before_the_end > Duration::ZERO || got == 1);
        assert_eq!(sale.counts().await, (1 - got as u64, got as u64));
    }
}

#[tokio::test]
async fn of_many_who_give_the_same_piece_back_one_does() {
    let sale = Sale::of(2).await;
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    let results = join_all((0..CROWD).map(|_| sale.cancel(&ada, &held.id))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(Error::NotFound("reservation")))));
    assert_eq!(sale.counts().await, (2, 0));
}

#[tokio::test]
async fn an_order_reported_by_many_at_once_is_one() {
    let sale = Sale::of(5).await;
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    let report = async || sale.confirm(&held.id, "ada", "order-1").await;
    tokio::join!(join_all((0..CROWD).map(|_| report())), async {
        let _ = sale.cancel(&ada, &held.id).await;
    });
    assert_eq!(sale.counts().await, (4, 0));
    assert!(sale.look(Some(&ada)).await.unwrap().bought);
}
