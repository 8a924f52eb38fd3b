import { cookies } from "next/headers";
import Link from "next/link";
import { updateLine } from "../../lib/actions";
import { money } from "../../lib/money";
import { cartLines } from "../../lib/store";

export const metadata = { title: "Cart" };

export default async function CartPage() {
	const lines = cartLines((await cookies()).get("cartId")?.value);
	if (lines.length === 0) return <h1>Your cart is empty</h1>;
	return (
		<>
			<h1>Cart</h1>
			{lines.map(({ product, quantity }) => (
				<form action={updateLine} key={`${product.handle}-${quantity}`} className="line">
					<input type="hidden" name="handle" value={product.handle} />
					<span>{product.title}</span>
					<input type="number" name="quantity" defaultValue={quantity} min="0" />
					<button>Update</button>
				</form>
			))}
			<p id="total">{money(lines.reduce((sum, { product, quantity }) => sum + product.price * quantity, 0))}</p>
			<Link href="/checkout" id="checkout">Checkout</Link>
		</>
	);
}
