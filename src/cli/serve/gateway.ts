// The gateway that a config describes, made ready for a command to serve: mistakes told by their places, inputs asked
// for, and what happens to its ends reported while it runs.

import { chain } from "../../chain/chain.ts";
import type { Gateway } from "../../chain/gateway.ts";
import { gatewayOf, type Config } from "../../config/index.ts";
import { liveUpstream } from "../../config/languages.ts";
import { openConfig, telling } from "../target/config-file.ts";
import type { UpstreamReport } from "./end-report.ts";
import { keepStdio } from "./stdio-guard.ts";

export interface OpenedGateway {
  readonly config: Config;
  readonly gateway: Gateway;
  /** Leaves stdin and stdout to whoever serves on them next. */
  readonly release: () => void;
}

/** What is served where there is no config: what a person reads of it, and what a client may call it. */
export const NO_CONFIG = { what: "a live JavaScript session", name: "js" } as const;

export async function openSession(): Promise<Gateway> {
  return chain().to({ [NO_CONFIG.name]: await liveUpstream("js", {}) });
}

/** `isWire` where stdin is a client's: then nobody is asked. */
export async function openGateway(path: string, report: UpstreamReport, isWire: boolean): Promise<OpenedGateway> {
  const config = await openConfig(path, isWire);
  const release = keepStdio(
    `A module that ${path} uses calls serve() itself: take the call out, and it is served here`,
  );
  const { onNoise, onStderr, onState } = report;
  const gateway = await telling(path, () => gatewayOf(config, { onNoise, onStderr, onState }));
  return { config, gateway, release };
}
