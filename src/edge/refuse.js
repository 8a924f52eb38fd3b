// Ends the start of the isolate. The runtime shows `problem`, and wrangler dev and wrangler deploy fail.
//
// wasm-bindgen replaces every JavaScript error that passes through wasm with "Critical error", which hides the text. It
// recognizes such errors by their tag. This exception has another tag, so it passes unchanged, and the log prints it
// like an error.
export function refuse(problem) {
	const exception = new WebAssembly.Exception(new WebAssembly.Tag({ parameters: [] }), []);
	throw Object.assign(exception, { name: "Error", message: problem, toString: Error.prototype.toString });
}
