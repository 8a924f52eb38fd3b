import { notFound } from "next/navigation";
import { ProductGrid } from "../../../components/product-grid";
import { getCollection } from "../../../lib/catalogue";
import { COLLECTIONS } from "../../../lib/seed";

export const revalidate = 60;

export function generateStaticParams() {
	return ["all", ...COLLECTIONS].map((handle) => ({ handle }));
}

export default async function CollectionPage({ params }) {
	const { handle } = await params;
	const products = await getCollection(handle);
	if (products.length === 0) notFound();
	return (
		<>
			<h1>{handle}</h1>
			<ProductGrid products={products} />
		</>
	);
}
