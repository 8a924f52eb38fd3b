import { draftMode } from "next/headers";
import { redirect } from "next/navigation";

/** An editor opens a product of the content management system as a draft. */
export async function GET(request) {
	const { searchParams } = new URL(request.url);
	if (searchParams.get("secret") !== process.env.ADMIN_PASSWORD) return new Response("Invalid secret", { status: 401 });
	(await draftMode()).enable();
	redirect(`/product/${encodeURIComponent(searchParams.get("handle"))}`);
}
