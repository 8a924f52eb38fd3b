//! The weight of a first visit: a page and the styles and scripts that it names, gzipped. Fonts, pictures, and scripts
//! that the first use loads are apart.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use super::{open, read};

const MAX_GZIPPED_BYTES: usize = 16_000;

/// The level that servers use for static files.
fn gzipped(text: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}

/// The URLs of the page's styles and scripts.
fn parts(page: &str) -> impl Iterator<Item = &str> {
    let elements = page
        .split('<')
        .filter(|element| element.starts_with("link rel=\"stylesheet\"") || element.starts_with("script src="));
    elements.filter_map(|element| element.split('"').find(|value| value.starts_with('/')))
}

#[tokio::test]
async fn a_first_visit_stays_below_16_kb() {
    let shop = open().await;
    for path in ["/", "/categories/kitchen", "/products/enamel-mug-sage", "/search?q=mug"] {
        let page = read(&shop, path).await.2;
        let mut sizes = vec![gzipped(&page)];
        for part in parts(&page) {
            sizes.push(gzipped(&read(&shop, part).await.2));
        }
        let sum: usize = sizes.iter().sum();
        println!("{path}: {sum} bytes gzipped: {sizes:?}");
        assert!(sizes.len() >= 3 && sum < MAX_GZIPPED_BYTES, "{path}: {sum} bytes gzipped: {sizes:?}");
    }
}
