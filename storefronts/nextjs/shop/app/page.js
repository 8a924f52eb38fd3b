import { ProductGrid } from "../components/product-grid";
import { getCollection } from "../lib/catalogue";

export const revalidate = 60;

export default async function HomePage() {
	return (
		<>
			<h1>Made by hand</h1>
			<ProductGrid products={(await getCollection("all")).slice(0, 8)} />
		</>
	);
}
