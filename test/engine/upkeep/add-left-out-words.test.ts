import { expect, onTestFinished, test } from 'vitest';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

const RUSSIAN = 'Мы с братом ездили по старым городам на Волге.';
const GERMAN = 'Der Nachbar hat die alten Häuser in der Gasse gekauft und wird sie renovieren.';

/** A file whose word index is as a version left it that knew neither stems nor paths. */
async function openOld() {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  for (const content of [RUSSIAN, GERMAN, 'We visited the old towns on the river.']) await fixture.add({ content });
  await fixture.add({ content: 'Expired tokens are refused.', files: ['src/auth/gate.ts'] });
  await fixture.drain();
  const { db } = fixture.store;
  const rows = db.prepare(`SELECT seq AS memoryNo, content FROM memories`).all() as Record<string, unknown>[];
  const put = db.prepare(
    `INSERT OR REPLACE INTO memory_text (rowid, context, title, content, gist, entities, tags, identifiers)
     VALUES (?, '', '', ?, '', '', '', '')`,
  );
  for (const { memoryNo, content } of rows) put.run(memoryNo, String(content).normalize('NFKC').toLowerCase());
  db.prepare(`INSERT INTO text_rewrites (memory) VALUES (NULL)`).run();
  db.prepare(`DELETE FROM store_info WHERE key = 'words_complete'`).run();
  const find = async (query: string) => {
    const { hits } = await fixture.tenant.query({
      query,
      k: 5,
      filter: {},
      reinforce: false,
      vectorWeight: 0,
      minScore: 0,
    });
    return hits.map(({ memory }) => memory.content);
  };
  return { fixture, find };
}

test('the word index of an older file gets its stems in the background', async () => {
  const { fixture, find } = await openOld();
  expect(await find('какой город')).toEqual([]);
  expect(await find('Wer hat mein Haus?')).not.toContain(RUSSIAN);
  const names = await runDueSchedules(fixture.maintenance);
  expect(names).toContain('words');
  expect(await find('какой город')).toEqual([RUSSIAN]);
  expect((await find('Wo ist das Haus?'))[0]).toBe(GERMAN);
  expect(fixture.get(`SELECT value FROM store_info WHERE key = 'words_complete'`)).toBe('done');
});

test('the word index of an older file gets the paths of files in the background', async () => {
  const { fixture, find } = await openOld();
  expect(await find('src/auth/gate.ts')).not.toContain('Expired tokens are refused.');
  await runDueSchedules(fixture.maintenance);
  expect((await find('auth gate'))[0]).toBe('Expired tokens are refused.');
});
