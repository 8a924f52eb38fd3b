"use server";

import { revalidatePath, revalidateTag } from "next/cache";
import { cookies } from "next/headers";
import { redirect } from "next/navigation";
import { currentUser, isAdmin } from "./session";
import * as store from "./store";

const COOKIE = { httpOnly: true, sameSite: "lax", path: "/" };

export async function addToCart(_state, form) {
	const handle = form.get("handle");
	if (!store.findProduct(handle)) return { message: "This product is not available." };
	const jar = await cookies();
	const quantity = Math.max(1, Number(form.get("quantity")) || 1);
	jar.set("cartId", store.addToCart(jar.get("cartId")?.value, handle, quantity), { ...COOKIE, maxAge: 60 * 60 * 24 * 30 });
	return { message: "Added to cart", time: Date.now() };
}

export async function updateLine(form) {
	const cartId = (await cookies()).get("cartId")?.value;
	if (cartId) store.setQuantity(cartId, form.get("handle"), Number(form.get("quantity")));
	revalidatePath("/cart");
}

async function startSession(user) {
	(await cookies()).set("session", store.startSession(user.email), COOKIE);
}

export async function login(_state, form) {
	const user = store.authenticate(form.get("email"), form.get("password"));
	if (!user) return { message: "Email or password is incorrect." };
	await startSession(user);
	redirect("/account");
}

export async function register(_state, form) {
	const user = store.register(form.get("name"), form.get("email"), form.get("password"));
	if (!user) return { message: "This email has an account." };
	await startSession(user);
	redirect("/account");
}

export async function logout() {
	const jar = await cookies();
	store.endSession(jar.get("session")?.value);
	jar.delete("session");
	redirect("/");
}

export async function placeOrder(form) {
	const jar = await cookies();
	const user = await currentUser();
	const order = store.placeOrder(jar.get("cartId")?.value, user?.email ?? form.get("email"), form.get("address"));
	if (!order) redirect("/cart");
	jar.delete("cartId");
	redirect(`/order/${order.id}`);
}

export async function adminLogin(form) {
	if (form.get("password") === process.env.ADMIN_PASSWORD) (await cookies()).set("admin", process.env.ADMIN_KEY, COOKIE);
	redirect("/admin");
}

export async function setPrice(form) {
	if (!(await isAdmin())) redirect("/admin");
	const handle = form.get("handle");
	store.setPrice(handle, Number(form.get("price")));
	revalidateTag("products", { expire: 0 });
	revalidatePath(`/product/${handle}`);
	revalidatePath("/collections/[handle]", "page");
	redirect("/admin");
}
