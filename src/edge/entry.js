// The Worker as the platform calls it.
import * as edge from "./index.js";

// Plain functions: the platform would make an object of a class for each event.
export default {
	fetch: (request, env, context) => edge.fetch(request, context),
	scheduled: (event) => edge.scheduled(event),
};
