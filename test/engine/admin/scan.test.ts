import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { expect, onTestFinished, test } from 'vitest';
import { scanStore } from '../../../src/engine/admin/scan.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { beginLatentFit, hasLatentSpace, putLatentFit } from '../../../src/engine/store/latent-spaces.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { insertStandingQuery, putStandingTexts, standingVersion } from '../../../src/engine/store/standing.ts';
import { LATENT_DIMENSIONS, LATENT_TEXT, type LatentSpace, stemHash } from '../../../src/engine/text/latent-space.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
/** Enough words for a text that a latent space is fitted to. */
const LONG = Array.from({ length: LATENT_TEXT.words }, (_, place) => `word${place}`).join(' ');
const SPACE: LatentSpace = {
  hashes: Uint32Array.of(stemHash('quillfeather')),
  weights: Float32Array.of(1),
  vectors: new Int8Array(LATENT_DIMENSIONS),
};

/** Scans a file with one text and a latent space, and redacts what is found. @returns whether the space is there */
async function keepsSpace(content: string): Promise<boolean> {
  const store = openStore(path.join(tempFolder(), 'scan.sqlite'), { role: 'worker', create: true });
  onTestFinished(() => store.close());
  await seedMemories(store, [{ content }], NOW);
  store.write(() => {
    const fit = { at: NOW, memories: 1, numbers: '' };
    putLatentFit(store, beginLatentFit(store), { fit, space: SPACE });
  });
  const write = { store, indexes: new Map(), config: readConfig({}), now: NOW, newId: uuidv7, writtenBy: null };
  for await (const finding of scanStore(store, { userId: undefined, onProgress: () => {} }))
    store.write(() => finding.redact({ ...write, backlog: { atMost: 0 } }));
  return store.read(() => hasLatentSpace(store));
}

test('a standing query whose text is redacted is compared by its new text, of whatever length', async () => {
  const store = openStore(path.join(tempFolder(), 'scan.sqlite'), { role: 'worker', create: true });
  onTestFinished(() => store.close());
  await seedMemories(store, [{ content: 'one' }], NOW);
  const query = { query: 'What did ana@quillfeather.dev write?', filter: {}, given: {} };
  const queryNo = store.write(() => insertStandingQuery(store, query, { id: 'a', writerNo: null, now: NOW }));
  for (const text of ['What did [email] write?', 'What did [EMAIL] write?']) {
    const before = store.read(() => standingVersion(store));
    store.write(() => putStandingTexts(store, queryNo, { ...query, query: text }));
    expect(store.read(() => standingVersion(store))).not.toBe(before);
  }
});

test('what is redacted in a long text is forgotten by the latent space, which may know its words', async () => {
  const address = 'ana@quillfeather.dev';
  expect(await keepsSpace(`${LONG} and writes to ${address}`)).toBe(false);
  expect(await keepsSpace(`She writes to ${address}`)).toBe(true);
  expect(await keepsSpace(LONG)).toBe(true);
});
