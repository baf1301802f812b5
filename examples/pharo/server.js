// A server that describes a Pharo image: its version, its classes, and a prompt that asks for a code review of a class.
// It does not need Pharo: the data is in this file.

import { createServer, McpError } from "catenary";

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

export function createPharo() {
  return createServer({ name: "pharo-mcp", version: "0.1.0", listChanged: false, subscribe: false })
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

export const server = createPharo();
