import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { startFakeProvider, type FakeMode, type FakeProvider } from '../../support/fake-provider.ts';
import { makeOnnx } from '../../support/make-onnx.ts';
import { storedVectors } from '../../support/stored-vectors.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const DIMENSIONS = 256;
const TOPICS = ['kettle', 'harbour', 'violin', 'glacier'];

let fake: FakeProvider;
beforeEach(async () => {
  fake = await startFakeProvider({ dimensions: DIMENSIONS });
});
afterEach(() => fake.close());

const REMOTE: Record<string, () => Record<string, string>> = {
  openai: () => ({ OM_OPENAI_BASE_URL: fake.url }),
  gemini: () => ({ OM_GEMINI_BASE_URL: `${fake.origin}/v1beta`, GEMINI_API_KEY: 'key' }),
  ollama: () => ({ OLLAMA_URL: fake.origin }),
  bedrock: () => ({ OM_BEDROCK_BASE_URL: fake.origin, AWS_REGION: 'eu-west-1', AWS_BEARER_TOKEN_BEDROCK: 'key' }),
};

const MISBEHAVIOURS: readonly FakeMode[] = [
  ...(['rate_limited', 'status', 'reset', 'cut', 'html', 'truncated', 'empty', 'huge', 'redirect'] as const),
  ...(['nan', 'null', 'strings', 'zeros', 'infinite', 'wrong_dimension', 'no_vector', 'no_list'] as const),
  ...(['hang', 'drip', 'drip_error'] as const),
];
/** Of lists, which Bedrock has none of. */
const OF_LISTS: readonly FakeMode[] = ['short', 'extra'];

test.each(Object.keys(REMOTE))(
  '%s may reply with anything: words answer meanwhile, no bad vector is stored and no memory is lost',
  async (provider) => {
    await using fixture = await open(provider, {
      ...REMOTE[provider]!(),
      OM_EMBED_TIMEOUT_MS: '200',
      OM_VECTOR_PRECISION: 'float32',
    });
    const modes = provider === 'bedrock' ? MISBEHAVIOURS : [...MISBEHAVIOURS, ...OF_LISTS];
    for (const mode of modes) {
      fake.setMode(mode);
      const before = fake.calls.length;
      // Two, since of one vector none is out of place.
      for (const part of ['first', 'second']) await fixture.add({ content: `The ${part} ${TOPICS[0]} of ${mode}` });
      await workUntil(fixture, () => fake.calls.length > before);
      expect(fixture.get<number>('SELECT count(*) FROM vectors'), mode).toBe(0);
      expect(await fixture.tenant.countJobs(), mode).toMatchObject({ done: 0, dead: 0 });
    }
    const answer = await fixture.tenant.query({ query: 'kettle', k: 1, filter: {} });
    expect([answer.degraded, answer.hits.length]).toEqual([true, 1]);

    fake.setMode('ok');
    await workUntil(fixture, async () => (await fixture.tenant.countJobs()).done === 2 * modes.length);
    expect(badVectors(fixture)).toEqual({ vectors: 2 * modes.length, bad: 0 });
  },
);

test.each([...Object.keys(REMOTE), 'local'])('memories are found by the vectors of %s', async (provider) => {
  await using fixture = await open(provider, provider === 'local' ? localModel() : REMOTE[provider]!());
  for (const topic of TOPICS) await fixture.add({ content: `about ${topic}` });
  await workUntil(fixture, async () => (await fixture.tenant.countJobs()).done === TOPICS.length);
  for (const topic of TOPICS) {
    const { degraded, hits } = await fixture.tenant.query({ query: topic, k: 1, filter: {}, vectorWeight: 1 });
    expect([degraded, hits[0]?.memory.content]).toEqual([false, `about ${topic}`]);
  }
});

test('a pause that one provider asked for holds back no other, and not another key', async () => {
  const settings = (provider: string, more: Record<string, string> = {}) => ({
    OM_EMBEDDINGS: provider,
    OM_VEC_DIM: String(DIMENSIONS),
    OM_EMBED_LINGER_MS: '1',
    ...REMOTE[provider]!(),
    ...more,
  });
  const first = await openTestEngine({ settings: settings('openai') });
  const { file, clock } = first;
  fake.setMode('rate_limited', { headers: { 'retry-after': '3600' } });
  await first.add({ content: 'about a kettle' });
  for (let batch = 0; batch < 3; batch++) await first.runBatch();
  expect(fake.calls).toHaveLength(1);
  await first.close();
  fake.setMode('ok');
  for (const [provider, more] of [
    ['gemini', {}],
    ['openai', { OPENAI_API_KEY: 'another' }],
  ] as const) {
    const before = fake.calls.length;
    const next = await openTestEngine({ file, clock, settings: settings(provider, more) });
    await next.add({ content: `about a harbour and ${provider}` });
    await next.runBatch();
    expect(fake.calls.length, provider).toBeGreaterThan(before);
    await next.close();
  }
});

function open(provider: string, settings: Readonly<Record<string, string>>): Promise<TestEngine> {
  return openTestEngine({
    settings: {
      OM_EMBEDDINGS: provider,
      OM_VEC_DIM: String(DIMENSIONS),
      OM_EMBED_LINGER_MS: '1',
      OM_QUERY_EMBED_TIMEOUT_MS: '10000',
      ...settings,
    },
  });
}

/** A model that tells the words of this test apart. */
function localModel(): Record<string, string> {
  const words = ['about', ...TOPICS];
  const folder = path.join(tempFolder(), 'model');
  const table = Array.from({ length: 4 + words.length }, (_, token) =>
    Array.from({ length: DIMENSIONS }, (_, d) => (token < 4 ? 0.01 : Math.sin(1 + d * (token + 1)))),
  );
  makeOnnx({ folder, words, table });
  return { LOCAL_MODEL_PATH: folder };
}

/** As a worker does, with pauses that the provider asks for and those of the breaker. */
async function workUntil(fixture: TestEngine, isDone: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < 300; round += 1) {
    if (await isDone()) return;
    await fixture.runBatch();
    fixture.clock.advance(60_000);
  }
  throw new Error('it is never done');
}

function badVectors(fixture: TestEngine): { vectors: number; bad: number } {
  const vectors = storedVectors(fixture.store.db);
  const isGood = (embedding: Float32Array) =>
    embedding.length === DIMENSIONS && Math.abs(Math.hypot(...embedding) - 1) < 1e-3;
  return { vectors: vectors.length, bad: vectors.filter(({ embedding }) => !isGood(embedding)).length };
}
