// The server of LLM-Pharo-MCP: a tool that evaluates, a resource with the version, details of classes, and a prompt that
// asks for a code review. The tool evaluates in a live Smalltalk session, which is Amber unless PHARO names a program such
// as gst. The version and the details are data in this file, so Pharo is not needed.

import { connect, createServer, McpError } from "catenary";
import { smalltalk } from "catenary/live";

/** @typedef {{ superclass: string, package: string, comment: string }} ClassDetails */

/** @type {Map<string, ClassDetails>} */
const classes = new Map([
  ["Object", { superclass: "ProtoObject", package: "Kernel", comment: "The root of most classes." }],
  [
    "OrderedCollection",
    {
      superclass: "SequenceableCollection",
      package: "Collections-Sequenceable",
      comment: "A list that grows at both ends.",
    },
  ],
  [
    "Set",
    { superclass: "HashedCollection", package: "Collections-Unordered", comment: "Each element once, in no order." },
  ],
]);

/** A client of the live session, once an expression is evaluated. */
const image = lazily(() => connect(smalltalk(process.env.PHARO ? { command: process.env.PHARO } : {})));

export function createPharo() {
  return createServer({ name: "pharo-mcp", version: "0.1.0", listChanged: false, subscribe: false })
    .tool(
      "evaluate",
      {
        description: "Evaluate a Pharo expression",
        input: {
          type: "object",
          properties: { expression: { type: "string", description: "Pharo expression to evaluate" } },
          required: ["expression"],
        },
      },
      async ({ expression }, { signal }) => {
        const { content, isError } = await (await image()).callTool("evaluate", { expression }, { signal });
        const [{ text }] = /** @type {[{ text: string }]} */ (content);
        if (!isError) return text;
        // The session writes [ERROR], the class of the error, its message on the next line, and then the backtrace.
        const [message] = text.replace(/^\[ERROR\] .*\n/, "").split("\n\n[Backtrace]");
        return { content: [{ type: "text", text: `Error: ${message}` }], isError: true };
      },
    )
    .resource(
      "pharo://system/version",
      { name: "System Version", description: "Current Pharo version", mimeType: "text/plain" },
      () => "Pharo 13.0",
    )
    .template(
      "pharo://class/{className}",
      { name: "Class Details", description: "Get details for a Pharo class", mimeType: "application/json" },
      ({ className }) => {
        const details = classes.get(className);
        if (details === undefined) throw McpError.of("resource_not_found", `No class ${className}`, { className });
        return { name: className, ...details };
      },
    )
    .prompt(
      "review-class",
      {
        description: "Review a Pharo class",
        arguments: { className: { description: "The class to review", required: true } },
      },
      ({ className }) => ({
        description: `Code review for ${className}`,
        messages: [{ role: "user", content: { type: "text", text: `Please review the class ${className}.` } }],
      }),
    );
}

/**
 * Calls the function once, when its result is first needed.
 * @template T
 * @param {() => T} make
 * @returns {() => T}
 */
function lazily(make) {
  /** @type {T | undefined} */
  let made;
  return () => (made ??= make());
}

export const server = createPharo();
