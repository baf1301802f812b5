// Some of the crowd, in a process of its own: opens sessions, each with its stream, and listens, each a stream too,
// and counts what every single one of them hears. Bare sockets: thousands of them must cost little. Told what to do
// by its channel: `{ open }`, `{ until }`, `"counts"`; it ends when the channel does.

import { connect } from "node:net";

const NEWS = "notifications/tools/list_changed";
const JSON_BODY = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
const SESSION = "2025-11-25";
const EXCHANGE = "2026-07-28";

const [, , url = "", localAddress] = process.argv;
const { hostname, port, host, pathname } = new URL(url);

/** How often each stream has heard the news, in the order of their opening. */
const heard = [];
let hungUp = 0;
let waiting;

function socketTo(data) {
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

/** The whole of a short answer, on a connection that then closes. */
function post(headers, body) {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = socketTo(request("POST", `${JSON_BODY}${headers}Connection: close\r\n`, body));
    socket.on("data", (chunk) => (text += chunk));
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}

/** Opens a stream; it counts from the moment at which `token` was seen on it. */
function stream(data, token) {
  return new Promise((resolve, reject) => {
    const socket = socketTo(data);
    let text = "";
    const opening = (chunk) => {
      text += chunk;
      if (!text.startsWith("HTTP/1.1 200".slice(0, text.length))) reject(new Error(`Not a stream: ${text}`));
      if (!text.includes(token)) return;
      socket.off("data", opening);
      listen(socket);
      resolve();
    };
    socket.on("data", opening);
    socket.on("close", () => reject(new Error(`The server hung up: ${text}`)));
  });
}

function listen(socket) {
  const index = heard.push(0) - 1;
  // What may be the beginning of a name that the next chunk completes.
  let tail = "";
  socket.on("data", (chunk) => {
    const text = tail + chunk;
    for (let at = text.indexOf(NEWS); at >= 0; at = text.indexOf(NEWS, at + NEWS.length)) note(index);
    tail = text.slice(1 - NEWS.length);
  });
  socket.on("close", () => (hungUp += 1));
}

function note(index) {
  heard[index] += 1;
  if (waiting === undefined || heard[index] !== waiting.until) return;
  waiting.left -= 1;
  if (waiting.left === 0) finish();
}

function finish() {
  waiting = undefined;
  process.send?.({ heard: true });
}

async function openSession(withStream) {
  const params = { protocolVersion: SESSION, capabilities: {}, clientInfo: { name: "crowd", version: "1" } };
  const opened = await post("", JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }));
  const id = /\r\nmcp-session-id: (\S+)/i.exec(opened)?.[1];
  if (id === undefined) throw new Error(`No session: ${opened}`);
  const headers = `MCP-Protocol-Version: ${SESSION}\r\nMcp-Session-Id: ${id}\r\n`;
  const answer = await post(headers, '{"jsonrpc":"2.0","method":"notifications/initialized"}');
  if (!answer.startsWith("HTTP/1.1 202")) throw new Error(`Not accepted: ${answer}`);
  if (withStream) await stream(request("GET", `Accept: text/event-stream\r\n${headers}`), "\r\n\r\n");
}

async function openListen() {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": EXCHANGE,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { notifications: { toolsListChanged: true }, _meta: meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params });
  const headers = `${JSON_BODY}MCP-Protocol-Version: ${EXCHANGE}\r\nMcp-Method: subscriptions/listen\r\n`;
  await stream(request("POST", headers, body), "notifications/subscriptions/acknowledged");
}

async function open({ sessions, streams, listens }) {
  let session = 0;
  let listen = 0;
  const work = async () => {
    while (session < sessions) await openSession((session += 1) <= streams);
    while (listen < listens) {
      listen += 1;
      await openListen();
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

process.on("message", async (message) => {
  if (message === "counts") {
    process.send?.({ streams: heard.length, hungUp, least: Math.min(...heard), most: Math.max(...heard) });
  } else if ("until" in message) {
    const left = heard.filter((count) => count < message.until).length;
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
});
process.once("disconnect", () => process.exit());
