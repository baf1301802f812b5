// The last words of a child, in bounded memory.

import { describe, expect, it } from "vitest";
import { Tail } from "./tail.ts";

describe("the tail of a stream", () => {
  it("is all of it while it fits", () => {
    const tail = new Tail(8);
    tail.push(Buffer.from("abc"));
    tail.push(Buffer.from("de"));
    expect(tail.text()).toBe("abcde");
  });

  it("is the last bytes, however the chunks fall", () => {
    const text = "the quick brown fox jumps over the lazy dog";
    for (let size = 1; size < 20; size += 1) {
      const tail = new Tail(8);
      for (let at = 0; at < text.length; at += size) tail.push(Buffer.from(text.slice(at, at + size)));
      expect(tail.text()).toBe(text.slice(-8));
    }
  });

  it("does not begin with the rest of a character", () => {
    const tail = new Tail(4);
    tail.push(Buffer.from("é€z"));
    tail.push(Buffer.from("y"));
    expect(tail.text()).toBe("zy");
  });
});
