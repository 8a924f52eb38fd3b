//! Every model holds in all of its bounds, and every rule of a model is needed.

use std::time::Instant;

use edgefront_models::{
    Counterexample, Protocol, counterexample, every_run_ends, explore, flash::Flash, pages::Pages, sessions::Sessions,
};

/// Explores the model, and then each of its mutations.
fn check<M: Protocol<State: Eq>>() {
    for model in M::all_bounds() {
        let started = Instant::now();
        let explored = explore(model.clone());
        println!(
            "{} states, {} transitions, depth {}, {:.1} s",
            explored.states,
            explored.transitions,
            explored.depth,
            started.elapsed().as_secs_f64()
        );
        assert!(explored.counterexamples.is_empty(), "{:#?}", explored.counterexamples);
        assert!(every_run_ends(&model));
    }
    let mut missed = Vec::new();
    for rule in M::RULES {
        match counterexample::<M>(*rule) {
            Some(Counterexample { property, actions, .. }) => {
                println!("without {rule:?}: not {property:?}: {actions:?}");
            }
            None => missed.push(rule),
        }
    }
    assert!(missed.is_empty(), "no counterexample without {missed:?}");
}

#[test]
fn the_model_of_sessions_holds_and_needs_each_rule() {
    check::<Sessions>();
}

#[test]
fn the_model_of_flash_sales_holds_and_needs_each_rule() {
    check::<Flash>();
}

#[test]
fn the_model_of_pages_holds_and_needs_each_rule() {
    check::<Pages>();
}
