// What clients get to see of internal errors.

import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { toMcpError } from "./errors.ts";

describe("a ConnectionError", () => {
  it("loses the output of the program, however often it was wrapped", () => {
    const exit = new ConnectionError("closed", "node exited with code 1", {
      diagnostics: "; the end of its stderr:\nsecret",
    });
    expect(exit.message).toBe("node exited with code 1; the end of its stderr:\nsecret");
    const named = new ConnectionError("closed", `The upstream notes failed: ${exit.message}`, { cause: exit });
    const again = new ConnectionError("closed", `In the middleware log: ${named.message}`, {
      cause: named,
      mayHaveRun: false,
    });
    expect(toMcpError(again).toBody()).toEqual({
      code: -32603,
      message: "In the middleware log: The upstream notes failed: node exited with code 1",
      data: { kind: "unreachable", connection: "closed", mayHaveRun: false },
    });
  });
});
