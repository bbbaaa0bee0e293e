import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import type { Engine, Tenant } from '../../../src/engine/engine.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { type Logger, silentLogger } from '../../../src/engine/ports.ts';
import { jsonOf, JsonText } from '../../../src/engine/store/json-text.ts';
import { createThreadReaders, type ThreadReadersOptions } from '../../../src/engine/readers/thread-readers.ts';
import type { MemoryExplanation, MemoryQuery, QueryResult } from '../../../src/engine/types.ts';
import { createSharedFiles } from '../../../src/engine/tenant-file/shared-files.ts';
import { newMemory } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const SUBJECTS = ['harbour', 'orchard', 'compiler', 'lantern', 'glacier', 'violin', 'ledger', 'turbine'];
const TEXTS = SUBJECTS.flatMap((subject, at) => [
  `The ${subject} was inspected on a rainy Monday and needed ${at + 2} new parts.`,
  `Ana wrote down how the ${subject} is cleaned before winter begins.`,
  `Nobody remembers who paid for the ${subject} of the ${SUBJECTS[(at + 3) % 8]}.`,
]);
const QUESTIONS = SUBJECTS.map((subject) => `Who cleaned or inspected the ${subject}?`);

afterEach(() => void vi.unstubAllEnvs());

interface Opened {
  readonly engine: Engine;
  readonly tenant: Tenant;
  readonly logged: string[];
}

async function open(folder: string, settings: object = {}): Promise<Opened> {
  const logged: string[] = [];
  const log = (_: object, event: string) => void logged.push(event);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const config = readConfig({
    OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
    OM_VEC_DIM: '256',
    OM_QUERY_THREADS: '2',
    OM_DECAY_REINFORCE_ON_QUERY: 'false',
    ...settings,
  });
  const engine = await openEngine({ config, logger });
  onTestFinished(() => engine.close());
  return { engine, tenant: await engine.tenant('default'), logged };
}

async function openFilled(settings: object = {}): Promise<Opened> {
  const opened = await open(tempFolder(), settings);
  await opened.tenant.addMemories(TEXTS.map((content) => newMemory({ content, userId: 'ana' })));
  return opened;
}

const ask = (query: string, more: Partial<MemoryQuery> = {}): MemoryQuery => ({ query, k: 5, filter: {}, ...more });
/** Weights under which a score does not depend on the moment of the question. */
const UNTIMED = { salience: 0, recency: 0 };
/** All of an answer but the id that each answer gets anew, and the times of its stages. */
const comparable = ({ hits, degraded, floor }: QueryResult) => ({
  degraded,
  floor,
  hits: hits.map(({ memory, score, rawScore, path }) => ({ id: memory.id, score, rawScore, path })),
});

describe('reader threads', () => {
  test('answer as this thread does, to the last digit', async () => {
    const folder = tempFolder();
    const threads = await open(folder);
    await threads.tenant.addMemories(TEXTS.map((content) => newMemory({ content, userId: 'ana' })));
    const here = await open(folder, { OM_QUERY_THREADS: '0' });
    for (const question of QUESTIONS) {
      const query = ask(question, { weights: UNTIMED });
      const [one, other] = await Promise.all([threads, here].map(({ tenant }) => tenant.query(query)));
      expect(comparable(one!)).toEqual(comparable(other!));
      expect(one!.hits.length).toBeGreaterThan(0);
      const { id } = one!.hits[0]!.memory;
      const [explained, explainedHere] = await Promise.all(
        [threads, here].map(({ tenant }) => tenant.explain(query, id)),
      );
      const told = ({ outcome, rank, score, terms }: MemoryExplanation) => ({ outcome, rank, score, terms });
      expect(told(explained!)).toEqual(told(explainedHere!));
    }
    const [listed, listedHere] = await Promise.all(
      [threads, here].map(({ tenant }) => tenant.listMemories({}, { limit: 50, offset: 0 })),
    );
    expect(listed!.map(({ id }) => id)).toEqual(listedHere!.map(({ id }) => id));
    expect(listed).toHaveLength(TEXTS.length);
    expect((await threads.tenant.stats()).memories).toBe(TEXTS.length);
  });

  test('see what was acknowledged before the question', async () => {
    const { tenant } = await openFilled();
    for (let at = 0; at < 20; at += 1) {
      await tenant.addMemories([newMemory({ content: `The password of room ${at} is sesame${at}.`, userId: 'ana' })]);
      const { hits } = await tenant.query(ask(`sesame${at}`));
      expect(hits[0]?.memory.content).toContain(`sesame${at}`);
    }
  });

  test('pass JSON of many parts as text, which is parsed for whoever reads it, as does the writer', async () => {
    const { tenant } = await openFilled();
    const value = Array.from({ length: 1_000 }, (_, no) => [no]);
    const metadata = { many: value };
    const place = { userId: 'ana', namespace: 'dense', key: 'zebra' };
    const put = await tenant.putItem({ ...newMemory({ content: 'zebra', ...place }), ...place, value, metadata });
    const asked = (await tenant.query(ask('zebra', { k: 1 }))).hits[0]!;
    const listed = await tenant.listItems({ userId: 'ana', namespace: 'dense' }, { limit: 1 });
    const patched = await tenant.patchMemory(put.memory.id, { tags: ['striped'] });
    const memories = [put.memory, asked.memory, listed.items[0]!, await tenant.getItem(place), patched];
    for (const memory of memories) {
      for (const field of ['value', 'metadata'] as const) expect(jsonOf(memory, field)).toBeInstanceOf(JsonText);
      expect([memory.value, memory.metadata]).toEqual([value, metadata]);
    }
    await tenant.patchMemory(put.memory.id, { metadata: { few: 1 } });
    const [revision] = await tenant.listRevisions(put.memory.id);
    expect(jsonOf(revision!.replaced, 'metadata')).toBeInstanceOf(JsonText);
    expect(revision!.replaced).toEqual({ metadata });
    const log = { userId: 'ana', sessionId: 'trip' };
    await tenant.changeLog(log, { items: ['few', value] });
    const { items } = await tenant.readLog(log, { limit: 9 });
    const { popped } = await tenant.popLog(log);
    expect(items.map(({ item }) => item)).toEqual(['few', value]);
    for (const item of [items[1]!, popped!]) expect(jsonOf(item, 'item')).toBeInstanceOf(JsonText);
    expect(popped!.item).toEqual(value);
  });

  test('answer many questions at once, each its own, while this thread does other things', async () => {
    const { tenant } = await openFilled();
    let [turns, left] = [0, 200];
    const asked = Array.from({ length: left }, async (_, at) => {
      const subject = SUBJECTS[at % 8]!;
      const { hits } = await tenant.query(ask(`inspected ${subject}`, { k: 1 }));
      left -= 1;
      return hits[0]!.memory.content.includes(subject);
    });
    for (; left > 0; turns += 1) await nextTurn();
    expect(await Promise.all(asked)).toEqual(Array.from({ length: 200 }, () => true));
    expect(turns).toBeGreaterThan(2);
  });

  test('refuse what a query may not ask, with the error that this thread gives', async () => {
    const { tenant } = await openFilled();
    await expect(tenant.query(ask('x', { rerank: 'llm' }))).rejects.toMatchObject({ code: 'invalid' });
    await expect(tenant.explain(ask('x'), 'no such id')).rejects.toMatchObject({ code: 'not_found' });
    expect((await tenant.query(ask(QUESTIONS[0]!))).hits).not.toEqual([]);
  });

  test('a question that nobody waits for any more is given up at once, and the next one is answered', async () => {
    const { tenant } = await openFilled();
    const leaving = new AbortController();
    const asked = Array.from({ length: 40 }, () => tenant.query(ask(QUESTIONS[0]!), leaving.signal));
    leaving.abort(new Error('the client left'));
    for (const one of asked) await expect(one).rejects.toThrow('the client left');
    await expect(tenant.query(ask('x'), leaving.signal)).rejects.toThrow('the client left');
    expect((await tenant.query(ask(QUESTIONS[0]!))).hits).not.toEqual([]);
  });

  test('more questions than may wait are refused, and those that wait are answered', async () => {
    const { tenant } = await openFilled();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 4_200 }, () => tenant.query(ask('harbour', { k: 1, vectorWeight: 0 }))),
    );
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as object] : []));
    expect(refused).toHaveLength(100);
    expect(refused[0]).toMatchObject({ code: 'unavailable', message: 'too many queries wait', retryAfterMs: 1_000 });
  });
});

describe('many slow questions at once', () => {
  const values = Object.fromEntries(Array.from({ length: 32 }, (_, no) => [`k${no}`, 'x'.repeat(200)]));
  const unlike = Object.fromEntries(Object.keys(values).map((name) => [name, { $ne: 'y' }]));
  const slow = ask('harbour lantern', { filter: { metadata: unlike } });

  test('let another key of the tenant be answered in between', async () => {
    const { tenant } = await openFilled();
    const memories = Array.from({ length: 1_000 }, (_, no) =>
      newMemory({ content: `harbour ${no}`, metadata: values }),
    );
    for (let at = 0; at < memories.length; at += 100) await tenant.addMemories(memories.slice(at, at + 100));
    const asking = tenant.as('other');
    await asking.addMemories([newMemory({ content: 'The orchard was cleaned.', userId: 'bo' })]);
    const short = ask('orchard', { filter: { userIds: ['bo'] } });
    await asking.query(short);

    let answered = 0;
    let isOver = false;
    const isBusy = Promise.withResolvers<void>();
    const askOnAndOn = async () => {
      while (!isOver) {
        await tenant.as('busy').query(slow);
        answered += 1;
        if (answered === 4) isBusy.resolve();
      }
    };
    const busy = Array.from({ length: 24 }, askOnAndOn);
    await isBusy.promise;
    const before = answered;
    for (let times = 0; times < 10; times += 1) expect((await asking.query(short)).hits).toHaveLength(1);
    const meanwhile = answered - before;
    isOver = true;
    await Promise.all(busy);
    // Behind the others, each of the ten would wait for some twenty slow ones.
    expect(meanwhile).toBeLessThan(100);
  });
});

describe('a reader thread that ends', () => {
  test('is replaced, and its question is asked once more', async () => {
    vi.stubEnv('CAIRN_FAILPOINT', 'before-read:exit:3');
    const { tenant, logged } = await openFilled({ OM_QUERY_THREADS: '1' });
    for (let at = 0; at < 12; at += 1) {
      const { hits } = await tenant.query(ask(QUESTIONS[at % 8]!));
      expect(hits).not.toEqual([]);
    }
    expect(logged.filter((event) => event === 'reader_thread_ended').length).toBeGreaterThanOrEqual(4);
  });

  test('takes none of the questions with it that wait behind', async () => {
    vi.stubEnv('CAIRN_FAILPOINT', 'before-read:exit:10');
    // One thread: beside a second, a question that is asked again might be its tenth, and so be given up.
    const { tenant, logged } = await openFilled({ OM_QUERY_THREADS: '1' });
    const answers = await Promise.all(Array.from({ length: 60 }, (_, at) => tenant.query(ask(QUESTIONS[at % 8]!))));
    for (const { hits } of answers) expect(hits).not.toEqual([]);
    expect(logged).toContain('reader_thread_ended');
  });

  test('twice over one question gives that question up, and threads that work come back', async () => {
    vi.stubEnv('CAIRN_FAILPOINT', 'before-read:exit:1');
    const { tenant } = await openFilled({ OM_QUERY_THREADS: '1' });
    await expect(tenant.query(ask(QUESTIONS[0]!))).rejects.toMatchObject({
      code: 'unavailable',
      message: 'the threads that ran this query ended',
    });
    vi.unstubAllEnvs();
    expect((await tenant.query(ask(QUESTIONS[0]!))).hits).not.toEqual([]);
  });
});

/** Starts one reader thread of its own over files of a folder. */
function startOneThread(folder: string, options: Partial<ThreadReadersOptions> = {}) {
  const config = readConfig({ OM_DB_PATH: path.join(folder, 'cairn.sqlite'), OM_EMBEDDINGS: 'none' });
  const readers = createThreadReaders({
    ...{ threads: 1, config, identity: null, logger: silentLogger, tracing: null },
    sharedFiles: createSharedFiles({ vectorIndex: 'auto', maxReaders: 1, maxBytes: 1e9, maxFiles: 4 }),
    ...{ querySourceOf: () => null, languageModel: null, watchWaiting: () => {}, onUnknownWordFormat: () => {} },
    ...{ onThreadEnd: () => {}, standby: null, primary: null },
    ...options,
  });
  onTestFinished(() => readers.close());
  return { readers, file: config.paths.defaultTenant };
}

test('a thread that hangs is ended, and its question is answered by another', async () => {
  const folder = tempFolder();
  const { tenant } = await open(folder);
  await tenant.addMemories(TEXTS.map((content) => newMemory({ content, userId: 'ana' })));
  vi.stubEnv('CAIRN_FAILPOINT', 'before-read:spin:2');
  let ended = 0;
  const { readers, file } = startOneThread(folder, { hungAfterMs: 5_000, onThreadEnd: () => (ended += 1) });
  for (let at = 0; at < 3; at += 1) {
    const { result } = await readers.read(file, 'query', { query: ask(QUESTIONS[at]!), defaults: {} });
    expect(result.hits).not.toEqual([]);
  }
  expect(ended).toBeGreaterThanOrEqual(1);
});

test('a tenant that asks behind forty questions of another does not wait for them', async () => {
  const [busy, quiet] = [tempFolder(), tempFolder()];
  for (const folder of [busy, quiet]) await open(folder);
  const { readers, file } = startOneThread(busy);
  const files = [...Array.from({ length: 40 }, () => file), path.join(quiet, path.basename(file))];
  const answered: string[] = [];
  const question = { query: ask('harbour'), defaults: {} };
  await Promise.all(files.map((one) => readers.read(one, 'query', question).then(() => void answered.push(one))));
  expect(answered).toHaveLength(41);
  // The thread has two questions when the last one is asked; by arrival it would be the last to be answered.
  expect(answered.indexOf(files.at(-1)!)).toBeLessThan(20);
});

describe('providers', () => {
  test('are asked by the process, whose cache all threads share', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    const { tenant } = await openFilled({
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OPENAI_API_KEY: 'key',
      // A busy machine may need longer than the default before a question is answered by its words alone.
      OM_QUERY_EMBED_TIMEOUT_MS: '20000',
    });
    const before = provider.texts;
    const answers = await Promise.all(Array.from({ length: 8 }, () => tenant.query(ask('one question for all'))));
    expect(answers.map(({ degraded }) => degraded)).toEqual(Array.from({ length: 8 }, () => false));
    await tenant.query(ask('one question for all'));
    expect(provider.texts - before).toBeLessThanOrEqual(2 * 8);
    const asked = provider.texts;
    await tenant.query(ask('one question for all'));
    expect(provider.texts).toBe(asked);
    provider.setMode('status');
    expect((await tenant.query(ask('another question about the harbour'))).degraded).toBe(true);
  });

  test.each([
    ['threads', '2'],
    ['this thread', '0'],
  ])('are asked again where another tenant asked the same, by %s', async (_, threads) => {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    provider.chat.say('[2, 1]');
    const { engine } = await open(tempFolder(), {
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OPENAI_API_KEY: 'key',
      ...{ OM_LLM_MODEL: 'small', OM_LLM_BASE_URL: provider.url },
      ...{ OM_QUERY_EMBED_TIMEOUT_MS: '60000', OM_LLM_RERANK_TIMEOUT_MS: '60000', OM_QUERY_THREADS: threads },
    });
    engine.control.createTenant('acme');
    const tenants = [await engine.tenant('default'), await engine.tenant('acme')];
    for (const tenant of tenants)
      await tenant.addMemories(TEXTS.slice(0, 3).map((content) => newMemory({ content, userId: 'ana' })));
    // The tenants have no vectors before their memories are embedded: the words find these, and the model is asked.
    for (const tenant of [...tenants, ...tenants]) await tenant.query(ask('inspected harbour', { rerank: 'llm' }));
    expect(provider.calls.map(({ texts }) => texts)).toEqual([['inspected harbour'], ['inspected harbour']]);
    expect(provider.chat.calls).toHaveLength(2);
    expect(provider.chat.calls[1]!.body).toEqual(provider.chat.calls[0]!.body);
  });

  test('leave room for a long question while another one waits for them', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    const { tenant } = await openFilled({
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OPENAI_API_KEY: 'key',
      ...{ OM_EMBED_TIMEOUT_MS: '60000', OM_QUERY_EMBED_TIMEOUT_MS: '60000' },
    });
    const { id } = (await tenant.query(ask('harbour'))).hits[0]!.memory;
    const release = provider.hold();
    let answered = 0;
    const explain = async (subject: string) => {
      const { memoryId } = await tenant.as(subject).explain(ask(subject), id);
      expect(memoryId).toBe(id);
      answered += 1;
    };
    const explained: Promise<void>[] = [];
    for (const subject of ['orchard', 'compiler']) {
      const called = provider.nextCall();
      explained.push(explain(subject));
      expect((await called).texts).toEqual([subject]);
    }
    expect(answered).toBe(0);
    release();
    await Promise.all(explained);
  });

  test('a language model reranks for a thread', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    provider.chat.say('[2, 1]');
    const { tenant } = await openFilled({
      OM_LLM_MODEL: 'small',
      OM_LLM_BASE_URL: provider.url,
      OM_LLM_RERANK_TIMEOUT_MS: '60000',
    });
    const { hits } = await tenant.query(ask('inspected harbour', { rerank: 'llm' }));
    expect(provider.chat.calls).toHaveLength(1);
    expect(hits).not.toEqual([]);
  });
});

test('a closed engine answers nothing, and what waits is told so', async () => {
  const { engine, tenant } = await openFilled();
  const asked = Array.from({ length: 50 }, () => tenant.query(ask(QUESTIONS[0]!)));
  const outcomes = Promise.allSettled(asked);
  await engine.close();
  for (const outcome of await outcomes) {
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'unavailable' });
  }
});
