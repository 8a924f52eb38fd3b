import { redirect } from "next/navigation";
import { Suspense } from "react";
import { logout } from "../../lib/actions";
import { currentUser } from "../../lib/session";
import { listOrders } from "../../lib/store";

export const metadata = { title: "Account" };

async function Orders({ email }) {
	// The order service of a real shop answers late, so the orders are streamed.
	await new Promise((resolve) => setTimeout(resolve, 300));
	return <ul id="orders">{listOrders(email).map(({ id, number }) => <li key={id}>Order {number}</li>)}</ul>;
}

export default async function AccountPage() {
	const user = await currentUser();
	if (!user) redirect("/login");
	return (
		<>
			<h1>Hello, {user.name}</h1>
			<form action={logout} id="logout"><button>Sign out</button></form>
			<h2>Orders</h2>
			<Suspense fallback={<p>Loading…</p>}><Orders email={user.email} /></Suspense>
		</>
	);
}
