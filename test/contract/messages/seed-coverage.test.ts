// Compares the golden files with the seed documents: each piece in braces of each fenced block is either a golden message
// with the same bytes, or left out with a reason; never both, never twice.

import { describe, expect, it } from "vitest";
import { TRANSCRIPTS } from "./golden-transcripts.ts";
import { LEFT_OUT } from "./seed-exceptions.ts";
import { itWithSeeds, onOneLine, piecesOf, seedNames } from "./seeds.ts";

describe("golden files and seeds", () => {
  it("have each line at most once, and a reason for each added message", () => {
    const lines = TRANSCRIPTS.flatMap(({ seed, entries }) => entries.map(({ line }) => line && `${seed}:${line}`));
    const inSeed = lines.filter((line) => line !== undefined);
    expect(inSeed.length).toBeGreaterThan(60);
    expect(new Set(inSeed).size).toBe(inSeed.length);
    for (const { entries } of TRANSCRIPTS) {
      for (const entry of entries) expect(entry.line === undefined).toBe((entry.added ?? "") !== "");
    }
  });

  itWithSeeds("cover each piece of each block of the five seeds", () => {
    expect(seedNames()).toHaveLength(5);
    const counted = seedNames().map((seed) => {
      const golden = new Set(
        TRANSCRIPTS.filter((transcript) => transcript.seed === seed).flatMap(({ entries }) =>
          entries.flatMap(({ line }) => line ?? []),
        ),
      );
      const leftOut = new Set(LEFT_OUT.filter((piece) => seed.startsWith(piece.seed)).map(({ line }) => line));
      const lines = new Set(piecesOf(seed).map(({ line }) => line));
      const found = { seed, lines: lines.size, golden: golden.size, leftOut: leftOut.size };
      expect([...lines].filter((line) => !golden.has(line) && !leftOut.has(line))).toEqual([]);
      expect([...golden, ...leftOut].filter((line) => !lines.has(line))).toEqual([]);
      expect([...golden].filter((line) => leftOut.has(line))).toEqual([]);
      return found;
    });
    expect(counted.map(({ golden, leftOut }) => golden + leftOut)).toEqual(counted.map(({ lines }) => lines));
  });

  itWithSeeds("have the bytes of the seeds; pieces of several lines without comments and spaces", () => {
    for (const { seed, entries } of TRANSCRIPTS) {
      const pieces = piecesOf(seed);
      for (const { line, text } of entries) {
        if (line === undefined) continue;
        const here = pieces.filter((piece) => piece.line === line);
        expect(here.map((piece) => onOneLine(piece.text))).toEqual([text]);
      }
    }
  });

  itWithSeeds("leave out pieces that begin as the list says", () => {
    for (const { seed, line, begins, reason } of LEFT_OUT) {
      const name = seedNames().find((candidate) => candidate.startsWith(seed)) ?? "";
      const first = piecesOf(name).find((piece) => piece.line === line)?.text ?? "";
      expect(first.startsWith(begins), `${seed}:${line} ${first}`).toBe(true);
      expect(reason).not.toBe("");
    }
  });
});
