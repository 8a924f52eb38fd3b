import { cookies } from "next/headers";
import { redirect } from "next/navigation";
import { placeOrder } from "../../lib/actions";
import { currentUser } from "../../lib/session";
import { cartCount } from "../../lib/store";

export const metadata = { title: "Checkout" };

export default async function CheckoutPage() {
	if (cartCount((await cookies()).get("cartId")?.value) === 0) redirect("/cart");
	const user = await currentUser();
	return (
		<>
			<h1>Checkout</h1>
			<form action={placeOrder} id="order">
				<input name="email" type="email" placeholder="Email" defaultValue={user?.email} required />
				<input name="address" placeholder="Address" required />
				<button>Place order</button>
			</form>
		</>
	);
}
