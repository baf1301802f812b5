// Which variables of our environment a program gets.

import { expect, it } from "vitest";
import { inheritedEnvironment, type InheritEnv } from "./program.ts";

const ENV = {
  ...{ HOME: "/home/me", PATH: "/bin", LC_ALL: "C", HTTPS_PROXY: "http://proxy", NODE_EXTRA_CA_CERTS: "/ca.pem" },
  ...{
    GITHUB_TOKEN: "1",
    AWS_SECRET_ACCESS_KEY: "2",
    AWS_REGION: "3",
    NODE_OPTIONS: "--inspect",
    npm_config__auth: "4",
  },
  ...{ CATENARY_TOKEN: "5", CATENARY_INPUT_KEY: "6", CATENARY_CACHE: "7", TERM: "() { :; }" },
};
const SAFE = ["HOME", "PATH", "LC_ALL", "HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "NODE_OPTIONS", "CATENARY_CACHE"];

const names = (inherit: InheritEnv): string[] => Object.keys(inheritedEnvironment(inherit, ENV)).toSorted();

it("a program gets what programs need, and no keys", () => {
  expect(names(false)).toEqual(SAFE.toSorted());
});

it("a program gets the variables that are named, too", () => {
  expect(names(["AWS_*", "(.*)+$"])).toEqual([...SAFE, "AWS_SECRET_ACCESS_KEY", "AWS_REGION"].toSorted());
  expect(names(["GITHUB_TOKEN"])).toEqual([...SAFE, "GITHUB_TOKEN"].toSorted());
  expect(names(["GITHUB", "GITHUB_TOKEN_*", "X*"])).toEqual(SAFE.toSorted());
  expect(names(["*_*_ACCESS*Y", "A*R*GION"])).toEqual([...SAFE, "AWS_SECRET_ACCESS_KEY", "AWS_REGION"].toSorted());
});

it("a program gets everything if wanted, but never the secrets of the gateway", () => {
  const all = Object.keys(ENV).filter((name) => name !== "CATENARY_TOKEN" && name !== "CATENARY_INPUT_KEY");
  expect(names(true)).toEqual(all.toSorted());
  expect(names(["*"])).toEqual(all.filter((name) => name !== "TERM").toSorted());
  expect(names(["CATENARY_*"])).toEqual(SAFE.toSorted());
});
