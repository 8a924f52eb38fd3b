// Next.js 16 calls this file `proxy`; before, it was `middleware`.
import { NextResponse } from "next/server";

/** Sends visitors without a session to the login, and puts each visitor into one of two groups of an experiment. */
export function proxy(request) {
	const { pathname } = request.nextUrl;
	if (pathname.startsWith("/account") && !request.cookies.has("session")) {
		const login = new URL("/login", request.url);
		login.searchParams.set("next", pathname);
		return NextResponse.redirect(login);
	}
	const response = NextResponse.next();
	if (!request.cookies.has("visitor")) {
		response.cookies.set("visitor", crypto.randomUUID(), { path: "/", sameSite: "lax", maxAge: 60 * 60 * 24 * 30 });
	}
	return response;
}

export const config = { matcher: ["/((?!api|_next/static|_next/image|images|favicon.ico).*)"] };
