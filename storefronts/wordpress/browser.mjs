// WordPress in a browser: browse, search, comment, sign-in, sign-out, administration, a post with a password.

import { assert, inBrowser, visit, visitUntilHit } from "../browser.mjs";

// The visitors of `cargo xtask test --storefronts` comment on another post.
const POST = "/linen-mug/";
const PROTECTED_POST = "/oak-mug/";
const PROTECTED_TEXT = /Oak Mug is made by hand/;
const POST_PASSWORD = "open-sesame";
const RUN = Date.now();
const COMMENTER = `Flora Flow ${RUN}`;
const COMMENT = `A comment of run ${RUN}`;
const TITLE = `News of run ${RUN}`;
const VISITOR = { login: "visitor-20", password: "visitor-password-20", name: "Vera Visitor 20" };
const ADMIN = { login: "admin", password: "admin-password-1" };

async function signIn(page, { login, password }) {
	await visit(page, "/wp-login.php");
	// A script moves the focus to this field shortly after the page is loaded.
	await page.waitForSelector("#user_login:focus");
	await page.fill("#user_login", login);
	await page.fill("#user_pass", password);
	await page.click("#wp-submit");
	await page.waitForSelector("#wpadminbar");
}

/** Asserts that a new visitor gets the post from the store, with an empty comment form and without `text`. */
async function assertSharedPostHides(open, text) {
	const other = await open();
	await visitUntilHit(other, POST);
	assert.equal(await other.locator("#wpadminbar").count(), 0);
	assert.equal(await other.inputValue("#author"), "");
	assert.ok(!(await other.content()).includes(text), `the page shows ${text}`);
	await other.context().close();
}

await inBrowser(async (open, step) => {
	const page = await open();

	await step("browse", page, async () => {
		await visit(page, "/");
		await page.click("text=Ceramic Stool >> nth=0");
		await page.waitForURL("**/ceramic-stool/");
		assert.match(await page.innerText("main"), /Ceramic Stool is made by hand/);
		assert.equal(await page.locator("#wpadminbar").count(), 0);
	});

	await step("search", page, async () => {
		// The theme's pages have no search form.
		await visit(page, "/?s=linen");
		assert.ok((await page.locator(".wp-block-post-title").count()) >= 5, "the search finds the linen posts");
	});

	await step("comment on a shared page", page, async () => {
		await visitUntilHit(page, POST);
		await page.fill("#comment", COMMENT);
		await page.fill("#author", COMMENTER);
		await page.fill("#email", `flow-${RUN}@shop.test`);
		await page.check("#wp-comment-cookies-consent");
		await page.click("#submit");
		await page.waitForSelector(".comment-awaiting-moderation");
		assert.ok((await page.innerText("main")).includes(COMMENT));
	});

	await step("the commenter keeps name and waiting comment", page, async () => {
		assert.ok(!(await visit(page, POST)).includes("hit"));
		assert.equal(await page.inputValue("#author"), COMMENTER);
		assert.ok((await page.innerText("main")).includes(COMMENT));
	});

	await step("other visitors do not see the waiting comment", page, () => assertSharedPostHides(open, COMMENT));

	const visitor = await open();
	await step("sign in", visitor, async () => {
		await signIn(visitor, VISITOR);
		await visit(visitor, POST);
		assert.equal(await visitor.innerText("#wp-admin-bar-my-account .display-name >> nth=0"), VISITOR.name);
	});

	await step("other visitors do not see the name", visitor, () => assertSharedPostHides(open, VISITOR.name));

	await step("sign out", visitor, async () => {
		await visitor.hover("#wp-admin-bar-my-account");
		await visitor.click("#wp-admin-bar-logout a");
		await visitor.waitForURL("**/wp-login.php?*loggedout=true*");
		await visitUntilHit(visitor, POST);
		assert.equal(await visitor.locator("#wpadminbar").count(), 0);
		assert.ok(!(await visitor.content()).includes(VISITOR.name));
	});

	const admin = await open();
	await step("administration approves the comment", admin, async () => {
		await signIn(admin, ADMIN);
		await visit(admin, "/wp-admin/edit-comments.php?comment_status=moderated");
		const row = admin.locator("#the-comment-list tr", { hasText: COMMENT });
		await row.hover();
		await row.locator(".approve a").click();
		await row.waitFor({ state: "hidden" });
	});

	// A stored page shows it to everyone else after `PAGE_TTL`.
	await step("the commenter sees the approved comment", page, async () => {
		await visit(page, POST);
		assert.ok((await page.innerText("main")).includes(COMMENT));
		assert.equal(await page.locator(".comment-awaiting-moderation").count(), 0);
	});

	let newPost;
	await step("administration publishes a post", admin, async () => {
		await visit(admin, "/wp-admin/post-new.php");
		await admin.waitForSelector(".edit-post-header");
		await admin.evaluate(() => wp.data.dispatch("core/preferences").set("core/edit-post", "welcomeGuide", false));
		await admin.fill(".editor-post-title__input", TITLE);
		await admin.press(".editor-post-title__input", "Enter");
		await admin.keyboard.type("Written in the editor.");
		await admin.click(".editor-post-publish-panel__toggle");
		await admin.click(".editor-post-publish-panel .editor-post-publish-button");
		const link = admin.locator(".post-publish-panel__postpublish-buttons a", { hasText: "View Post" });
		newPost = new URL(await link.getAttribute("href")).pathname;
	});

	await step("a visitor reads the new post", page, async () => {
		const reader = await open();
		await visit(reader, newPost);
		assert.equal(await reader.innerText("h1"), TITLE);
		assert.match(await reader.innerText("main"), /Written in the editor\./);
		assert.equal(await reader.locator("#wpadminbar").count(), 0);
		await reader.context().close();
	});

	const reader = await open();
	await step("a password opens a post", reader, async () => {
		await visitUntilHit(reader, PROTECTED_POST);
		assert.doesNotMatch(await reader.content(), PROTECTED_TEXT);
		await reader.fill("[name=post_password]", POST_PASSWORD);
		await reader.click(".post-password-form [type=submit]");
		await reader.waitForURL(`**${PROTECTED_POST}`);
		await reader.waitForSelector(".post-password-form", { state: "detached" });
		assert.match(await reader.innerText("main"), PROTECTED_TEXT);
	});

	await step("the post stays closed for other visitors", reader, async () => {
		const other = await open();
		await visitUntilHit(other, PROTECTED_POST);
		assert.doesNotMatch(await other.content(), PROTECTED_TEXT);
		assert.equal(await other.locator(".post-password-form").count(), 1);
		await other.context().close();
	});
});
