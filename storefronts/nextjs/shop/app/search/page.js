import { ProductGrid } from "../../components/product-grid";
import { search } from "../../lib/store";

export const metadata = { title: "Search" };

export default async function SearchPage({ searchParams }) {
	const { q = "" } = await searchParams;
	const products = search(String(q));
	return (
		<>
			<h1>{products.length} products for “{q}”</h1>
			<ProductGrid products={products} />
		</>
	);
}
