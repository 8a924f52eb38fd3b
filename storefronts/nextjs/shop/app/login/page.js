import Link from "next/link";
import { Credentials } from "../../components/credentials";
import { login } from "../../lib/actions";

export const metadata = { title: "Sign in" };

export default function LoginPage() {
	return (
		<>
			<h1>Sign in</h1>
			<Credentials action={login} label="Sign in" />
			<Link href="/register">Create account</Link>
		</>
	);
}
