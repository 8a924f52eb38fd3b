// Fills the holes of a shared page in the browser. Each script tag with `data-hole` stands behind the element that it replaces.
//
// - The content did not arrive with the page: the origin was late, or it sets a cookie, which a page cannot carry once its head
//   is sent. It is requested at once.
// - `data-on-use`: the element is a token of the visitor's session. It is requested when the visitor uses a form. That request
//   starts the session of a new visitor.

const tags = [...document.querySelectorAll("script[data-hole]")];
const tokens = tags.filter((tag) => "onUse" in tag.dataset);

// A form with a hole may lack its token. It waits for the content and is sent then.
const forms = new Set(tags.map((tag) => tag.closest("form")).filter(Boolean));
const tokenForms = new Set(tokens.map((tag) => tag.closest("form")).filter(Boolean));
// Scripts read such a token, which is often a `meta` element, when a button is pressed.
const hasCommonToken = tokens.some((tag) => !tag.closest("form"));
const BUTTONS = "button, input[type=submit], input[type=button], input[type=image], [role=button], [data-method], [data-turbo-method]";

// The presses and submissions to repeat once the content has arrived, by element. A double click is one press.
const waiting = new Map();
let content = null;

function hold(event) {
	const target = event.composedPath()[0];
	const form = target.closest?.("form");
	if (event.type === "submit") {
		if (!forms.has(form)) return;
		const { submitter } = event;
		waiting.set(form, () => form.requestSubmit(submitter));
	} else {
		const button = target.closest?.(BUTTONS);
		if (!button || !(hasCommonToken || tokenForms.has(form))) return;
		waiting.set(button, () => button.click());
	}
	event.preventDefault();
	event.stopImmediatePropagation();
	start();
}

function repeat() {
	for (const type of ["submit", "click"]) window.removeEventListener(type, hold, true);
	for (const action of waiting.values()) action();
	waiting.clear();
}

// Scripts of the shop may refer to the field of a token, so it stays the same element.
function replace(element, html) {
	const own = new DOMParser().parseFromString(html, "text/html").querySelector(element.tagName);
	if (!own || !["INPUT", "META"].includes(element.tagName)) {
		element.outerHTML = html;
		return;
	}
	for (const { name } of [...element.attributes]) if (!own.hasAttribute(name)) element.removeAttribute(name);
	for (const { name, value } of own.attributes) element.setAttribute(name, value);
}

async function fill() {
	const page = encodeURIComponent(location.pathname + location.search);
	const response = await fetch(`/_edge/v1/holes?page=${page}`, { credentials: "same-origin", headers: { accept: "application/json" } });
	if (!response.ok) return false;
	const found = await response.json();
	for (const tag of tags) {
		const { hole, index } = tag.dataset;
		const html = found[hole]?.[index] ?? found[hole]?.[0];
		const element = tag.previousElementSibling;
		// A script of the shop may have moved the element.
		if (html !== undefined && element?.matches(hole)) replace(element, html);
		tag.remove();
	}
	return true;
}

// If the request fails, the page stays as it is. The next use of a form repeats the request, unless a press waits for it.
async function start() {
	if (content) return;
	content = fill().catch(() => false);
	const isFilled = await content;
	if (!isFilled && waiting.size === 0) content = null;
	else repeat();
}

for (const type of ["submit", "click"]) window.addEventListener(type, hold, true);
if (tags.length > tokens.length) start();
for (const form of tokenForms) for (const type of ["pointerenter", "focusin"]) form.addEventListener(type, start);
