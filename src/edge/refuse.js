// Ends the start of the isolate so that the runtime shows `problem`: wrangler dev and wrangler deploy fail with it.
//
// wasm-bindgen turns every error of JavaScript that passes through wasm into "Critical error", without its text. It knows them by their
// tag; so this is thrown under another one, and a log prints it as an error.
export function refuse(problem) {
	const exception = new WebAssembly.Exception(new WebAssembly.Tag({ parameters: [] }), []);
	throw Object.assign(exception, { name: "Error", message: problem, toString: Error.prototype.toString });
}
