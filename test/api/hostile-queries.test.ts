import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { NAUGHTY_STRINGS } from '../support/naughty-strings.ts';
import { type Reply, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What may be typed into a search box by someone who means harm, or by a program that does not look. */
const QUERY_LENGTH = 8_192;
const filled = (piece: string) => piece.repeat(Math.floor(QUERY_LENGTH / piece.length));
const random = createRandom(11);
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;

/**
 * 8 kB of one thing, of which each has cost someone a quadratic regular expression, a deep recursion or a table of
 * postings.
 */
const LONG = [
  'a',
  ' ',
  '"',
  "'",
  '(',
  ')',
  '*',
  '^',
  ':',
  '-',
  '\\',
  '/',
  '.',
  '@',
  '_',
  '+',
  '#',
  '0',
  '\0',
  '\n',
  '\t',
  'é',
  'e\u0301',
  '\u0301',
  '\u200d',
  '\u202e',
  '\ufeff',
  'ß',
  'İ',
  'ﷺ',
  '東',
  '한',
  'ไ',
  'ท่',
  '😀',
  '👩‍👩‍👧‍👦',
  '🇩🇪',
  '‏ש',
  'ǀ',
  'ǁ',
  '“',
  '”',
  '「',
  '«',
  '" ',
  '"" ',
  '"a" ',
  'a" "',
  'a-',
  'a.',
  'a/',
  'a\\',
  'a_',
  'aB',
  'Ab',
  'A1',
  '1.',
  '1,',
  '::',
  '://',
  'a@',
  '@a',
  "a'",
  "don't ",
  'a AND ',
  'a OR ',
  'NOT ',
  'NEAR(a b) ',
  'NEAR(',
  'a* ',
  '^a ',
  'content:',
  '{a b}:',
  '+a ',
  '-a ',
  '(a',
  'a) ',
  '$',
  '%',
  '_%',
  '\\u0000',
  'the ',
  'who are you ',
  'a b ',
  'tea ',
  '"green tea" ',
  'teaPot',
  'src/tea/',
  'x@y.z,',
  '1.2.3-',
  'C++',
  'C# ',
  '東京 ',
  '東京"',
  'ab1',
].map(filled);

/** Many things at once: words, phrases, identifiers, CJK pairs, each distinct. */
const MANY = [
  Array.from({ length: 2_000 }, (_, number) => `w${number.toString(36)}`)
    .join(' ')
    .slice(0, QUERY_LENGTH),
  Array.from({ length: 2_000 }, (_, number) => `"p ${number}"`)
    .join('')
    .slice(0, QUERY_LENGTH),
  Array.from({ length: 2_000 }, (_, number) => `a${number}B`)
    .join('.')
    .slice(0, QUERY_LENGTH),
  Array.from({ length: QUERY_LENGTH }, (_, number) => String.fromCharCode(0x4e00 + number)).join(''),
  Array.from({ length: QUERY_LENGTH }, (_, number) => String.fromCharCode(0xac00 + number)).join(''),
  Array.from({ length: QUERY_LENGTH / 2 }, (_, number) => String.fromCodePoint(0x1f300 + (number % 768))).join(''),
  Array.from({ length: QUERY_LENGTH }, (_, number) => String.fromCharCode(0x300 + (number % 112))).join(''),
  Array.from({ length: QUERY_LENGTH }, (_, number) => String.fromCharCode(number % 128)).join(''),
];

const PIECES = [
  '"',
  '“',
  '”',
  '(',
  ')',
  '*',
  '^',
  ':',
  '+',
  '-',
  ',',
  '{',
  '}',
  '[',
  ']',
  '\\',
  '/',
  "'",
  '`',
  ';',
  '--',
  '\0',
  '\r\n',
  '\u202e',
  'AND',
  'OR',
  'NOT',
  'NEAR',
  'NEAR/2',
  'content',
  'context:',
  'rowid',
  'rank',
  'bm25(',
  'SELECT',
  'memory_text',
  'MATCH',
  'tea',
  'the',
  'getUserName',
  'src/tea.ts',
  'v1.2.3',
  'a@b.c',
  '東京',
  'タワー',
  '서울',
  'กิน',
  '😀',
  'e\u0301',
  'ﬁ',
  '½',
  ' ',
  ...NAUGHTY_STRINGS.filter((text) => text.length <= 20),
];
const mixed = () =>
  Array.from({ length: 1 + Math.floor(random() * 30) }, () => pick(PIECES)).join(pick(['', ' ', '"', '.']));

const QUERIES = [...NAUGHTY_STRINGS, ...LONG, ...MANY];
const ALL = [...QUERIES, ...Array.from({ length: Math.max(200, 600 - QUERIES.length) }, mixed)];

const SHAPES: readonly object[] = [
  {},
  { user_id: 'ann', k: 200 },
  { filters: { tags: ['a"b'], sessions: ["'; --"] } },
  { filters: { sectors: ['procedural', 'emotional'], metadata: { 'a"b': { $ne: '\\' } } }, dense_sectors: 'candidate' },
  { k: 1, k_sparse: 1_000, k_dense: 1_000, explain: true },
  { column_weights: { title: 0, content: 0, gist: 0, entities: 0, tags: 0, identifiers: 0, context: 0 } },
  { deep_recall: true, rerank: 'none', vector_weight: 0, session_prior: 1 },
  { vector_weight: 1, token_budget: 1, relative_floor: 1 },
  { as_of: '2020-01-01T00:00:00Z', profile: 'retention', max_hops: 4 },
];

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
  const contents = ['green tea in a teaPot', 'src/tea.ts throws E1234', '東京タワーでお茶', ...NAUGHTY_STRINGS];
  const texts = contents.filter((content) => content !== '' && content.isWellFormed());
  for (const [number, content] of texts.entries()) {
    const item = { content, user_id: pick(['ann', 'bob']), session_id: `s${number % 5}`, tags: ['a"b'] };
    const { status } = await api.request('POST', '/memory/add?wait=60000', { body: item });
    expect(status).toBe(200);
  }
});
afterAll(() => api.stop());

test(`${ALL.length} hostile queries are answered or refused, and the service stays well`, async () => {
  expect(ALL.length).toBeGreaterThanOrEqual(500);
  for (const [number, query] of ALL.entries()) {
    const shape = SHAPES[number % SHAPES.length]!;
    const reply = await api.request('POST', '/memory/query', { body: { query, ...shape } });
    const what = `${reply.status} for ${JSON.stringify(query.slice(0, 60))}, ${JSON.stringify(shape)}: ${reply.text.slice(0, 300)}`;
    // Refused is only what is empty or no text at all.
    const isText = query !== '' && query.isWellFormed();
    expect(reply.status, what).toBe(isText ? 200 : 400);
    if (isText) expectMatches(reply, what);
    else expectProblem(reply, what);
  }
  expect((await api.request('GET', '/health')).status).toBe(200);
});

function expectMatches({ body }: Reply, what: string): void {
  expect(body.matches, what).toBeInstanceOf(Array);
  for (const { score, id } of body.matches) {
    expect(id, what).toMatch(/^[\da-f-]{36}$/);
    expect(score, what).toBeGreaterThanOrEqual(0);
    expect(score, what).toBeLessThanOrEqual(1);
  }
}

function expectProblem({ headers, body }: Reply, what: string): void {
  expect(headers.get('content-type'), what).toContain('application/problem+json');
  expect(body.code, what).toBe('invalid');
  expect(body.detail, what).toContain('query');
}

test.each(['/memory/query', '/explain', '/federation/query', '/standing'])(
  'a body with more names than filters have is refused before its names are read: %s',
  async (path) => {
    const filters = Object.fromEntries(Array.from({ length: 3_001 }, (_, no) => [`n${no}`, 1]));
    const reply = await api.request('POST', path, { body: { query: 'x', filters } });
    expect(reply.status).toBe(400);
    expect(reply.body.detail).toContain('over 3000 names');
    expect(reply.body.errors).toBeUndefined();
  },
);
