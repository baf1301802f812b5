// What is said where a name is unknown, and which members of a stranger's list count.

import { expect, it } from "vitest";
import { notFound, sound } from "./names.ts";

it("names what was perhaps meant, or what there is", () => {
  const names = ["get_weather", "forecast", "report"];
  const said = (name: string, all: readonly string[] = names): string => notFound("tool", name, all).message;
  expect(said("get_weater")).toBe("There is no tool get_weater; did you mean get_weather?");
  expect(said("Fore")).toBe("There is no tool Fore; did you mean forecast?");
  expect(said("xyz123")).toBe("There is no tool xyz123; there are get_weather, forecast, report");
  expect(said("x", [])).toBe("There is no tool x; the server has none");
  const many = Array.from({ length: 15 }, (_, at) => `some_tool_${at}`);
  expect(said("other", many)).toMatch(/some_tool_11 and 3 more$/);
  expect(said("echo", ["a.echo", "echoes", "b.echo"])).toBe(
    "There is no tool echo alone; name one in full: a.echo, b.echo",
  );
  expect(said("evi", ["evil\u001b[2J"])).toBe("There is no tool evi; did you mean evil\\x1b[2J?");
});

it("takes what has a name", () => {
  expect(sound([{ name: "a" }, { name: 3 }, null, "b", {}], "name" as never)).toEqual([{ name: "a" }]);
  expect(sound({ length: 1 }, "name" as never)).toEqual([]);
  expect(sound(undefined, "name" as never)).toEqual([]);
});
