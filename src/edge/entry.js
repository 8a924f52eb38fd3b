// The Worker's entry point: the platform calls these functions.
import * as edge from "./index.js";

const state = edge.__worker_init_state();

// Replaces the wasm instance after a panic. A panic may leave the instance's memory inconsistent and ends all requests
// of the instance.
function renew() {
	if (!state.criticalError) return;
	console.warn("edgefront starts anew after a panic");
	state.criticalError = false;
	edge.__wbg_reset_state();
}

/** The home tier's entry point: the edge tier reaches it through a service binding, and no visitor does. */
export const home = {
	fetch(request, env, context) {
		renew();
		return edge.home(request, context);
	},
};

// Plain functions, because the platform would create an instance of a class for each event.
export default {
	fetch(request, env, context) {
		renew();
		return edge.fetch(request, context);
	},
	scheduled(event) {
		renew();
		return edge.scheduled(event);
	},
};
