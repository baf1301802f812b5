// Reports the cost of this process: on stderr when it exits (CPU time and peak memory), or over the IPC channel each
// time the parent sends a message.

export function reportCostAtExit() {
  process.on("exit", () => {
    const { user, system } = process.cpuUsage();
    const { maxRSS } = process.resourceUsage();
    process.stderr.write(`${JSON.stringify({ cpuMs: (user + system) / 1000, maxRssKb: maxRSS })}\n`);
  });
}

/**
 * Sends the URL of the server to the parent, then the cost for each message. Exits when the channel closes.
 * @param {string} url
 */
export function reportCostOnRequest(url) {
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuMs: (user + system) / 1000, rssMb: process.memoryUsage.rss() / 1024 / 1024 });
  });
  process.once("disconnect", () => process.exit());
  process.send?.({ url });
}
