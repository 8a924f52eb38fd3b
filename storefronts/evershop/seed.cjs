// Fills the shop: 50 products through EverShop's API, and a customer. Usage: node seed.cjs BASE_URL
// Runs in the shop's folder. The administrator exists already.
const path = require('node:path');
const { Pool } = require(path.resolve('node_modules/pg'));

const base = process.argv[2];
const pool = new Pool({ host: process.env.DB_HOST, user: process.env.DB_USER, database: process.env.DB_NAME });

async function post(url, body, cookie = '') {
  const response = await fetch(base + url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie },
    body: JSON.stringify(body)
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`);
  return [JSON.parse(text).data, (response.headers.get('set-cookie') ?? '').split(';')[0]];
}

/** A description of one paragraph, as the shop's editor stores it. */
function paragraph(text) {
  const data = { time: 0, version: '2.31.0', blocks: [{ id: 'block', type: 'paragraph', data: { text } }] };
  return [{ id: 'row', size: 1, columns: [{ id: 'column', size: 1, data }] }];
}

/** Waits until the shop's event process has written the addresses of `count` categories or products. `pattern` is that of a final address. */
async function waitForAddresses(kind, pattern, count) {
  const query = 'SELECT count(*)::int AS written FROM url_rewrite WHERE entity_type = $1 AND request_path LIKE $2';
  const end = Date.now() + 120_000;
  while (Date.now() < end) {
    const { rows } = await pool.query(query, [kind, pattern]);
    if (rows[0].written >= count) return;
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
  throw new Error(`the shop has not written the addresses of ${count} entries (${kind})`);
}

async function main() {
  const [, cookie] = await post('/admin/user/login', { email: 'admin@shop.test', password: 'admin-password-1' });
  const materials = ['Oak', 'Steel', 'Linen', 'Ceramic', 'Wool'];
  const things = ['Mug', 'Lamp', 'Chair', 'Basket', 'Clock', 'Kettle', 'Shelf', 'Apron', 'Bowl', 'Stool'];
  const categories = [];
  for (const name of ['Kitchen', 'Living', 'Workshop']) {
    const [category] = await post('/api/categories', {
      name, url_key: name.toLowerCase(), description: paragraph(`All for the ${name.toLowerCase()}`), status: 1,
      include_in_nav: 1, meta_title: name, meta_description: name
    }, cookie);
    categories.push(category.category_id);
  }
  // The address of a product begins with that of its category.
  await waitForAddresses('category', '/%', 3);
  const [box] = await post('/api/packages', { name: 'Box', length: 30, width: 25, height: 10 }, cookie);
  for (let index = 0; index < 50; index += 1) {
    const name = `${materials[index % 5]} ${things[Math.floor(index / 5)]}`;
    const key = name.toLowerCase().replace(' ', '-');
    await post('/api/products', {
      name, url_key: key, sku: key.toUpperCase(), price: 5 + index, weight: 1, qty: 100, group_id: 1, status: 1, visibility: 1,
      manage_stock: 1, stock_availability: 1, description: paragraph(`The ${name} is made by hand and lasts. `.repeat(10)),
      meta_title: name, meta_description: name, meta_keywords: name, category_id: categories[index % 3],
      package_id: box.package_id
    }, cookie);
  }
  await waitForAddresses('product', '/%/%', 50);
  await post('/api/customers', { email: 'visitor@shop.test', password: 'visitor-password-1', full_name: 'Vera Visitor' });
  await pool.end();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
