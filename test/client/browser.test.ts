import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import vm from 'node:vm';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type * as Client from '../../src/client/index.ts';
import { browserTest, openPage, useBrowser } from '../support/console-browser.ts';
import { bundleClient } from '../support/bundle-client.ts';
import { callEverything, EVERYTHING } from '../support/call-everything.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The client as a page loads it: in a real browser, and in a realm that has nothing but what browsers have. */

let bundle: string;
beforeAll(async () => void (bundle = await bundleClient('iife')));
useBrowser();

/** Serves a page with the bundle, from an origin that is not the server's. */
async function startSite(): Promise<string> {
  const site = http.createServer((_request, reply) => {
    reply.setHeader('content-type', 'text/html; charset=utf-8');
    reply.end(`<!doctype html><title>Page</title><link rel="icon" href="data:,"><script>${bundle}</script>`);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  return `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
}

test('a bundle for browsers has at most 12 kB', () => {
  expect(gzipSync(bundle).length).toBeLessThanOrEqual(12 * 1024);
});

browserTest('a page of an origin that is allowed uses all of the client', async () => {
  const site = await startSite();
  const settings = { OM_VEC_DIM: '256', OM_CORS_ORIGINS: site };
  await using api = await startApi({ folder: tempFolder(), workers: true, settings });
  const page = await openPage(site);
  const result = await page.evaluate(callEverything, { url: api.url, key: ADMIN_KEY }).catch((error: Error) => {
    throw new Error(error.message.split('\n')[0]); // The rest names places of the page, which no source map knows.
  });
  expect(result).toEqual(EVERYTHING);
});

browserTest('a page of another origin reaches nothing', async () => {
  const site = await startSite();
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const page = await openPage(site);
  const code = await page.evaluate(
    async (connection) => {
      const { cairn } = globalThis as unknown as { readonly cairn: typeof Client };
      const client = cairn.createClient({ ...connection, retries: 0 });
      return client.getStats().then(
        () => 'an answer',
        (error: Client.CairnError) => error.code,
      );
    },
    { url: api.url, key: ADMIN_KEY },
  );
  expect(code).toBe('unreachable');
});

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

test('the bundle asks a real server with what a browser has', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const page = vm.createContext({ ...WEB, fetch, setTimeout, clearTimeout });
  const ask = `${bundle};
    const client = cairn.createClient(${JSON.stringify({ url: api.url, key: ADMIN_KEY })});
    client.addMemory({ content: 'Pages can remember, too.', user_id: 'ana' })
      .then(() => client.queryMemories({ query: 'remember', filters: { user_id: 'ana' } }))
      .then(({ matches }) => matches.map(({ content }) => content).join());`;
  expect(await vm.runInContext(ask, page)).toBe('Pages can remember, too.');
});
