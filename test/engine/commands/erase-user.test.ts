import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { cleanAfterErase } from '../../../src/engine/upkeep/clean-after-erase.ts';
import type { NewItem } from '../../../src/engine/types.ts';
import {
  dumpTables,
  expectNoOrphans,
  newMemory,
  openTestEngine,
  type TestEngine,
} from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

/** A word that stands in all that is stored of the user, their name included; it is its own stem. */
const MARK = 'zelquark';
const USER = `${MARK}-user`;

const item = (fields: Partial<NewItem>): NewItem => ({
  ...newMemory({ content: '', userId: USER }),
  ...{ namespace: '', key: 'k', content: null, value: null },
  ...fields,
});

test('an erased user is in no table, and in no byte of the file once it was cleaned', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock, file } = fixture;
  const of = { userId: USER, sessionId: `${MARK}-session` };
  await fixture.add({ content: 'The office of Ben opens at nine.', userId: 'ben' });
  const first = await fixture.add({
    ...of,
    content: `Zoe ${MARK} lives in Oslo near the harbour with Ann Lee.`,
    tags: [MARK],
    files: [`src/${MARK}.ts`],
    metadata: { [MARK]: MARK },
    title: MARK,
    externalId: `${MARK}-external`,
  });
  const second = await fixture.add({ ...of, content: `Zoe ${MARK} lives in Bergen near the harbour with Ann Lee.` });
  await tenant.patchMemory(first.id, { gist: `the ${MARK} gist` });
  await tenant.supersedeMemory({ oldId: first.id, newId: second.id });
  await tenant.putItem(item({ namespace: `${MARK}.settings`, key: `${MARK}-key`, value: { [MARK]: [MARK] } }));
  await tenant.putItem(item({ namespace: `${MARK}.settings`, key: `${MARK}-key`, value: { [MARK]: 2 } }));
  await tenant.putItem(item({ key: `${MARK}-plain`, content: `plain ${MARK}` }));
  await tenant.moveNamespace({ userId: USER, namespace: `${MARK}.settings`, to: `${MARK}.moved` });
  const place = { userId: USER, sessionId: `${MARK}-log` };
  await tenant.changeLog(place, { items: [{ role: 'user', content: MARK }], operationId: `${MARK}-operation` });
  await tenant.changeLog({ ...place, sessionId: `${MARK}-cleared` }, { items: [MARK] });
  await tenant.clearLog({ ...place, sessionId: `${MARK}-cleared` });
  await tenant.addDocument(
    newDocument(await upload(tenant, `# ${MARK}\n\nA page about ${MARK}.`, `${MARK}.md`), {
      ...of,
      title: `${MARK} title`,
      externalId: `${MARK}-document`,
    }),
  );
  await fixture.drain();
  const query = { query: `where does Zoe ${MARK} live`, k: 5, filter: { userIds: [USER] } };
  expect((await tenant.query(query)).hits.length).toBeGreaterThan(0);
  const expects = { query: `what of ${MARK}`, userId: USER, expected: [MARK], forbidden: [`not ${MARK}`] };
  await tenant.putEval({ name: 'questions', guard: false, items: [expects, { query: 'office', expected: [] }] });
  clock.advance(60_000);
  expect(tablesWith(fixture)).toEqual(
    expect.arrayContaining(['documents', 'eval_items', 'memories', 'namespaces', 'session_logs', 'users']),
  );

  await tenant.deleteMemories({ userIds: [USER] });
  expect(tablesWith(fixture)).toEqual([]);
  expectNoOrphans(fixture.store);
  const { events } = await tenant.listEvents({ limit: 1_000 });
  expect(events.filter(({ kind }) => kind === 'memory.deleted')).not.toEqual([]);
  expect(JSON.stringify(events)).not.toContain(MARK);
  // What others have stays.
  expect((await tenant.listMemories({}, { limit: 9, offset: 0 })).map(({ userId }) => userId)).toEqual(['ben']);
  expect((await tenant.getEval('questions')).items).toEqual([{ query: 'office', expected: [] }]);

  await fixture.drain();
  expect(await cleanAfterErase(fixture.maintenance)).toBe(true);
  await fixture.close();
  for (const name of fs.readdirSync(path.dirname(file), { recursive: true, encoding: 'utf8' })) {
    const found = path.join(path.dirname(file), name);
    expect(name).not.toContain(MARK);
    if (fs.statSync(found).isFile()) expect([name, fs.readFileSync(found).includes(MARK)]).toEqual([name, false]);
  }
});

/** Names of the tables that hold the mark, as text or in bytes. */
function tablesWith({ store }: Pick<TestEngine, 'store'>): string[] {
  const hex = Buffer.from(MARK).toString('hex');
  return Object.entries(dumpTables(store, []))
    .filter(([, rows]) => [MARK, hex].some((text) => JSON.stringify(rows).includes(text)))
    .map(([name]) => name)
    .filter((name) => !name.startsWith('memory_text_'));
}
