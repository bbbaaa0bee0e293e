import fs from 'node:fs';
import path from 'node:path';
import { build } from 'vite';
import { tempFolder } from './temp-folder.ts';

/** Bundles the client as pages load it: `iife` with the global `cairn`, or `es` as a module; minified. */
export async function bundleClient(format: 'iife' | 'es'): Promise<string> {
  const folder = tempFolder();
  const entry = path.resolve(import.meta.dirname, '../../src/client/index.ts');
  await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      outDir: folder,
      minify: true,
      lib: { entry, formats: [format], name: 'cairn', fileName: () => 'cairn.js' },
    },
  });
  return fs.readFileSync(path.join(folder, 'cairn.js'), 'utf8');
}
