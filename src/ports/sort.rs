//! A stable sort that is compiled once. It replaces `slice::sort_by`, which adds some 4 KB of wasm for each element
//! type.

use std::cmp::Ordering;

/// Sorts by `compare`; equal items keep their order.
pub fn sort_by<T>(items: &mut Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let order = order(items.len(), &mut |one, other| match (items.get(one), items.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    let mut taken: Vec<_> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|index| taken.get_mut(index)?.take()));
}

/// The indices below `count`, sorted by the items' order.
fn order(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<_> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_keep_their_order() {
        let mut words = vec!["pear", "fig", "plum", "kiwi", "nut", "apple"];
        sort_by(&mut words, |one, other| one.len().cmp(&other.len()));
        assert_eq!(words, ["fig", "nut", "pear", "plum", "kiwi", "apple"]);
    }
}
