/** @type {import('next').NextConfig} */
export default {
	// Old links of the shop.
	async redirects() {
		return [{ source: "/products/:handle", destination: "/product/:handle", permanent: true }];
	},
};
