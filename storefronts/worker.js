// The Worker of `cargo xtask test --storefronts`. Serves the script of the holes, as the platform serves all static files; raw workerd has none.

import edgefront from "./index.js";
import holes from "./holes.txt";

const HEADERS = { "content-type": "text/javascript", "cache-control": "public, max-age=31536000, immutable" };

export default {
	fetch(request, env, context) {
		if (request.url.includes("/_edge/assets/holes.js?")) return new Response(holes, { headers: HEADERS });
		return edgefront.fetch(request, env, context);
	},
};
