// The Worker as the platform calls it: as edgefront's, without a promise.
import * as worker from "./index.js";

export default { fetch: () => worker.fetch() };
