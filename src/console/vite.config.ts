import path from 'node:path';
import { defineConfig } from 'vite';

/** Builds the console into dist/console: an HTML page, and files whose names contain a hash of their content. */
export default defineConfig({
  root: import.meta.dirname,
  // Relative to the page at /console, so that a proxy may serve both below another path.
  base: './',
  // Without the form for development, which would put the paths of the building machine into the page.
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
  build: {
    outDir: path.resolve(import.meta.dirname, '../../dist/console'),
    assetsDir: 'console',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
  logLevel: 'warn',
});
