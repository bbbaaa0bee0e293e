import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stem } from '../../../src/engine/text/english-words.ts';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { assertValidVector, cosine } from '../../../src/engine/store/vector-encoding.ts';

const embedder = createHashedEmbedder();

/** How near a question comes to a memory. */
function nearness(query: string, memory: string): number {
  return cosine(embedder.embedOne(query, 'query'), embedder.embedOne(memory, 'document'));
}

/** How near two memories are to each other. */
function similarity(a: string, b: string): number {
  return cosine(embedder.embedOne(a, 'document'), embedder.embedOne(b, 'document'));
}

test.each([256, 768, 1024, 4096])('any text gives a normalised vector of %i dimensions', (dimensions) => {
  const sized = createHashedEmbedder({ dimensions });
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.constantFrom('document', 'query'),
      (text, purpose) => {
        const vector = sized.embedOne(text, purpose);
        assertValidVector(vector, dimensions);
        expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
        expect(sized.embedOne(text, purpose)).toEqual(vector);
      },
    ),
    { numRuns: 50 },
  );
});

test.each([0, 100, 255, 4352, 768.5, NaN])('refuses %d dimensions', (dimensions) => {
  expect(() => createHashedEmbedder({ dimensions })).toThrow(expect.objectContaining({ code: 'invalid' }));
});

/** To 127 whole numbers on either side: not every last bit of a vector is stored. */
function rounded(vector: Float32Array): Int8Array {
  const scale = 127 / Math.max(...vector.map(Math.abs));
  return Int8Array.from(vector, (component) => Math.round(component * scale));
}

test('stored vectors mean the same in every version: a change of these bytes needs a new model name', () => {
  const digest = createHash('sha256');
  const texts = [
    '',
    '?!',
    'The cats were running, running home to Zürich.',
    'Где мои ключи?',
    '我的生日是五月三日。',
    'さくらが咲きました',
    '👍🏽 done',
  ];
  for (const text of texts) {
    for (const purpose of ['document', 'query'] as const) digest.update(rounded(embedder.embedOne(text, purpose)));
  }
  expect([embedder.model, digest.digest('hex').slice(0, 16)]).toEqual(['hashed-v1', '1d0878860fe3fcc2']);
  const mixed = createHash('sha256');
  for (const text of ['เราใช้Dockerรันปี2567', 'ຂ້ອຍໃຊ້Docker', 'ខ្ញុំប្រើDocker', 'ကျွန်တော်Docker10ခု'])
    mixed.update(rounded(embedder.embedOne(text, 'document')));
  expect(mixed.digest('hex').slice(0, 16)).toBe('92067867b6b09400');
});

test('texts without words, and of any script, are told apart', () => {
  const texts = [
    '',
    '!!!',
    '???',
    '-> * <-',
    'привет',
    'пока',
    'مرحبا',
    'وداعا',
    '你好',
    '再见',
    'こんにちは',
    '안녕',
    '👍',
    '👎',
    '🇫🇷',
    '🇩🇪',
    '7',
    'a',
    'the',
  ];
  for (const [index, a] of texts.entries()) {
    for (const b of texts.slice(index + 1)) {
      expect(similarity(a, b), `${a} / ${b}`).toBeLessThan(0.6);
      expect(cosine(embedder.embedOne(a, 'query'), embedder.embedOne(b, 'query')), `${a} / ${b}`).toBeLessThan(0.6);
    }
  }
});

test('case, accents and composition of letters make no difference', () => {
  expect(similarity('Zoë met me at the CAFÉ', 'zoe met me at the cafe\u0301')).toBeCloseTo(1, 5);
});

test.each([
  [
    'another form of the words',
    'painting landscapes',
    'She painted a landscape in the mountains',
    'She bought a bicycle in the city',
  ],
  ['a typing error', 'restaraunt reservation', 'The restaurant took our reservation', 'The museum took our donation'],
  [
    'rare words over common ones',
    'What did she say about the harpsichord?',
    'A harpsichord stands upstairs',
    'What did she say about the weather?',
  ],
  ['Chinese by its pairs', '我的手机是什么牌子', '我用的手机是华为', '我喜欢在公园里跑步'],
  ['Japanese by its content', '東京の天気', '東京は今日雨の天気です', '大阪で食べた寿司です'],
  ['Russian', 'где ключи от машины', 'Ключи от машины лежат на столе', 'Сегодня вечером будет дождь'],
  ['Arabic', 'مفاتيح السيارة', 'وضعت مفاتيح السيارة على الطاولة', 'سيكون الطقس ممطرا هذا المساء'],
  // Cosine alone would put a memory of nothing but the name before every sentence that says something of her.
  [
    'a sentence over an exclamation',
    'What does Margaret grow in her garden?',
    'Margaret: I grow tomatoes and beans behind the house',
    'Margaret: Wow!',
  ],
])('knows %s', (_, query, nearer, farther) => {
  expect(nearness(query, nearer)).toBeGreaterThan(nearness(query, farther) + 0.05);
});

test.each([
  [
    'The greenhouse needs new glass panes before the frost in November',
    'Ordered glass panes for the greenhouse, they arrive in November',
  ],
  // Short memories lack length before a question, but are as near to each other as long ones.
  ['Loves hiking in the Alps', 'Went hiking in the Alps'],
  ['我喜欢喝乌龙茶', '乌龙茶是我最喜欢的茶'],
])('memories of one subject pass the waypoint threshold: %s', (a, b) => {
  expect(similarity(a, b)).toBeGreaterThan(embedder.waypointThreshold);
});

test.each([
  ['The greenhouse needs new glass panes', 'Our accountant moved the quarterly review to Thursday'],
  ['Wow!', 'Okay.'],
  ['I was at the station and it was late', 'It was at the office that I was asked'],
  ['我喜欢喝乌龙茶', '他在上海的银行工作'],
])('memories of different subjects do not: %s', (a, b) => {
  expect(similarity(a, b)).toBeLessThan(embedder.waypointThreshold);
});

test('every dimension carries signal, even of one word', () => {
  for (const [text, purpose] of [
    ['harpsichord', 'query'],
    ['ok', 'document'],
  ] as const) {
    const vector = embedder.embedOne(text, purpose);
    expect(vector.filter((component) => Math.abs(component) > 1e-6).length).toBeGreaterThan(0.75 * vector.length);
  }
});

test('a batch gives what each text gives alone, in order', async () => {
  const texts = ['first', '', 'third'];
  const vectors = await embedder.embed(texts, { purpose: 'document' });
  expect(vectors).toEqual(texts.map((text) => embedder.embedOne(text, 'document')));
});

test('an aborted call gives nothing', async () => {
  await expect(embedder.embed(['text'], { purpose: 'query', signal: AbortSignal.abort() })).rejects.toThrow('abort');
});

test('one endless word, and a million words, take linear time', () => {
  for (const text of ['a'.repeat(1_000_000), 'ies '.repeat(250_000), '!'.repeat(1_000_000), '東'.repeat(200_000)]) {
    assertValidVector(embedder.embedOne(text, 'document'), embedder.dimensions);
  }
});

test.each([
  ['relate', 'related', 'relation', 'relations'],
  ['paint', 'paints', 'painted', 'painting', 'paintings'],
  ['study', 'studies', 'studied', 'studying'],
  ['run', 'runs'],
  ['plan', 'plans', 'planned', 'planning'],
  ['fall', 'falls', 'falling'],
  ['box', 'boxes'],
])('%s and its forms share a stem', (...forms) => {
  expect(new Set(forms.map(stem))).toHaveLength(1);
});

test.each([
  ['bus', 'bu'],
  ['string', 'str'],
  ['class', 'clas'],
  ['thing', 'th'],
  ['bed', 'b'],
])('%s is no form of %s', (word, other) => {
  expect(stem(word)).not.toBe(other);
});

test('a stem leaves alone what is not English letters, and what is too long for a word', () => {
  for (const word of ['кошки', 'v2s', 'as', 'x'.repeat(100) + 'ing']) expect(stem(word)).toBe(word);
});
