// Pieces of GNU Smalltalk source: where statements, classes and methods begin, and which variables they have.

import { expect, it } from "vitest";
import { IS_LONG } from "../../../test/support/thoroughness.ts";
import { methodPiece, parseSource } from "./gst-source.ts";

const kinds = (source: string): readonly string[] =>
  parseSource(source).map(({ kind, class: owner = "", text }) => `${kind} ${owner}: ${text.trim()}`);

it.each([
  ["3 + 4", "^3 + 4"],
  ["a := 3. b := a * 2", "a := 3. ^b := a * 2"],
  ["^5", "^5"],
  ["3. 'a.b'. $. ; foo", "3. 'a.b'. ^$. ; foo"],
  ["x := #(1 $] 'it''s'). \"end.\"", "^x := #(1 $] 'it''s'). \"end.\""],
  ["#(1 2) do: [:i | i foo. i bar]. {1. 2}", "#(1 2) do: [:i | i foo. i bar]. ^{1. 2}"],
  ["| x | x := 3. x", "| x | x := 3. ^x"],
  ["| x | x := 3. | y | y := 4. x + y", "| x y |       x := 3.       y := 4. ^x + y"],
  ["Eval [ 3 foo. 4 ]", "3 foo. ^4"],
  ["1.5e3 + 16rFF", "^1.5e3 + 16rFF"],
])("statements: %j ends with its value", (source, text) => {
  expect(parseSource(source).map((piece) => piece.text.trim())).toEqual([text]);
});

it.each(["", "  ", '"only a comment"', "."])("statements: %j has none", (source) => {
  expect(parseSource(source)).toEqual([]);
});

it("statements names what is assigned and what is used", () => {
  const [piece] = parseSource("| t | t := a. x := [:p | | q | q := p. y := Foo new. Bar := q]");
  expect(piece).toMatchObject({ assigned: "x y Bar", globals: "Foo Bar" });
});

it("statements lists the variables of each scope with its lines", () => {
  const [piece] = parseSource("| t |\nt := #(1)\n  collect: [:x | | y |\n    y := x.\n    [:z | z] value: y].\nt");
  expect(piece?.scopes).toBe("1 6 0 0 t\n3 5 1 2 x y\n5 5 1 1 z");
});

it("a definition in GNU Smalltalk splits a class into its parts, each with its line", () => {
  const source = [
    "x := 1.",
    "Object subclass: Pt [",
    "  | x y |",
    "  <comment: 'It''s a point'>",
    "  <category: 'Shapes'>",
    "  Count := 0.",
    "  Pt class >> x: ax [ ^self new setX: ax ]",
    "  Pt class [ | last | last [ ^last ] ]",
    "  setX: ax [ x := ax ]",
    "  + other [ | sum | sum := x + other x. ^sum ]",
    "  - other [ ^(x ] ",
    "]",
    "Pt new",
  ].join("\n");
  const pieces = parseSource(source);
  expect(pieces.map(({ kind, class: owner, line }) => [kind, owner, line])).toEqual([
    ["statements", undefined, 1],
    ["class", "Pt", 2],
    ["comment", "Pt", 4],
    ["variable", "Pt", 6],
    ["method", "Pt class", 7],
    ["class", "Pt class", 8],
    ["method", "Pt class", 8],
    ["method", "Pt", 9],
    ["method", "Pt", 10],
    ["method", "Pt", 11],
    ["statements", undefined, 12],
  ]);
  expect(pieces[1]).toMatchObject({ superclass: "Object", variables: "x y", category: "Shapes" });
  expect(pieces[2]).toMatchObject({ text: "It's a point" });
  expect(pieces[3]).toMatchObject({ name: "Count", text: "^ 0" });
  expect(pieces[8]).toMatchObject({
    text: "+ other [ | sum | sum := x + other x. ^sum ]",
    scopes: "1 1 1 0 other sum",
  });
  expect(pieces[10]).toMatchObject({ text: "\n^Pt new" });
});

it.each([
  ["Pt extend [ foo [ ^1 ] ]", ["method Pt: foo [ ^1 ]"]],
  ["Pt class extend [ foo [ ^1 ] ]", ["method Pt class: foo [ ^1 ]"]],
  ["Pt extend [ | z | ]", ["class Pt: "]],
  ["Pt >> at: i put: v [ ^v ]", ["method Pt: at: i put: v [ ^v ]"]],
  ["Pt class >> new [ ^3 ]. 5", ["method Pt class: new [ ^3 ]", "statements : ^5"]],
  ["Object subclass: Bytes [ <shape: #byte> ]", ["file : Object subclass: Bytes [ <shape: #byte> ]"]],
  ["Object subclass: Pt [ foo [ ^1 ]", ["mistake : expected ] at the end of the definition"]],
  ["Object subclass: #Pt instanceVariableNames: ''", ["statements : ^Object subclass: #Pt instanceVariableNames: ''"]],
])("a definition in GNU Smalltalk: %j", (source, pieces) => {
  expect(kinds(source)).toEqual(pieces);
});

it("a definition in GNU Smalltalk reads chunks", () => {
  const source = "Object subclass: #A!\n!A methodsFor: 'x'!\nfoo\n  ^'hi!!'! bar: b\n  ^b! !\n\nA new foo!";
  expect(parseSource(source).map(({ kind, line, text, category }) => [kind, line, text.trim(), category])).toEqual([
    ["statements", 1, "^Object subclass: #A", undefined],
    ["method", 3, "foo\n  [ ^'hi!' ]", "x"],
    ["method", 4, "bar: b\n  [ ^b ]", "x"],
    ["statements", 7, "^A new foo", undefined],
  ]);
});

it("a definition in GNU Smalltalk puts the body of a method into brackets", () => {
  expect(methodPiece("A", 'foo: a\n  "why"\n  | t |\n  ^a', 1, "p")).toEqual({
    ...{ kind: "method", class: "A", line: 1, category: "p", scopes: "1 4 1 0 a t" },
    text: 'foo: a\n  "why"\n  [ | t |\n  ^a ]',
  });
});

it("a definition in GNU Smalltalk takes brackets around a part of a body for a block", () => {
  const bodies = ["foo\n  [true] whileTrue: []", "foo [true] whileTrue: []. ^1", "foo\n  [ ^1 ]"];
  expect(bodies.map((body) => methodPiece("A", body, 1).text)).toEqual([
    "foo\n  [ [true] whileTrue: [] ]",
    "foo [ [true] whileTrue: []. ^1 ]",
    "foo\n  [ ^1 ]",
  ]);
});

it("a definition in GNU Smalltalk refuses code that is nested so deeply that GNU Smalltalk would crash", () => {
  const deep = `${"(".repeat(200_000)}1${")".repeat(200_000)}`;
  const mistake = { kind: "mistake", line: 1, text: "the code is nested more than 1,000 levels deep" };
  expect(parseSource(deep)).toEqual([mistake]);
  expect(methodPiece("A", `foo ^${deep}`, 1)).toEqual(mistake);
  expect(parseSource(`${"(".repeat(900)}1${")".repeat(900)}`)).toMatchObject([{ kind: "statements" }]);
});

it.runIf(IS_LONG)(
  "a definition in GNU Smalltalk reads long sources in a time that grows with their length only",
  () => {
    expect(parseSource("1!\n".repeat(50_000))).toHaveLength(50_000);
    expect(parseSource(`Object subclass: A [ ${"|a|\n".repeat(50_000)} ]`)).toHaveLength(1);
    expect(parseSource("[:a | | b | b ] value.\n".repeat(50_000))).toHaveLength(1);
  },
);
