-- Search, popularity and age of products. D1 has FTS5 (https://www.sqlite.org/fts5.html). The products of the demo shop do
-- not change, so nothing keeps the index up to date.

-- Pieces sold. The numbers at the start are invented, so that a new shop has popular products.
ALTER TABLE products ADD COLUMN sold INTEGER NOT NULL DEFAULT 0;
-- The day on which the shop began to sell the product, as days before the start of the shop.
ALTER TABLE products ADD COLUMN age_days INTEGER NOT NULL DEFAULT 0;
UPDATE products SET
    sold = (length(description) * 31 + length(line) * 57 + price_cents / 7) % 400,
    age_days = (length(line) * 97 + length(details) * 13) % 720;

-- One row for each product line. Porter stemming finds "mugs" by "mug"; the prefix indexes find "ket" in "kettle".
CREATE VIRTUAL TABLE product_search USING fts5(
    line UNINDEXED, name, kinds, category, description,
    tokenize = 'porter unicode61 remove_diacritics 2', prefix = '2 3'
);
INSERT INTO product_search (line, name, kinds, category, description)
SELECT line, min(substr(products.name, 1, instr(products.name || ', ', ', ') - 1)),
    group_concat(substr(products.name, instr(products.name || ', ', ', ') + 2), ' '),
    min(categories.name), min(description)
FROM products JOIN categories ON categories.id = category GROUP BY line;

-- The words of names, kinds and categories as people write them, without stemming. A misspelled word is compared with
-- them.
CREATE VIRTUAL TABLE search_terms USING fts5(
    words, content = '', tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3'
);
INSERT INTO search_terms (rowid, words) SELECT rowid, name || ' ' || kinds || ' ' || category FROM product_search;
CREATE VIRTUAL TABLE search_words USING fts5vocab(search_terms, 'row');
