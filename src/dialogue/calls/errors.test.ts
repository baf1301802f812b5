// What crosses a wire of an error that was not meant for one.

import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { toMcpError } from "./errors.ts";

describe("an error of a link", () => {
  it("crosses without what a program has written for whoever runs it, however often it was passed on", () => {
    const exit = new ConnectionError("closed", "node exited with code 1", {
      evidence: "; the end of its stderr:\nsecret",
    });
    expect(exit.message).toBe("node exited with code 1; the end of its stderr:\nsecret");
    const named = new ConnectionError("closed", `The end notes failed: ${exit.message}`, { cause: exit });
    const again = new ConnectionError("closed", `At the link log: ${named.message}`, {
      cause: named,
      mayHaveRun: false,
    });
    expect(toMcpError(again).toBody()).toEqual({
      code: -32603,
      message: "At the link log: The end notes failed: node exited with code 1",
      data: { kind: "unreachable", link: "closed", mayHaveRun: false },
    });
  });
});
