import { Credentials } from "../../components/credentials";
import { register } from "../../lib/actions";

export const metadata = { title: "Create account" };

export default function RegisterPage() {
	return (
		<>
			<h1>Create account</h1>
			<Credentials action={register} withName label="Create account" />
		</>
	);
}
