// Fills the holes of a shared page in the browser. Each script tag with `data-hole` stands behind the element that it replaces.
//
// - The content did not arrive with the page: the origin was late, or it sets a cookie, which a page cannot carry once its head
//   is sent. It is requested at once.
// - `data-on-use`: the element is a token of the visitor's session. It is requested when the visitor uses a form. That request
//   starts the session of a new visitor.
//
// Scripts such as Turbo replace the page without a load. This module runs once, so it looks for tags at each use and after each
// change of the page.

// A link without an address of its own is a button of a script.
const BUTTONS =
	"button, input[type=submit], input[type=button], input[type=image], [role=button], [data-method], [data-turbo-method], " +
	'a:not([href]), a[href="#"], a[href="#!"], a[href^="javascript:"]';

const HOLES = "/_edge/v1/holes";

const tagsIn = (element) => [...(element?.querySelectorAll("script[data-hole]") ?? [])];
const isToken = (tag) => "onUse" in tag.dataset;
const hasToken = (form) => tagsIn(form).some(isToken);
// Scripts read such a token, which is often a `meta` element, when a button is pressed.
const isCommonToken = (tag) => isToken(tag) && !tag.closest("form");

// The presses and submissions to repeat once the content has arrived, by element. A double click is one press.
const waiting = new Map();
// The tags whose content was requested.
const requested = new WeakSet();
let isFilling = false;
// The pause after a failed request, milliseconds. A press does not wait for it.
const PAUSE = 5000;
// The time of the last failed request.
let failedAt = -PAUSE;
// The filled tokens: each tag with its element.
let filled = [];
// The time of the first request for content, and the time at which its content arrived.
let [askedAt, arrivedAt] = [Infinity, -Infinity];

// A form with a hole may lack its token. It waits for the content and is sent then.
function hold(event) {
	const target = event.composedPath()[0];
	const form = target.closest?.("form");
	if (event.type === "submit") {
		if (tagsIn(form).length === 0) return;
		const { submitter } = event;
		// The content may have replaced the button.
		waiting.set(form, () => form.requestSubmit(submitter?.form === form ? submitter : null));
	} else {
		const button = target.closest?.(BUTTONS);
		if (!button || !(hasToken(form) || tagsIn(document).some(isCommonToken))) return;
		waiting.set(button, () => button.click());
	}
	event.preventDefault();
	event.stopImmediatePropagation();
	start();
}

function repeat() {
	const actions = [...waiting.values()];
	waiting.clear();
	for (const action of actions) action();
}

// The element of a tag, or nothing if a script of the shop has moved it. Turbo moves the elements of the head, but not its scripts.
function elementOf(tag) {
	const { hole, index } = tag.dataset;
	const element = tag.previousElementSibling;
	if (element?.matches(hole)) return element;
	return tag.parentElement === document.head ? document.head.querySelectorAll(hole)[index] : null;
}

// Scripts of the shop may refer to the field of a token, so it stays the same element.
function replace(element, html) {
	const own = new DOMParser().parseFromString(html, "text/html").querySelector(element.tagName);
	if (!own || !["INPUT", "META"].includes(element.tagName)) {
		const template = document.createElement("template");
		// `outerHTML` attaches no declarative shadow trees. Browsers before 2024 cannot attach them later.
		if (html.includes("shadowrootmode") && template.setHTMLUnsafe) {
			template.setHTMLUnsafe(html);
			element.replaceWith(template.content);
		} else element.outerHTML = html;
		return;
	}
	for (const { name } of [...element.attributes]) if (!own.hasAttribute(name)) element.removeAttribute(name);
	for (const { name, value } of own.attributes) element.setAttribute(name, value);
}

const shownPage = () => location.pathname + location.search;

// The content of a page: `{selector: [html]}`. Tokens in a form also have the key `selector + "\n" + action`. Null if the request fails.
async function contentOf(page) {
	const url = `${HOLES}?page=${encodeURIComponent(page)}`;
	const response = await fetch(url, { credentials: "same-origin", headers: { accept: "application/json" } });
	if (arrivedAt < askedAt) arrivedAt = performance.now();
	return response.ok ? response.json() : null;
}

function fill(tags, content) {
	filled = [];
	for (const tag of tags) {
		const { hole, index, form = "" } = tag.dataset;
		const own = content[`${hole}\n${form}`] ?? content[hole];
		const html = own?.[index] ?? own?.[0];
		const element = elementOf(tag);
		if (html === undefined || !element) continue;
		replace(element, html);
		if (isToken(tag)) filled.push([tag, element]);
	}
}

// If the request fails, the page stays as it is. A later use of a form repeats the request. A press that waits goes on without the
// content.
async function start() {
	if (isFilling) return;
	isFilling = true;
	askedAt = Math.min(askedAt, performance.now());
	let page, tags, content;
	// A script may show another page during the request. Its tags need their own content.
	do {
		page = shownPage();
		tags = tagsIn(document);
		for (const tag of tags) requested.add(tag);
		content = await contentOf(page).catch(() => null);
	} while (page !== shownPage());
	isFilling = false;
	if (content) fill(tags, content);
	else failedAt = performance.now();
	if (content || waiting.size > 0) for (const tag of tags) tag.remove();
	repeat();
	startIfLate();
}

function startIfLate() {
	if (tagsIn(document).some((tag) => !isToken(tag) && !requested.has(tag))) start();
}

function startIfUsed({ target }) {
	if (performance.now() - failedAt > PAUSE && hasToken(target.closest?.("form"))) start();
}

// A new visitor's first request starts the session. If a request of a script overlaps it, two sessions start, and the browser keeps
// the cookie of the later response. So the tokens are requested again. Later requests carry the cookie.
function restartIfOverlapped(list) {
	const isOfScript = ({ initiatorType }) => ["fetch", "xmlhttprequest", "beacon"].includes(initiatorType);
	const overlaps = ({ name, startTime, responseEnd }) => {
		const { origin, pathname } = new URL(name);
		return startTime < arrivedAt && responseEnd > askedAt && origin === location.origin && pathname !== HOLES;
	};
	if (!list.getEntries().some((entry) => isOfScript(entry) && overlaps(entry))) return;
	const shown = filled.filter(([, element]) => element.isConnected);
	for (const [tag, element] of shown) element.after(tag);
	if (shown.length > 0) start();
}

for (const type of ["submit", "click"]) window.addEventListener(type, hold, true);
for (const type of ["pointerover", "focusin"]) window.addEventListener(type, startIfUsed);
new PerformanceObserver(restartIfOverlapped).observe({ type: "resource" });
// A script may change the address after it has changed the page.
new MutationObserver(() => setTimeout(startIfLate)).observe(document, { childList: true, subtree: true });
startIfLate();
