import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { expect, test } from 'vitest';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What of Node a browser has, too; all else is missing in the realm in which the bundle runs. */
const WEB = {
  AbortController,
  AbortSignal,
  Blob,
  FormData,
  Headers,
  Response,
  TextDecoder,
  URL,
  URLSearchParams,
  crypto,
};

test('a bundle for browsers is small, and asks a real server with what a browser has', async () => {
  const folder = tempFolder();
  await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      outDir: folder,
      minify: true,
      lib: {
        entry: path.resolve(import.meta.dirname, '../../src/client/index.ts'),
        formats: ['iife'],
        name: 'cairn',
        fileName: () => 'cairn.js',
      },
    },
  });
  const bundle = fs.readFileSync(path.join(folder, 'cairn.js'), 'utf8');
  expect(gzipSync(bundle).length).toBeLessThanOrEqual(12 * 1024);
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const page = vm.createContext({ ...WEB, fetch, setTimeout, clearTimeout });
  const ask = `${bundle};
    const client = cairn.createClient(${JSON.stringify({ url: api.url, key: ADMIN_KEY })});
    client.addMemory({ content: 'Pages can remember, too.', user_id: 'ana' })
      .then(() => client.queryMemories({ query: 'remember', filters: { user_id: 'ana' } }))
      .then(({ matches }) => matches.map(({ content }) => content).join());`;
  expect(await vm.runInContext(ask, page)).toBe('Pages can remember, too.');
});
