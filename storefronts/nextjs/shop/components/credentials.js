"use client";

import { useActionState } from "react";

export function Credentials({ action, withName, label }) {
	const [state, submit] = useActionState(action, null);
	return (
		<form action={submit} id="credentials">
			{withName && <input name="name" placeholder="Name" required />}
			<input name="email" type="email" placeholder="Email" required />
			<input name="password" type="password" placeholder="Password" required />
			<button>{label}</button>
			<p role="alert">{state?.message}</p>
		</form>
	);
}
