import Image from "next/image";
import Link from "next/link";
import { money } from "../lib/money";

export function ProductGrid({ products }) {
	return (
		<ul className="grid">
			{products.map(({ handle, title, price, image }) => (
				<li key={handle} className="product">
					<Link href={`/product/${handle}`}>
						<Image src={image} alt={title} width={240} height={240} />
						{title}
					</Link>{" "}
					<span className="price">{money(price)}</span>
				</li>
			))}
		</ul>
	);
}
