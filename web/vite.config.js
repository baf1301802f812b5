// How the pages of the console are built. They work under any path, and under a Content-Security-Policy that allows no
// inline script and no inline style.

/** @type {import("vite").UserConfig} */
const config = {
  root: import.meta.dirname,
  base: "./",
  build: {
    outDir: "../dist/console/web",
    emptyOutDir: true,
    // Those that have light-dark() in CSS.
    target: ["chrome123", "firefox128", "safari17.5"],
    modulePreload: { polyfill: false },
    // What is inlined would be a data: URL, which the policy refuses.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
};

export default config;
