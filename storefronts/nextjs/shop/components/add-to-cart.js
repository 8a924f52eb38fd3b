"use client";

import { useActionState, useEffect } from "react";
import { useFormStatus } from "react-dom";
import { addToCart } from "../lib/actions";

function Submit() {
	const { pending } = useFormStatus();
	return <button disabled={pending}>Add to cart</button>;
}

export function AddToCart({ handle }) {
	const [state, action] = useActionState(addToCart, null);
	useEffect(() => {
		if (state?.time) window.dispatchEvent(new Event("cart-changed"));
	}, [state]);
	return (
		<form action={action} id="add-to-cart">
			<input type="hidden" name="handle" value={handle} />
			<input type="number" name="quantity" defaultValue="1" min="1" />
			<Submit />
			<p role="status">{state?.message}</p>
		</form>
	);
}
