// The platform's limit in JavaScript: a Worker that ignores the request and responds with a constant page of 20 KB.

const page = "<p>A page of twenty thousand bytes.</p>\n".repeat(512);
const init = { headers: { "Content-Type": "text/html; charset=utf-8" } };

export default { fetch: () => new Response(page, init) };
