// Cached reads of the catalogue, with tags that the administration revalidates.
import { unstable_cache } from "next/cache";
import * as store from "./store";

const options = { tags: ["products"], revalidate: 60 };

export const getProduct = unstable_cache(async (handle) => store.findProduct(handle) ?? null, ["product"], options);
export const getCollection = unstable_cache(async (handle) => store.listCollection(handle), ["collection"], options);
