"use client";

import Link from "next/link";
import { usePathname } from "next/navigation";
import { useEffect, useState } from "react";

/** Fetches JSON of the visitor after the page has loaded, after each navigation, and when the cart has changed. */
function useOwn(path) {
	const [data, setData] = useState(null);
	const pathname = usePathname();
	useEffect(() => {
		const load = () => fetch(path).then((answer) => answer.json()).then(setData, () => {});
		load();
		window.addEventListener("cart-changed", load);
		return () => window.removeEventListener("cart-changed", load);
	}, [path, pathname]);
	return data;
}

export function CartLink() {
	const cart = useOwn("/api/cart");
	return <Link href="/cart" id="mini-cart" data-loaded={cart !== null}>Cart{cart?.count ? ` (${cart.count})` : ""}</Link>;
}

export function AccountLink() {
	const session = useOwn("/api/session");
	return <Link href="/account" id="account-link" data-loaded={session !== null}>{session?.name ?? "Sign in"}</Link>;
}
