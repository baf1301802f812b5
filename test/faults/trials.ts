// The trials that there are: one end that speaks everything, one of each style alone with callers of both, and the
// three of them merged.

import type { Plan } from "./callers.ts";
import type { Trial } from "./trial.ts";

const OLDEST = "2024-11-05";
const SESSION = "2025-11-25";
const EXCHANGE = "2026-07-28";

const SESSIONS: readonly Plan[] = [
  { name: "old", style: "session", revision: OLDEST, door: "sse" },
  { name: "session", style: "session", revision: SESSION, door: "http", holds: true },
];
const EXCHANGES: readonly Plan[] = [
  { name: "stateless", style: "stateless", revision: EXCHANGE, door: "http", holds: true },
  { name: "asked-exchange", style: "stateless", revision: EXCHANGE, door: "http", asked: true },
];
const SESSION_AT_HOME: Plan = {
  name: "asked-session",
  style: "session",
  revision: SESSION,
  door: "stdio",
  asked: true,
  holds: true,
};
const EXCHANGE_AT_HOME: Plan = {
  name: "home-exchange",
  style: "stateless",
  revision: EXCHANGE,
  door: "stdio",
  asked: true,
};

export const TRIALS: readonly Trial[] = [
  { title: "an end of both styles", ends: ["both="], plans: [...SESSIONS, ...EXCHANGES, SESSION_AT_HOME] },
  { title: "an end of sessions", ends: [`old=${SESSION}`], plans: [...SESSIONS, ...EXCHANGES, EXCHANGE_AT_HOME] },
  { title: "an end of exchanges", ends: [`new=${EXCHANGE}`], plans: [...SESSIONS, ...EXCHANGES, SESSION_AT_HOME] },
  {
    title: "three ends merged",
    ends: ["both=", `old=${SESSION}`, `new=${EXCHANGE}`],
    plans: [...SESSIONS, ...EXCHANGES, SESSION_AT_HOME],
  },
];
