// A JSON Schema with one property of each common kind, for tests of validation and type inference.

export const person = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0 },
    tags: { type: "array", items: { type: "string" } },
    home: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
  required: ["name", "home"],
  additionalProperties: false,
} as const;
