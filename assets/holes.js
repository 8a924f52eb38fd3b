// Fills the holes of a shared page whose content did not arrive with the page: the origin was late, or it sets a cookie,
// which a page cannot carry once its head is sent. Each script tag with `data-hole` stands behind the element that it
// replaces.

const tags = [...document.querySelectorAll("script[data-hole]")];

// A form with a hole may lack its CSRF token. It waits for the content and is sent then.
const forms = new Set(tags.map((tag) => tag.closest("form")).filter(Boolean));
let waiting = null;

function wait(event) {
	event.preventDefault();
	waiting ??= { form: event.currentTarget, submitter: event.submitter };
}

function release() {
	for (const form of forms) form.removeEventListener("submit", wait);
	waiting?.form.requestSubmit(waiting.submitter);
}

async function fill() {
	const page = encodeURIComponent(location.pathname + location.search);
	const response = await fetch(`/_edge/v1/holes?page=${page}`, { credentials: "same-origin", headers: { accept: "application/json" } });
	if (!response.ok) return;
	const content = await response.json();
	for (const tag of tags) {
		const found = content[tag.dataset.hole] ?? [];
		const html = found[tag.dataset.index] ?? found[0];
		if (html !== undefined) tag.previousElementSibling.outerHTML = html;
		tag.remove();
	}
}

for (const form of forms) form.addEventListener("submit", wait);
// Without the content, the page stays as it is, and its forms work as far as they can.
fill().catch(() => {}).finally(release);
