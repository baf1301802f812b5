// Resources: a text, bytes, a template, and one to watch.

import type { Server } from "../../../src/index.ts";
import { PNG } from "./samples.ts";

export function addResources(server: Server): void {
  server
    .resource(
      "test://static-text",
      { name: "Static Text Resource", description: "A text that never changes", mimeType: "text/plain" },
      () => "This is the content of the static text resource.",
    )
    .resource(
      "test://static-binary",
      { name: "Static Binary Resource", description: "Bytes that never change", mimeType: "image/png" },
      () => Buffer.from(PNG, "base64"),
    )
    .resource(
      "test://watched-resource",
      { name: "Watched Resource", description: "A text that can be watched", mimeType: "text/plain" },
      () => "Watched resource content",
    )
    .template(
      "test://template/{id}/data",
      { name: "Resource Template", description: "Data by id", mimeType: "application/json" },
      ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
    );
}
