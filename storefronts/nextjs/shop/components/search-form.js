"use client";

import Form from "next/form";
import { useSearchParams } from "next/navigation";

export function SearchForm() {
	const query = useSearchParams().get("q") ?? "";
	return (
		<Form action="/search" id="search-form">
			<input key={query} name="q" defaultValue={query} placeholder="Search products" />
		</Form>
	);
}
