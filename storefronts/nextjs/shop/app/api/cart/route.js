import { cookies } from "next/headers";
import { cartCount } from "../../../lib/store";

export async function GET() {
	return Response.json({ count: cartCount((await cookies()).get("cartId")?.value) });
}
