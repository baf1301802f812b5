// A child tells what it cost: on stderr when it ends (CPU time, and the most memory that it held), or, where it
// serves for long, by its channel each time it is asked.

export function reportCost() {
  process.on("exit", () => {
    const { user, system } = process.cpuUsage();
    const { maxRSS } = process.resourceUsage();
    process.stderr.write(`${JSON.stringify({ cpuMs: (user + system) / 1000, maxRssKb: maxRSS })}\n`);
  });
}

/**
 * Says where it is reached, and then its costs whenever a message asks. It ends when nobody is there to ask.
 * @param {string} url
 */
export function tellCosts(url) {
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuMs: (user + system) / 1000, rssMb: process.memoryUsage.rss() / 1024 / 1024 });
  });
  process.once("disconnect", () => process.exit());
  process.send?.({ url });
}
