// Text that a server could send to do harm on a page: markup that runs, addresses elsewhere, escapes of terminals, and
// characters that hide or turn what a person reads.

export const HOSTILE: string = [
  "<script>window.__pwned='script'</script>",
  `<img src="https://evil.invalid/a.png" onerror="window.__pwned='img'">`,
  `<svg onload="window.__pwned='svg'"></svg><iframe srcdoc="<script>parent.__pwned=1</script>"></iframe>`,
  `<a href="javascript:window.__pwned=1" class="pwned">a</a><style>body{display:none}</style><base href="//evil.invalid/">`,
  "[click](javascript:window.__pwned=1) ![image](https://evil.invalid/b.png)",
  "\u001b[2J\u001b[31mred\u001b]0;title\u0007\u001b]8;;https://evil.invalid\u0007link\u001b]8;;\u0007",
  "\u202eesrever\u202c \u2066isolate\u2069 zero\u200bwidth\u{e0041}\ufeff\r\u0000\u0008",
  '"}]; "\' onmouseover="window.__pwned=1" x="`${window.__pwned=1}',
].join(" ");

/** One line of a million characters. */
export const LONG: string = `${"long ".repeat(200_000)}end of it`;

/** An address that is code. */
export const CODE_URL: string = ["javascript", "window.__pwned=1"].join(":");
