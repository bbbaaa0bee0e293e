import { expect, onTestFinished, test } from 'vitest';
import { expectNoOrphans, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { exportText, importText } from '../../support/portable.ts';
import { notesAbout } from '../../support/topics.ts';

const SETTINGS = { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '8' };

async function open(now = START): Promise<TestEngine> {
  const fixture = await openTestEngine({ settings: SETTINGS });
  fixture.clock.set(now);
  onTestFinished(() => fixture.close());
  return fixture;
}

/** Two hundred memories with all that a memory can have, and the questions that they answer. */
async function filled(): Promise<{ readonly fixture: TestEngine; readonly questions: readonly string[] }> {
  const fixture = await open();
  const { tenant, clock } = fixture;
  const notes = [...notesAbout('garden', 110), ...notesAbout('servers', 90)];
  const ids: string[] = [];
  for (const [at, { content }] of notes.entries()) {
    clock.advance(60_000);
    const eventTime = at % 7 === 0 ? START - at * 3_600_000 : null;
    const place = { userId: at % 3 === 0 ? 'ana' : '', sessionId: at % 5 === 0 ? `talk ${at % 4}` : '' };
    const said = { tags: at % 2 === 0 ? ['even'] : [], metadata: { at }, type: at % 4 === 0 ? 'note' : null };
    const { id } = await fixture.add({ content, ...place, ...said, eventTime, importance: at % 9 === 0 ? 0.9 : null });
    ids.push(id);
  }
  await fixture.drain();
  // A memory that is gone leaves a gap, and those that led to it lead elsewhere.
  await tenant.deleteMemory(ids[20]!);
  await tenant.patchMemory(ids[2]!, { content: 'The quince by the pond was moved in May.', tags: ['moved'] });
  await tenant.patchMemory(ids[2]!, { title: 'Quince' });
  await tenant.supersedeMemory({ oldId: ids[4]!, newId: ids[5]! });
  await tenant.supersedeMemory({ oldId: ids[5]!, newId: ids[7]! });
  await tenant.contradictMemories({ a: ids[11]!, b: ids[8]!, winner: ids[11]! });
  await tenant.linkMemories({ src: ids[10]!, dst: ids[13]!, type: 'supports', weight: 0.9 });
  await tenant.patchMemory(ids[14]!, { status: 'archived' });
  clock.advanceDays(3);
  await tenant.reinforceMemory(ids[16]!, 0.4);
  const item = { gist: '', title: '', entities: null, files: [], type: null, metadata: {}, confidence: 1 };
  const times = { eventTime: null, validFrom: null, validTo: null, expiresAt: null, importance: null };
  for (const namespace of ['settings.editor', '']) {
    const named = { userId: 'ana', namespace, key: 'theme', content: null, value: { theme: 'dark', size: 14 } };
    await tenant.putItem({ ...item, ...times, ...named, tags: ['setting'] });
  }
  const handbook = `# Handbook\n\n${['Alpaca', 'Bison', 'Capybara']
    .map((name) => `## ${name}\n\n${`The keeper of the ${name} writes down what it eats each day. `.repeat(12)}\n`)
    .join('\n')}`;
  await tenant.addDocument(
    newDocument(await upload(tenant, handbook), { userId: 'ana', externalId: 'handbook', tags: ['zoo'] }),
  );
  await fixture.drain();
  const found = await tenant.query({ query: notes[30]!.question, k: 5, filter: {}, reinforce: true });
  expect(found.hits.length).toBeGreaterThan(0);
  await fixture.drain();
  return { fixture, questions: [...notes.map(({ question }) => question), 'what does the bison eat?', 'theme dark'] };
}

async function copyOf(fixture: TestEngine, text: string): Promise<TestEngine> {
  const copy = await open(fixture.clock.now());
  const outcomes = await importText(copy.tenant, text);
  expect(outcomes.filter(({ kind }) => kind !== 'stored' && kind !== 'read')).toEqual([]);
  await copy.drain();
  return copy;
}

/** What an export says, but for the moment of the export and the hash. */
function bodyOf(text: string): string[] {
  return text.split('\n').slice(1, -2);
}

async function answersOf({ tenant }: TestEngine, questions: readonly string[]) {
  const answers = [];
  for (const query of questions) {
    for (const options of [{}, { deepRecall: true, userId: 'ana' }]) {
      const filter = 'userId' in options ? { userIds: ['ana'] } : {};
      const { hits } = await tenant.query({ query, k: 10, filter, reinforce: false, deepRecall: 'userId' in options });
      answers.push(hits.map(({ memory, score, rawScore }) => [memory.id, score.toFixed(9), rawScore.toFixed(9)]));
    }
  }
  return answers;
}

test('an imported export is the same store: rows, links, histories and answers', async () => {
  const { fixture, questions } = await filled();
  const text = await exportText(fixture.tenant);
  const copy = await copyOf(fixture, text);

  expect(bodyOf(await exportText(copy.tenant))).toEqual(bodyOf(text));
  expect(await answersOf(copy, questions)).toEqual(await answersOf(fixture, questions));
  expectNoOrphans(copy.store);
  const waypoints = `SELECT a.id AS src, b.id AS dst, e.similarity FROM edges e JOIN memories a ON a.seq = e.src
    JOIN memories b ON b.seq = e.dst WHERE e.type = 'waypoint' AND e.automatic = 1 ORDER BY 1, 2`;
  expect(copy.all(waypoints)).toEqual(fixture.all(waypoints));
  expect(copy.all(waypoints).length).toBeGreaterThan(20);
  const vectors = `SELECT m.id, v.window_no, hex(v.embedding) FROM vectors v JOIN memories m ON m.seq = v.memory
    ORDER BY 1, 2`;
  expect(copy.all(vectors)).toEqual(fixture.all(vectors));
}, 60_000);
