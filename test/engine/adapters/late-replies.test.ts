import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createEmbedder } from '../../../src/engine/adapters/create-embedder.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { startFakeServer } from '../../support/fake-server.ts';

const DIMENSIONS = 256;
const TIMEOUT_MS = 1_000;
const VECTOR = Array.from({ length: DIMENSIONS }, (_, place) => (place === 0 ? 1 : 0));

/** Keeps this thread from doing anything else. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)), 0, 0, ms);
}

/** Answers, and then lets this thread do nothing for longer than a call may take. */
const answerAndBlock = (reply: object) => (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  block(2 * TIMEOUT_MS);
};

test.each([
  ['openai', 'OM_OPENAI_BASE_URL', { data: [{ object: 'embedding', index: 0, embedding: VECTOR }] }],
  ['ollama', 'OLLAMA_URL', { embeddings: [VECTOR] }],
])('a reply of %s that came in time counts, even if this thread was too busy to read it', async (name, url, reply) => {
  await using server = await startFakeServer(answerAndBlock(reply));
  const embedder = createEmbedder(
    readConfig({
      OM_EMBEDDINGS: name,
      OM_VEC_DIM: String(DIMENSIONS),
      OM_EMBED_TIMEOUT_MS: String(TIMEOUT_MS),
      [url]: server.url,
    }),
  )!;
  await embedder.prepare?.();
  const [vector] = await embedder.embed(['one'], { purpose: 'document' });
  expect(vector).toHaveLength(DIMENSIONS);
});
