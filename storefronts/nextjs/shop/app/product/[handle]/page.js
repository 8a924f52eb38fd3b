import { draftMode } from "next/headers";
import Image from "next/image";
import { notFound } from "next/navigation";
import { Suspense } from "react";
import { AddToCart } from "../../../components/add-to-cart";
import { ProductGrid } from "../../../components/product-grid";
import { getCollection, getProduct } from "../../../lib/catalogue";
import { money } from "../../../lib/money";
import { listProducts } from "../../../lib/store";

export const revalidate = 60;

// The first ten are rendered by the build, the others by their first visit.
export function generateStaticParams() {
	return listProducts().slice(0, 10).map(({ handle }) => ({ handle }));
}

export async function generateMetadata({ params }) {
	const product = await getProduct((await params).handle);
	return product ? { title: product.title, description: product.description } : {};
}

async function Related({ product }) {
	const products = (await getCollection(product.collection)).filter(({ handle }) => handle !== product.handle);
	return <ProductGrid products={products.slice(0, 4)} />;
}

export default async function ProductPage({ params }) {
	const product = await getProduct((await params).handle);
	if (!product) notFound();
	const { isEnabled: isDraft } = await draftMode();
	return (
		<>
			{isDraft && <p id="draft">Draft of the next version</p>}
			<h1>{product.title}</h1>
			<Image src={product.image} alt={product.title} width={480} height={480} priority />
			<p id="price">{money(product.price)}</p>
			<p>{product.description}</p>
			<AddToCart handle={product.handle} />
			<h2>Related products</h2>
			<Suspense fallback={<p>Loading…</p>}><Related product={product} /></Suspense>
		</>
	);
}
