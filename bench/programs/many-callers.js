// Opens sessions with streams, and subscriptions, and counts the notifications of each. Uses bare sockets, because it
// opens thousands. Commands on the IPC channel: `{ open }`, `{ until }`, `"counts"`. Exits when the channel closes.

import { connect } from "node:net";

const NOTIFICATION = "notifications/tools/list_changed";
const JSON_BODY = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
const SESSION = "2025-11-25";
const STATELESS = "2026-07-28";

const [, , url = "", localAddress] = process.argv;
const { hostname, port, host, pathname } = new URL(url);

/** The number of notifications on each stream. */
const received = [];
let ended = 0;
let waiting;

function openSocket(data) {
  const socket = connect({ host: hostname, port: Number(port), localAddress, noDelay: true });
  socket.setEncoding("latin1");
  socket.on("error", () => undefined);
  socket.write(data);
  return socket;
}

function request(method, headers, body) {
  const length = body === undefined ? "" : `Content-Length: ${body.length}\r\n`;
  return `${method} ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${headers}${length}\r\n${body ?? ""}`;
}

/** Sends a request on a connection of its own, and returns the whole response. */
function post(headers, body) {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = openSocket(request("POST", `${JSON_BODY}${headers}Connection: close\r\n`, body));
    socket.on("data", (chunk) => (text += chunk));
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}

/** Opens a stream. It counts notifications as soon as `token` was received. */
function openStream(data, token) {
  return new Promise((resolve, reject) => {
    const socket = openSocket(data);
    let text = "";
    const opening = (chunk) => {
      text += chunk;
      if (!text.startsWith("HTTP/1.1 200".slice(0, text.length))) reject(new Error(`Not a stream: ${text}`));
      if (!text.includes(token)) return;
      socket.off("data", opening);
      countNotifications(socket);
      resolve();
    };
    socket.on("data", opening);
    socket.on("close", () => reject(new Error(`The server closed the connection: ${text}`)));
  });
}

function countNotifications(socket) {
  const index = received.push(0) - 1;
  // A notification may be split between two chunks.
  let tail = "";
  socket.on("data", (chunk) => {
    const text = tail + chunk;
    for (let at = text.indexOf(NOTIFICATION); at >= 0; at = text.indexOf(NOTIFICATION, at + NOTIFICATION.length))
      count(index);
    tail = text.slice(1 - NOTIFICATION.length);
  });
  socket.on("close", () => (ended += 1));
}

function count(index) {
  received[index] += 1;
  if (waiting === undefined || received[index] !== waiting.until) return;
  waiting.left -= 1;
  if (waiting.left === 0) finish();
}

function finish() {
  waiting = undefined;
  process.send?.({ received: true });
}

async function openSession(withStream) {
  const params = { protocolVersion: SESSION, capabilities: {}, clientInfo: { name: "many-callers", version: "1" } };
  const opened = await post("", JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }));
  const id = /\r\nmcp-session-id: (\S+)/i.exec(opened)?.[1];
  if (id === undefined) throw new Error(`No session: ${opened}`);
  const headers = `MCP-Protocol-Version: ${SESSION}\r\nMcp-Session-Id: ${id}\r\n`;
  const accepted = await post(headers, '{"jsonrpc":"2.0","method":"notifications/initialized"}');
  if (!accepted.startsWith("HTTP/1.1 202")) throw new Error(`Not accepted: ${accepted}`);
  if (withStream) await openStream(request("GET", `Accept: text/event-stream\r\n${headers}`), "\r\n\r\n");
}

async function openSubscription() {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { notifications: { toolsListChanged: true }, _meta: meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params });
  const headers = `${JSON_BODY}MCP-Protocol-Version: ${STATELESS}\r\nMcp-Method: subscriptions/listen\r\n`;
  await openStream(request("POST", headers, body), "notifications/subscriptions/acknowledged");
}

async function open({ sessions, streams, subscriptions }) {
  let session = 0;
  let subscription = 0;
  const work = async () => {
    while (session < sessions) await openSession((session += 1) <= streams);
    while (subscription < subscriptions) {
      subscription += 1;
      await openSubscription();
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

async function obey(message) {
  if (message === "counts") {
    process.send?.({ streams: received.length, ended, min: Math.min(...received), max: Math.max(...received) });
  } else if ("until" in message) {
    const left = received.filter((number) => number < message.until).length;
    waiting = { until: message.until, left };
    if (left === 0) finish();
  } else {
    try {
      await open(message.open);
      process.send?.({ opened: true });
    } catch (error) {
      process.send?.({ failed: error.message });
    }
  }
}

process.on("message", (message) => void obey(message));
process.once("disconnect", () => process.exit());
