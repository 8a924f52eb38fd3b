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

async function rewrite(kind, uuid, from) {
  await pool.query(
    `INSERT INTO url_rewrite (entity_type, entity_uuid, request_path, target_path, language) VALUES ($1, $2, $3, $4, 'en')
     ON CONFLICT (entity_uuid, language) DO UPDATE SET request_path = excluded.request_path`,
    [kind, uuid, from, `/${kind}/${uuid}`]
  );
}

async function main() {
  const [, cookie] = await post('/admin/user/login', { email: 'admin@shop.test', password: 'admin-password-1' });
  const materials = ['Oak', 'Steel', 'Linen', 'Ceramic', 'Wool'];
  const things = ['Mug', 'Lamp', 'Chair', 'Basket', 'Clock', 'Kettle', 'Shelf', 'Apron', 'Bowl', 'Stool'];
  const categories = [];
  for (const name of ['Kitchen', 'Living', 'Workshop']) {
    const [category] = await post('/api/categories', {
      name, url_key: name.toLowerCase(), description: `All for the ${name.toLowerCase()}`, status: 1, include_in_nav: 1,
      meta_title: name, meta_description: name, parent_id: null
    }, cookie);
    await rewrite('category', category.uuid, `/${name.toLowerCase()}`);
    categories.push({ id: category.insertId ?? category.category_id, path: name.toLowerCase() });
  }
  for (let index = 0; index < 50; index += 1) {
    const name = `${materials[index % 5]} ${things[Math.floor(index / 5)]}`;
    const key = name.toLowerCase().replace(' ', '-');
    const category = categories[index % 3];
    const [product] = await post('/api/products', {
      name, url_key: key, sku: key.toUpperCase(), price: 5 + index, weight: 1, qty: 100, group_id: 1, status: 1, visibility: 1,
      manage_stock: 1, stock_availability: 1, description: `<p>${`The ${name} is made by hand and lasts. `.repeat(10)}</p>`,
      meta_title: name, meta_description: name, meta_keywords: name, category_id: category.id
    }, cookie);
    await rewrite('product', product.uuid, `/${category.path}/${key}`);
  }
  await post('/api/customers', { email: 'visitor@shop.test', password: 'visitor-password-1', full_name: 'Vera Visitor' });
  // The events only write the same addresses once more, ten in ten seconds.
  await pool.query('DELETE FROM event');
  await pool.end();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
