import { currentUser } from "../../../lib/session";

export async function GET() {
	return Response.json({ name: (await currentUser())?.name ?? null });
}
