// Stands in for the modules of Node in bundles for browsers and Workers (field `browser` of package.json). The code that
// needs them is never reached there. A CommonJS file, because esbuild warns of every name that is imported from an ES
// module without it, or from `false`.

// oxlint-disable-next-line import/no-commonjs -- see above
module.exports = {};
