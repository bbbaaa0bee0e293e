import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { appendEmbedLog } from '../../src/engine/store/embeddings.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import type { EmbedLogEntry } from '../../src/engine/types.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

const CALL: EmbedLogEntry = {
  at: Date.now(),
  provider: 'openai',
  model: 'a-model',
  server: 0,
  purpose: 'document',
  texts: 64,
  tokens: 2_000,
  outputTokens: 0,
  ms: 12,
  costUsd: 0.25,
  error: null,
};

/** A server whose log holds these calls. */
async function serve(calls: readonly EmbedLogEntry[]) {
  const folder = tempFolder();
  const store = openStore(path.join(folder, 'cairn.sqlite'), { role: 'worker', create: true });
  store.write(() => calls.forEach((call) => appendEmbedLog(store, call)));
  store.close();
  const api = await startApi({ folder });
  onTestFinished(() => api.stop());
  return (args: string[]) => runCairn(args, { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });
}

test('the sums are shown by day and model, with what they cost', async () => {
  const cairn = await serve([CALL, CALL, { ...CALL, purpose: 'query', texts: 1, tokens: 5, costUsd: 0.5 }]);
  const { code, stdout } = await cairn(['embeddings']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\d{4}-\d\d-\d\d +a-model +document +2 +0 +128 +4,000 +\$0\.5000 +0 +0$/m);
  expect(stdout).toMatch(/^all +3 +0 +129 +4,005 +\$1\.00 +0 +0$/m);
});

test('failed calls are shown with their reason', async () => {
  const error = { code: 'rate_limited', message: 'the embedding provider asked for a pause' };
  const cairn = await serve([CALL, { ...CALL, costUsd: 0, error }]);
  const { stdout } = await cairn(['embeddings', 'failures']);
  expect(stdout).toContain('rate_limited: the embedding provider asked for a pause');
  expect(stdout.match(/a-model/g)).toHaveLength(1);
});

test('where there are none it says so', async () => {
  const cairn = await serve([]);
  expect((await cairn(['embeddings'])).stdout).toBe('No calls of a provider.\n');
  expect((await cairn(['embeddings', 'failures'])).stdout).toBe('No failed calls.\n');
});
