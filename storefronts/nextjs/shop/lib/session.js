import { cookies } from "next/headers";
import { sessionUser } from "./store";

/** The signed-in user of the request; null for a guest. */
export async function currentUser() {
	const token = (await cookies()).get("session")?.value;
	return token ? sessionUser(token) : null;
}

export async function isAdmin() {
	return (await cookies()).get("admin")?.value === process.env.ADMIN_KEY;
}
