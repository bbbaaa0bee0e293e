import { afterAll, beforeAll, expect, test } from 'vitest';
import { tendStandingUntil } from '../../src/api/run-standing.ts';
import { createRandom } from '../../src/engine/random.ts';
import { type FakeServer, startFakeServer } from '../support/fake-server.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** An embedder that knows what texts mean: texts of one group have nearly one vector, whatever their words. */
const MEANINGS: readonly (readonly string[])[] = [
  ['Which vehicle does Zoe commute with?', 'She rides a bicycle to the office.'],
];
const DIMENSIONS = 256;

function vectorOf(text: string): number[] {
  const meaning = MEANINGS.findIndex((texts) => texts.some((one) => text.includes(one)));
  const seed =
    meaning === -1 ? [...text].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), 7) : meaning;
  const random = createRandom(seed);
  return Array.from({ length: DIMENSIONS }, () => random() - 0.5);
}

let api: TestApi;
let provider: FakeServer;
const stop = new AbortController();

beforeAll(async () => {
  provider = await startFakeServer((response, { text }) => {
    const { input } = JSON.parse(text) as { readonly input: readonly string[] };
    const data = input.map((one, index) => ({ object: 'embedding', index, embedding: vectorOf(one) }));
    const body = { object: 'list', model: 'meaning', data, usage: { prompt_tokens: 1, total_tokens: 1 } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const settings = {
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_OPENAI_MODEL: 'meaning',
    OPENAI_API_KEY: 'key',
    OM_VEC_DIM: String(DIMENSIONS),
  };
  api = await startApi({ folder: tempFolder(), workers: true, settings });
  void tendStandingUntil(stop.signal, api.engine);
});
afterAll(async () => {
  stop.abort();
  await api.stop();
  await provider[Symbol.asyncDispose]();
});

const ask = async (query: string, userId: string) =>
  (await api.request('POST', '/standing', { body: { query, user_id: userId } })).body.id;
const addReady = async (content: string, userId: string) => {
  const { id, token } = await api.add({ content, user_id: userId });
  await (await api.engine.tenant('default')).waitFor(token, 120_000);
  return id;
};
const answersOf = async (id: string) =>
  (await api.request('GET', `/standing/${id}/answers`)).body.items as unknown as {
    readonly memory_id: string;
    readonly score: number;
  }[];

test('a memory that shares no word with a question answers it where their vectors are near', async () => {
  const [question, text] = MEANINGS[0]! as [string, string];
  const [own, others, strange] = [
    await ask(question, 'zoe'),
    await ask(question, 'tim'),
    await ask('How tall is the lighthouse?', 'zoe'),
  ];
  await addReady('The harbour is closed on Sundays.', 'zoe');
  const memory = await addReady(text, 'zoe');
  await expect.poll(() => answersOf(own), { interval: 50 }).not.toEqual([]);
  const answers = await answersOf(own);
  expect(answers).toMatchObject([{ memory_id: memory }]);
  const asked = { query: question, filters: { user_id: 'zoe' }, reinforce: false };
  const { matches } = (await api.request('POST', '/memory/query', { body: asked })).body;
  expect(matches[0]!.id).toBe(memory);
  expect(answers[0]!.score).toBeCloseTo(matches[0]!.score, 5);
  expect(await answersOf(others)).toEqual([]);
  expect(await answersOf(strange)).toEqual([]);
});
