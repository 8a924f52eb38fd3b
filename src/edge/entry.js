// The Worker as the platform calls it.
import * as edge from "./index.js";

const state = edge.__worker_init_state();

// A panic leaves the memory of wasm half written, and ends the requests of its time. The next event gets a memory of its own.
function renew() {
	if (!state.criticalError) return;
	console.warn("edgefront starts anew after a panic");
	state.criticalError = false;
	edge.__wbg_reset_state();
}

// Plain functions: the platform would make an object of a class for each event.
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
