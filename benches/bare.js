// A Worker that touches nothing and answers a page of 20 KB: what the platform can do at most, in JavaScript.

const page = "<p>A page of twenty thousand bytes.</p>\n".repeat(512);
const init = { headers: { "Content-Type": "text/html; charset=utf-8" } };

export default { fetch: () => new Response(page, init) };
