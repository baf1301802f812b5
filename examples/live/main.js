// Live sessions from a program: one in JavaScript and, if SBCL is installed, one in Common Lisp. Each evaluates code,
// lists its definitions, and is interrupted in an endless loop without losing them. Closing a server ends the processes
// of its sessions.

import { connect } from "catenary";
import { javascript, lisp } from "catenary/live";

await demonstrate("JavaScript", javascript(), async (call) => {
  await call("evaluate-js", {
    code: "const fib = (n: number): number => (n < 2 ? n : fib(n - 1) + fib(n - 2)); fib(20)",
  });
  await call("evaluate-js", { code: "console.log('working'); [1, 2, 3].map(fib)" });
  await call("list-variables", {});
  await call("evaluate-js", { code: "fib.of(3)" });

  await call(
    "evaluate-js",
    { code: "function forever() { for (;;); }\nconsole.log('on and on'); forever()" },
    "interrupt",
  );
  await call("evaluate-js", { code: "fib(10)" });

  // Another session is another process, with none of these definitions.
  await call("evaluate-js", { code: "typeof fib", session: "other" });
});

await demonstrate("Common Lisp", lisp(), async (call) => {
  const { isError } = await call("evaluate-lisp", { code: "(defun sq (x) (* x x)) (values (sq 5) (sq 6))" });
  if (isError) return; // the result says what to install

  await call("evaluate-lisp", {
    code: '(defpackage :shop (:use :cl))\n(in-package :shop)\n(defvar *stock* (list "tea"))',
  });
  await call("list-definitions", {});
  await call("evaluate-lisp", { code: "(first *stok*)" });

  await call("evaluate-lisp", { code: '(format t "on and on") (loop)' }, "interrupt");
  await call("evaluate-lisp", { code: "*stock*" });
});

/**
 * @param {string} title
 * @param {import("catenary/live").Live} server
 * @param {(call: (tool: string, args: object, then?: "interrupt") => Promise<import("catenary").CallToolResult>) => Promise<void>} steps
 */
async function demonstrate(title, server, steps) {
  console.log(`# ${title}`);
  const client = await connect(server);
  try {
    await steps(async (tool, args, then) => {
      console.log(`\n${tool} ${Object.values(args).join(" in ")}`.trimEnd());
      // Output arrives as progress while the code runs; the first means that the loop has begun.
      const onProgress = then && (() => void client.callTool("interrupt-session"));
      const result = await client.callTool(tool, args, { onProgress });
      console.log(result.content[0].text);
      return result;
    });
  } finally {
    await client.close();
    await server.close();
  }
  console.log();
}
