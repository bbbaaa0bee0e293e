import { expect, test } from 'vitest';
import { rebuildText } from '../../src/engine/admin/rebuild-text.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { silentLogger, type Logger } from '../../src/engine/ports.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import { openTestEngine } from '../support/engine-fixture.ts';

const TEXTS = ['a lamp that is lit at dusk', 'lamps of brass', 'a boat that leaves at dawn', 'dusk over the boats'];

/** A file of memories whose word index says that it has the other format that SQLite knows. */
async function makeFileOfOtherFormat(): Promise<{ file: string; hits: unknown }> {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  for (const content of TEXTS) await fixture.add({ content });
  await fixture.drain();
  const { hits } = await fixture.tenant.query({ query: 'lamp at dusk', k: 5, filter: {}, reinforce: false });
  fixture.store.db.unsafeMode(true);
  fixture.store.db.prepare(`UPDATE memory_text_config SET v = 5 WHERE k = 'version'`).run();
  return { file: fixture.file, hits: outlineOf(hits) };
}

const outlineOf = (hits: readonly { memory: { id: string }; score: number }[]) =>
  hits.map(({ memory, score }) => [memory.id, Number(score.toFixed(9))]);

test('queries of a word index whose format is not known are answered, counted and logged once a file', async () => {
  const { file, hits } = await makeFileOfOtherFormat();
  expect(hits).toHaveLength(3);
  const warnings: unknown[] = [];
  const logger: Logger = { ...silentLogger, warn: (fields, event) => void warnings.push([event, fields]) };
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' }, file });
  const engine = await openEngine({ config: fixture.engine.config, clock: fixture.clock, writer: 'inline', logger });
  const tenant = await engine.tenant('default');
  for (let round = 0; round < 3; round += 1) {
    const answer = await tenant.query({ query: 'lamp at dusk', k: 5, filter: {}, reinforce: false });
    expect(outlineOf(answer.hits)).toEqual(hits);
  }
  // What is written goes on, too.
  await fixture.add({ content: 'a lamp of glass' });
  const { hits: more } = await tenant.query({ query: 'glass lamp', k: 1, filter: {} });
  expect(more[0]!.memory.content).toBe('a lamp of glass');
  expect(warnings).toEqual([
    ['word_index_format_unknown', expect.objectContaining({ file: 'cairn.sqlite', readBy: 'fts5-match' })],
  ]);
  expect(await engine.metrics.registry.metrics()).toMatch(/^cairn_word_index_fallbacks_total 1$/m);
  await engine.close();
});

test.each(['fts5-direct', 'fts5-match'])('OM_WORD_INDEX=%s is what reads the index', async (choice) => {
  const { file, hits } = await makeFileOfOtherFormat();
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', OM_WORD_INDEX: choice }, file });
  const answer = fixture.tenant.query({ query: 'lamp at dusk', k: 5, filter: {}, reinforce: false });
  if (choice === 'fts5-direct') await expect(answer).rejects.toThrow(/OM_WORD_INDEX=auto/);
  else expect(outlineOf((await answer).hits)).toEqual(hits);
  expect(await fixture.engine.metrics.registry.metrics()).toMatch(/^cairn_word_index_fallbacks_total 0$/m);
});

test('a rebuilt word index has the format that is known', async () => {
  const { file, hits } = await makeFileOfOtherFormat();
  const store = openStore(file, { role: 'worker' });
  rebuildText(store);
  store.close();
  await using fixture = await openTestEngine({
    settings: { OM_EMBEDDINGS: 'none', OM_WORD_INDEX: 'fts5-direct' },
    file,
  });
  const answer = await fixture.tenant.query({ query: 'lamp at dusk', k: 5, filter: {}, reinforce: false });
  expect(outlineOf(answer.hits)).toEqual(hits);
});
