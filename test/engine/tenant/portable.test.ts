import { randomUUID } from 'node:crypto';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { Tenant } from '../../../src/engine/engine.ts';
import { ImportRehearsal } from '../../../src/engine/tenant/rehearse-import.ts';
import type {
  ExportOptions,
  ImportOutcome,
  PortableLine,
  PortableLink,
  PortableMemory,
} from '../../../src/engine/types.ts';
import { expectNoOrphans, newMemory, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { exportText, importText, jsonLines, portableLines } from '../../support/portable.ts';
import { notesAbout } from '../../support/topics.ts';

const SETTINGS = { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '8' };

async function open(now = START): Promise<TestEngine> {
  const fixture = await openTestEngine({ settings: SETTINGS });
  fixture.clock.set(now);
  return fixture;
}

/** An empty store at the same time. */
async function openCopy({ clock }: TestEngine): Promise<TestEngine> {
  const copy = await open(clock.now());
  onTestFinished(() => copy.close());
  return copy;
}

interface Filled {
  readonly fixture: TestEngine;
  readonly questions: readonly string[];
}

let source: Promise<Filled> | undefined;
afterAll(async () => (await source)?.fixture.close());

/** The store that all tests export; only the last of them changes it. */
const filled = () => (source ??= fill());

/** Some hundred memories with all that a memory can have, and the questions that they answer. */
async function fill(): Promise<Filled> {
  const fixture = await open();
  const { tenant, clock } = fixture;
  const notes = [...notesAbout('garden', 70), ...notesAbout('servers', 50)];
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
  for (const place of [
    { userId: 'ana', sessionId: 'talk 1' },
    { userId: '', sessionId: 'talk 2' },
  ]) {
    await tenant.changeLog(place, { items: [{ role: 'user', content: 'Hello.' }, 'twice', 'twice', null] });
    clock.advance(60_000);
    await tenant.changeLog(place, { items: [[1, { two: 'ö' }], 'gone'] });
    await tenant.popLog(place);
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
  await expect.poll(() => fixture.get('SELECT sum(access_count) FROM memory_dynamics')).toBe(found.hits.length);
  await fixture.drain();
  return {
    fixture,
    questions: [...notes.slice(0, 50).map(({ question }) => question), 'what does the bison eat?', 'theme dark'],
  };
}

async function copyOf(fixture: TestEngine, text: string): Promise<TestEngine> {
  const copy = await openCopy(fixture);
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
  expect(copy.all(waypoints).length).toBeGreaterThan(10);
  const vectors = `SELECT m.id, v.window_no, hex(v.embedding) FROM vectors v JOIN memories m ON m.seq = v.memory
    ORDER BY 1, 2`;
  expect(copy.all(vectors)).toEqual(fixture.all(vectors));
});

test('an import that is repeated stores nothing twice, and conflicts are told', async () => {
  const { fixture } = await filled();
  const text = await exportText(fixture.tenant);
  const copy = await openCopy(fixture);
  const lines = portableLines(text);
  await copy.tenant.importLines(lines.slice(0, 90));
  const whole = await importText(copy.tenant, text);
  expect(whole.slice(0, 90).every(({ kind }) => kind !== 'stored' && kind !== 'refused')).toBe(true);
  expect(whole.some(({ kind }) => kind === 'refused')).toBe(false);
  const again = await importText(copy.tenant, text);
  expect(new Set(again.map(({ kind }) => kind))).toEqual(new Set(['known', 'read']));
  expect(bodyOf(await exportText(copy.tenant)).length).toBe(bodyOf(text).length);
  expectNoOrphans(copy.store);

  const memory = lines.find(({ type }) => type === 'memory') as PortableMemory;
  const codes = await copy.tenant.importLines([
    { ...memory, content: 'something else' },
    { ...memory, version: 9 },
    { ...memory, user_id: 'somebody' },
    { ...memory, id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72', document: { ...PLACE, id: memory.id } },
    { ...LINK, src: memory.id, dst: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72' },
  ]);
  expect(codes.map((outcome) => ('error' in outcome ? outcome.error.code : outcome.kind))).toEqual([
    'conflict',
    'conflict',
    'conflict',
    'not_found',
    'not_found',
  ]);
  expect(bodyOf(await exportText(copy.tenant)).length).toBe(bodyOf(text).length);
});

test('a dry run tells what an import would do, and stores nothing', async () => {
  const { fixture } = await filled();
  const lines = portableLines(await exportText(fixture.tenant));
  const copy = await openCopy(fixture);
  const outcomes = await rehearse(copy.tenant, lines);
  expect(outcomes.filter(({ kind }) => kind === 'refused')).toEqual([]);
  expect(copy.get('SELECT count(*) FROM memories')).toBe(0);
  expect((await rehearse(fixture.tenant, lines)).some(({ kind }) => kind === 'stored')).toBe(false);
});

test('half a document is not found, and becomes visible with its last part', async () => {
  const { fixture } = await filled();
  const lines = portableLines(await exportText(fixture.tenant));
  const isLast = (line: PortableLine) => line.type === 'memory' && line.document?.index === 0;
  const copy = await openCopy(fixture);
  await copy.tenant.importLines(lines.filter((line) => !isLast(line)));
  const ask = () => copy.tenant.query({ query: 'what does the bison eat', k: 5, filter: {}, reinforce: false });
  const isOfZoo = async () => (await ask()).hits.some(({ memory }) => memory.tags.includes('zoo'));
  expect(await isOfZoo()).toBe(false);
  await copy.tenant.importLines(lines.filter(isLast));
  expect(await isOfZoo()).toBe(true);
  const { items } = await copy.tenant.listDocuments({}, { limit: 5, offset: 0 });
  expect(items.map(({ state, externalId }) => [state, externalId])).toEqual([['ready', 'handbook']]);
});

test('a part of a document whose number its document does not have is refused', async () => {
  const { fixture } = await filled();
  const lines = portableLines(await exportText(fixture.tenant)).map((line) =>
    line.type === 'memory' && line.document?.index === 1
      ? { ...line, document: { ...line.document, index: 1_000_000 } }
      : line,
  );
  const copy = await openCopy(fixture);
  const refused = (outcomes: readonly ImportOutcome[]) =>
    outcomes.flatMap((outcome, at) => (outcome.kind === 'refused' && lines[at]!.type === 'memory' ? [outcome] : []));
  expect(refused(await rehearse(copy.tenant, lines))).toHaveLength(1);
  expect(refused(await copy.tenant.importLines(lines))).toMatchObject([{ error: { code: 'invalid' } }]);
  // Without that part the document is not whole, so it is not shown.
  const { items } = await copy.tenant.listDocuments({}, { limit: 5, offset: 0 });
  expect(items.map(({ state }) => state)).toEqual(['processing']);
});

test('vectors that come with an import are not made again', async () => {
  const { fixture } = await filled();
  const text = await exportText(fixture.tenant, { vectors: true });
  const copy = await openCopy(fixture);
  await importText(copy.tenant, text);
  const vectors = `SELECT m.id, v.window_no, hex(v.embedding) FROM vectors v JOIN memories m ON m.seq = v.memory
    ORDER BY 1, 2`;
  const brought = copy.all(vectors);
  expect(brought).toEqual(fixture.all(vectors));
  const before = copy.get('SELECT max(vector_no) FROM vectors');
  await copy.drain();
  expect(copy.all(vectors)).toEqual(brought);
  expect(copy.get('SELECT max(vector_no) FROM vectors')).toBe(before);
});

test.each(['content', 'title'] as const)('vectors of a %s that is redacted on import are made again', async (field) => {
  const redacting = async () => {
    const fixture = await openTestEngine({ settings: { OM_PII: 'redact' } });
    onTestFinished(() => fixture.close());
    return fixture;
  };
  const secret = 'ana@harbour-mail.de';
  const lines = await Promise.all(
    ['The ferry leaves at noon.', 'The bus leaves at one.'].map(async (content, at) => {
      const fixture = await openTestEngine();
      onTestFinished(() => fixture.close());
      await fixture.add({ title: 'A note', content, ...(at === 0 ? { [field]: `Ask ${secret} for it.` } : {}) });
      await fixture.drain();
      const text = await exportText(fixture.tenant, { vectors: true });
      return portableLines(text).find((line) => line.type === 'memory')!;
    }),
  );
  const copy = await redacting();
  expect(await copy.tenant.importLines(lines)).toEqual([{ kind: 'stored' }, { kind: 'stored' }]);
  const ids = 'SELECT DISTINCT m.id FROM vectors v JOIN memories m ON m.seq = v.memory';
  expect(copy.all(ids)).toEqual([{ id: lines[1]!.id }]);
  await copy.drain();
  const again = await redacting();
  await again.tenant.importLines(lines.map((line) => ({ ...line, vectors: undefined })));
  await again.drain();
  const vectors = `SELECT hex(v.embedding) FROM vectors v JOIN memories m ON m.seq = v.memory WHERE m.id = ?`;
  expect(copy.all(vectors, lines[0]!.id)).toHaveLength(1);
  expect(copy.all(vectors, lines[0]!.id)).toEqual(again.all(vectors, lines[0]!.id));
});

test('headings above the parts of a document are redacted on import', async () => {
  await using fixture = await openTestEngine({ settings: { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '0' } });
  const text = `# Harbour\n\nBerths.\n\n## Ask ana@harbour-mail.de\n\n${'The ferry leaves at noon. '.repeat(200)}`;
  await fixture.tenant.addDocument(newDocument(await upload(fixture.tenant, text)));
  await fixture.drain();
  await using copy = await openTestEngine({ settings: { OM_PII: 'redact' } });
  const lines = portableLines(await exportText(fixture.tenant, {}));
  await copy.tenant.importLines(lines);
  const headings = 'SELECT heading_path FROM chunks ORDER BY chunk_index';
  expect(JSON.stringify(fixture.all(headings))).toContain('ana@harbour-mail.de');
  expect(JSON.stringify(copy.all(headings))).toContain('Ask [REDACTED:email]');
  expect(JSON.stringify(copy.all(headings))).not.toContain('ana@harbour-mail.de');
});

test('a line with two vectors of one window is refused by itself', async () => {
  const { fixture } = await filled();
  const lines = portableLines(await exportText(fixture.tenant, { vectors: true })).filter(
    (line) => line.type === 'memory' && line.document === null,
  ) as PortableMemory[];
  const copy = await openCopy(fixture);
  const [vector] = lines[1]!.vectors!;
  const twice = { ...lines[1]!, vectors: [vector!, { ...vector!, role: 'window' as const }] };
  const given = [lines[0]!, twice, lines[2]!];
  const error = { code: 'invalid', message: `vectors: window ${vector!.window} has two vectors of ${vector!.model}` };
  const expected = [{ kind: 'stored' }, { kind: 'refused', error }, { kind: 'stored' }];
  expect(await rehearse(copy.tenant, given)).toEqual(expected);
  expect(await copy.tenant.importLines(given)).toEqual(expected);
  expect(await copy.tenant.importLines([lines[1]!])).toEqual([{ kind: 'stored' }]);
}, 60_000);

test('filters select whole documents and links with both ends, and what changes later stays out', async () => {
  const { fixture } = await filled();
  const { tenant, clock } = fixture;
  const ofZoo = jsonLines(await exportText(tenant, { filter: { tags: ['zoo'] } }));
  const parts = ofZoo.filter(({ type }) => type === 'memory');
  expect(ofZoo.filter(({ type }) => type === 'document')).toHaveLength(1);
  expect(parts.length).toBeGreaterThan(2);
  expect(ofZoo.filter(({ link_type: type }) => type === 'derived_from')).toHaveLength(parts.length - 1);

  const before = bodyOf(await exportText(tenant));
  const pieces = tenant.exportLines({})[Symbol.asyncIterator]();
  let text = (await pieces.next()).value as string;
  clock.advance(1_000);
  const [first] = portableLines(before.join('\n')).filter((line) => line.type === 'memory');
  await tenant.patchMemory(first!.id, { content: 'Changed while the export runs.' });
  await fixture.add({ content: 'Added while the export runs.' });
  for (let piece = await pieces.next(); !piece.done; piece = await pieces.next()) text += piece.value;
  const texts = jsonLines(text).map(({ content }) => content);
  expect(texts).toContain(first!.content);
  expect(texts.filter((content) => String(content).includes('while the export runs'))).toEqual([]);
});

test('a filter selects by what memories were when the export began, as they are written', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const { id: secret } = await fixture.add({ content: 'Bob earns much.' });
  const { id: known } = await fixture.add({ content: 'Bob was promoted.', tags: ['public'] });
  clock.advance(1_000);
  const pieces = tenant.exportLines({ filter: { tags: ['public'] } })[Symbol.asyncIterator]();
  let text = (await pieces.next()).value as string;
  clock.advance(1_000);
  await tenant.patchMemory(secret, { content: 'Bob was given a raise.', tags: ['public'] });
  await tenant.patchMemory(known, { tags: [] });
  for (let piece = await pieces.next(); !piece.done; piece = await pieces.next()) text += piece.value;
  const memories = jsonLines(text).filter(({ type }) => type === 'memory');
  expect(memories.map(({ content, tags }) => [content, tags])).toEqual([['Bob was promoted.', ['public']]]);
});

/** Makes a dry run of an import of all lines. */
async function rehearse(tenant: Tenant, lines: readonly PortableLine[]): Promise<ImportOutcome[]> {
  const rehearsal = tenant.rehearseImport();
  try {
    return await rehearsal.importLines(lines);
  } finally {
    rehearsal.end();
  }
}

const REVISION = { type: 'revision', version: 1, status: 'active', event_time: 0, replaced: {} };

test('dry runs at the same time share one room for names, and give it back', async () => {
  const lines = (from: number, count: number) =>
    portableLines(
      Array.from({ length: count }, (_, n) =>
        JSON.stringify({ ...REVISION, memory: randomUUID(), replaced_at: from + n }),
      ).join('\n'),
    );
  const judge = async (some: readonly PortableLine[]) =>
    some.map(() => ({ outcome: { kind: 'stored' as const }, missing: [] }));
  const [one, other] = [new ImportRehearsal(judge, 100), new ImportRehearsal(judge, 100)];
  await one.importLines(lines(0, 60));
  await expect(other.importLines(lines(60, 60))).rejects.toMatchObject({ code: 'unavailable', retryAfterMs: 60_000 });
  other.end();
  await one.importLines(lines(120, 40));
  await expect(one.importLines(lines(160, 1))).rejects.toMatchObject({ code: 'too_large' });
  one.end();
  const third = new ImportRehearsal(judge, 100);
  expect(await third.importLines(lines(200, 100))).toHaveLength(100);
  third.end();
});

test('items of a session log go behind those that it has, in their order', async () => {
  const here = await open();
  onTestFinished(() => here.close());
  const { tenant } = here;
  const place = { userId: 'ana', sessionId: 'talk' };
  const lineOf = (position: number, item: string) =>
    portableLines(JSON.stringify({ type: 'session_item', user_id: 'ana', session_id: 'talk', position, item }));
  const kindsOf = async (lines: readonly PortableLine[]) => {
    const rehearsed = await rehearse(tenant, lines);
    expect(await tenant.importLines(lines)).toMatchObject(rehearsed.map(({ kind }) => ({ kind })));
    return rehearsed.map(({ kind }) => kind);
  };
  const lines = ['a', 'b', 'c'].flatMap((item, position) => lineOf(position, item));
  expect(await kindsOf([...lines, ...lineOf(4, 'e')])).toEqual(['stored', 'stored', 'stored', 'refused']);
  await tenant.popLog(place);
  await tenant.changeLog(place, { items: ['here'] });
  expect(await kindsOf([...lines, ...lineOf(3, 'd')])).toEqual(['known', 'known', 'kept', 'stored']);
  const { items } = await tenant.readLog(place, { limit: 10 });
  expect(items.map(({ item }) => item)).toEqual(['a', 'b', 'here', 'd']);
});

test('an item that was imported lives on while it is read, as it does where it was exported', async () => {
  const fixture = await open();
  onTestFinished(() => fixture.close());
  const { tenant, clock } = fixture;
  const place = { userId: 'ana', namespace: 'settings.editor', key: 'theme' };
  const week = 7 * DAY_MS;
  const lifetime = { expiresAt: clock.now() + week, ttlMs: week };
  await tenant.putItem({ ...newMemory({ content: 'dark' }), ...place, value: 'dark', ...lifetime });
  await tenant.putItem({ ...newMemory({ content: '14' }), ...place, key: 'size', value: 14, expiresAt: START + week });
  const text = await exportText(tenant);
  const copy = await openCopy(fixture);
  await importText(copy.tenant, text);
  expect(bodyOf(await exportText(copy.tenant))).toEqual(bodyOf(text));

  copy.clock.advanceDays(5);
  const { id } = await copy.tenant.getItem(place);
  await copy.tenant.renewItems([id, (await copy.tenant.getItem({ ...place, key: 'size' })).id]);
  copy.clock.advanceDays(5);
  expect(await copy.tenant.getItem(place)).toMatchObject({ id, expiresAt: START + 5 * DAY_MS + week });
  await expect(copy.tenant.getItem({ ...place, key: 'size' })).rejects.toMatchObject({ code: 'not_found' });
});

test('session logs are exported whole, over several pieces, and as filters select them', async () => {
  const here = await open();
  onTestFinished(() => here.close());
  const { tenant } = here;
  for (let round = 0; round < 30; round += 1)
    for (const userId of ['ana', 'ben']) {
      const items = Array.from({ length: 100 }, (_, n) => `${userId} ${round}.${n} ${'x'.repeat(200)}`);
      await tenant.changeLog({ userId, sessionId: `talk ${round % 2}` }, { items });
    }
  const logOf = async (options: ExportOptions) =>
    jsonLines(await exportText(tenant, options)).filter(({ type }) => type === 'session_item');
  const all = await logOf({});
  const places = all.map(({ user_id: user, session_id: session, position }) =>
    JSON.stringify([user, session, position]),
  );
  expect(new Set(places).size).toBe(6_000);
  expect(all.at(-1)).toMatchObject({ position: 1_499 });
  expect(await logOf({ filter: { userIds: ['ben'] } })).toHaveLength(3_000);
  const one = await logOf({ filter: { userIds: ['ben'], sessionIds: ['talk 1'] } });
  expect(one.map(({ position }) => position)).toEqual(Array.from({ length: 1_500 }, (_, n) => n));
  expect(await logOf({ filter: { tags: ['x'] } })).toEqual([]);
});

const PLACE = { index: 0, start_offset: 0, end_offset: 1, page_from: null, page_to: null, heading_path: [], tokens: 1 };
const LINK: PortableLink = {
  type: 'link',
  src: '',
  dst: '',
  link_type: 'supports',
  similarity: null,
  weight: null,
  automatic: false,
  winner: null,
  created_at: null,
  updated_at: null,
  written_by: null,
};

test('a document that was read anew here is kept, with its parts, when an older reading comes again', async () => {
  const here = await open();
  onTestFinished(() => here.close());
  const there = await openCopy(here);
  const textOf = (keeper: string) =>
    `# Zoo\n\n${`The ${keeper} writes down what the bison eats each day. `.repeat(20)}\n`;
  const read = async (keeper: string) => {
    const file = await upload(here.tenant, textOf(keeper));
    await here.tenant.addDocument(newDocument(file, { userId: 'ana', externalId: 'zoo' }));
    await here.drain();
  };
  await read('keeper');
  const before = await exportText(here.tenant);
  expect((await importText(there.tenant, before)).every(({ kind }) => kind !== 'refused')).toBe(true);
  here.clock.advance(60_000);
  await read('director');
  const after = await exportText(here.tenant);
  const again = await importText(here.tenant, before);
  const kinds = Object.groupBy(again, ({ kind }) => kind);
  // Links of parts that are gone have nothing to lead from. An import over HTTP knows the parts that it kept away.
  const codes = (kinds.refused ?? []).map((outcome) => outcome.kind === 'refused' && outcome.error.code);
  expect(new Set(codes)).toEqual(new Set(['not_found']));
  expect(kinds.stored ?? []).toEqual([]);
  expect(kinds.kept!.length).toBeGreaterThan(1);
  expect(jsonLines(await exportText(here.tenant)).slice(1, -1)).toEqual(jsonLines(after).slice(1, -1));
});
