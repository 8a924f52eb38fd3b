import { notFound } from "next/navigation";
import { money } from "../../../lib/money";
import { findOrder } from "../../../lib/store";

export const dynamic = "force-dynamic";
export const metadata = { title: "Order" };

export default async function OrderPage({ params }) {
	const order = findOrder((await params).id);
	if (!order) notFound();
	return (
		<>
			<h1>Order {order.number}</h1>
			<p>Thank you, {order.email}.</p>
			<ul>
				{order.lines.map(({ title, price, quantity }) => <li key={title}>{quantity} × {title}, {money(price)}</li>)}
			</ul>
		</>
	);
}
