import { adminLogin, setPrice } from "../../lib/actions";
import { isAdmin } from "../../lib/session";
import { listProducts } from "../../lib/store";

export const metadata = { title: "Administration" };

export default async function AdminPage() {
	if (!(await isAdmin())) {
		return (
			<form action={adminLogin} id="admin-login">
				<input name="password" type="password" placeholder="Password" />
				<button>Sign in</button>
			</form>
		);
	}
	return (
		<>
			<h1>Prices</h1>
			{listProducts().map(({ handle, title, price }) => (
				<form action={setPrice} key={`${handle}-${price}`} id={`price-${handle}`}>
					<input type="hidden" name="handle" value={handle} />
					<span>{title}</span>
					<input name="price" defaultValue={price} />
					<button>Save</button>
				</form>
			))}
		</>
	);
}
