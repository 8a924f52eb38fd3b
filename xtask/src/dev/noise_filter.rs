//! Hides the lines of wrangler that do not help a developer:
//! - the failed request for `request.cf` to Cloudflare, with its stack trace;
//! - the warning that wrangler does not fire crons, because xtask does;
//! - the table of all variables;
//! - the build steps that are up to date;
//! - the health checks of xtask, and the requests of the sample visitors at the first start.

/// Lines that begin a hidden block.
const FIRST_LINES: [&str; 3] = [
    "Unable to fetch the `Request.cf`",
    "Scheduled Workers are not automatically triggered",
    "Your Worker has access to the following bindings",
];
/// Beginnings of the other lines of a hidden block. Empty lines belong to it as well.
const NEXT_LINES: [&str; 9] =
    ["Error:", "at ", "[errno", "}", "To manually", "curl \"", "For more details", "Binding ", "env."];

/// Decides line by line.
#[derive(Default)]
pub struct NoiseFilter {
    /// Hides requests that succeed.
    pub hides_requests: bool,
    is_in_block: bool,
}

impl NoiseFilter {
    /// Returns whether the next line of wrangler is worth printing.
    pub fn passes(&mut self, line: &str) -> bool {
        let text = line.trim_start();
        if FIRST_LINES.iter().any(|first| line.contains(first)) {
            self.is_in_block = true;
        } else if self.is_in_block {
            self.is_in_block = text.is_empty() || NEXT_LINES.iter().any(|next| text.starts_with(next));
        }
        let is_health_check = line.contains("GET /_edge/v1/healthz ");
        let is_build_noise = line.strip_prefix("[custom build] ").is_some_and(is_quiet_build_line);
        let is_hidden_request = self.hides_requests && is_success(line);
        !self.is_in_block && !is_health_check && !is_build_noise && !is_hidden_request
    }
}

/// Returns whether a line is a request with a status below 400, such as `[wrangler:info] GET /cart 200 OK (9ms)`.
fn is_success(line: &str) -> bool {
    let mut words = line.strip_prefix("[wrangler:info] ").unwrap_or_default().split(' ').skip(1);
    let has_path = words.next().is_some_and(|path| path.starts_with('/'));
    has_path && words.next().and_then(|status| status.parse::<u16>().ok()).is_some_and(|status| status < 400)
}

/// Returns whether a line of the build is empty or a step that built nothing.
fn is_quiet_build_line(line: &str) -> bool {
    let is_step = ["Finished", "Running", "`", "ok "].iter().any(|prefix| line.trim_start().starts_with(prefix));
    line.is_empty() || (is_step && !line.contains(": built"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_fail_are_never_hidden() {
        let mut noise = NoiseFilter { hides_requests: true, ..NoiseFilter::default() };
        for (line, passes) in [
            ("[wrangler:info] GET /products/mug 200 OK (9ms)", false),
            ("[wrangler:info] POST /_edge/v1/orders 204 No Content (9ms)", false),
            ("[wrangler:info] GET /products/mug 503 Service Unavailable (9ms)", true),
            ("[wrangler:info] Ready on http://127.0.0.1:8787", true),
            ("{\"level\":\"error\"}", true),
        ] {
            assert_eq!(noise.passes(line), passes, "{line}");
        }
        noise.hides_requests = false;
        assert!(noise.passes("[wrangler:info] GET /products/mug 200 OK (9ms)"));
    }

    #[test]
    fn only_noise_is_hidden() {
        let output = "[custom build] Running: cargo xtask build\n[custom build] \n\
            [custom build] ok   worker: up to date (0.0 s)\n\
            [custom build] ok   worker: built (9.0 s)\n\
            Your Worker has access to the following bindings:\n\
            Binding      Resource    Mode\nenv.DB       D1 Database local\n\n\
            [wrangler:warn] Unable to fetch the `Request.cf` object! Falling back to a default placeholder...\n\
            Error: getaddrinfo ENOTFOUND example.com\n    at GetAddrInfoReqWrap.onlookupall (node:dns:122:26)\n\
            ⎔ Starting local server...\n\
            ▲ [WARNING] Scheduled Workers are not automatically triggered during local development.\n\n\
            \x20 To manually trigger a scheduled event, run:\n\
            \x20   curl \"http://127.0.0.1:8899/cdn-cgi/local/scheduled\"\n\
            \x20 For more details, see https://example.com\n\n\n\
            [wrangler:info] Ready on http://127.0.0.1:8899\n\
            [wrangler:info] GET /_edge/v1/healthz 200 OK (9ms)\n\
            Error: a failure of our own\n    at index.js\n";
        let mut noise = NoiseFilter::default();
        let shown: Vec<_> = output.lines().filter(|line| noise.passes(line)).collect();
        assert_eq!(
            shown,
            [
                "[custom build] ok   worker: built (9.0 s)",
                "⎔ Starting local server...",
                "[wrangler:info] Ready on http://127.0.0.1:8899",
                "Error: a failure of our own",
                "    at index.js",
            ]
        );
    }
}
