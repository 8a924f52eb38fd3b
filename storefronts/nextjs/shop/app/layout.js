import Link from "next/link";
import { Suspense } from "react";
import { AccountLink, CartLink } from "../components/header-links";
import { SearchForm } from "../components/search-form";
import "./globals.css";

export const metadata = { title: { default: "Nook & Timber", template: "%s | Nook & Timber" } };

export default function RootLayout({ children }) {
	return (
		<html lang="en">
			<body>
				<header>
					<Link href="/" className="brand">Nook & Timber</Link>
					<nav>
						<Link href="/collections/kitchen">Kitchen</Link>
						<Link href="/collections/living">Living</Link>
						<Link href="/collections/workshop">Workshop</Link>
						<Link href="/collections/all">All</Link>
					</nav>
					<Suspense><SearchForm /></Suspense>
					<AccountLink />
					<CartLink />
				</header>
				<main>{children}</main>
			</body>
		</html>
	);
}
