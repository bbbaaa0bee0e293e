import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { expectWell, inputs } from './attack.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  await api.add({ content: 'A harbour with a lighthouse.', user_id: 'ana', metadata: { a: { b: 1 } }, tags: ['x'] });
});
afterAll(() => api.stop());

/** Texts that mean something to SQL, FTS5, JSON, shells, templates, terminals, paths or Unicode. */
const NAUGHTY: readonly string[] = [
  "'; DROP TABLE memories; --",
  "' OR '1'='1",
  '" OR 1=1 --',
  "x' UNION SELECT secret FROM keys --",
  'NEAR(a b, 5)',
  'a AND OR NOT b',
  'content : a',
  '{content tags} : a',
  '^a * "unclosed',
  'a* b^2 -c +d (e OR',
  '"a" NEAR/0 "b"',
  '%_\\%',
  '$.a[0]."b"',
  '{"$gt":1}',
  '$where',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '${7*7}{{7*7}}<%= 7*7 %>#{7*7}',
  '$(touch pwned)`touch pwned`',
  '../../../../etc/passwd',
  '..\\..\\windows\\win.ini',
  'file:///etc/passwd',
  'http://169.254.169.254/latest/meta-data',
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '\u001b[2J\u001b]0;title\u0007',
  '\r\nSet-Cookie: a=b',
  'a\u2028b\u2029c',
  '\ufeffbegins with a mark',
  '\u202edlrow olleh',
  'e\u0301 é ﬁ Å Å',
  '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\u{1f3fd}',
  'Z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307'.repeat(20),
  'ﷺ'.repeat(50),
  'ς Σ ß ẞ İ ı ǰ ŉ',
  'الْعَرَبِيَّة',
  'ภาษาไทยไม่มีช่องว่าง',
  '中文没有空格吗？',
  '\u0000'.repeat(3),
  '\ud800',
  '\udfff\ud800',
  '\uffff\ufffe\ufdd0',
  '-0',
  '1e309',
  'NaN',
  'null',
  'undefined',
  '0x1p1023',
  '9007199254740993',
  'true',
  ' ',
  '\t\n\v\f',
  '',
  'a'.repeat(10_000),
  'a '.repeat(5_000),
  '(('.repeat(2_000),
  '"'.repeat(999),
  '\\'.repeat(999),
];

/** A text from the list, pieces of several of them, or any other. */
const text = fc.oneof(
  fc.constantFrom(...NAUGHTY),
  fc.tuple(fc.constantFrom(...NAUGHTY), fc.constantFrom(...NAUGHTY)).map(([a, b]) => a.slice(0, 300) + b.slice(0, 300)),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
);

const PLACES: Readonly<Record<string, (text: string) => Promise<number>>> = {
  'a memory': async (value) => {
    const reply = await api.request('POST', '/memory/add', { body: { content: value, user_id: 'texts' } });
    // A duplicate is known by its words, whatever the white space between them.
    if (reply.status !== 202) return reply.status;
    const stored = await api.request('GET', `/memory/${reply.body.id}`);
    expect(stored.body['content']).toBe(value);
    return stored.status;
  },
  'the fields of a memory': (value) =>
    send('POST', '/memory/add', {
      content: `with ${value}`.toWellFormed(),
      user_id: value,
      session_id: value,
      title: value,
      tags: [value],
      type: value,
      external_id: value,
      metadata: { [value]: value, nested: { [value]: [value] } },
    }),
  'a question': (value) => send('POST', '/memory/query', { query: value, min_score: 0 }),
  'the filters of a question': (value) =>
    send('POST', '/memory/query', {
      query: 'harbour',
      user_id: value,
      filters: {
        sessions: [value],
        tags: [value],
        types: [value],
        external_ids: [value],
        metadata: { [value]: value, a: { $in: [value], $ne: value, $gt: value } },
      },
    }),
  'the options of a question': (value) =>
    send('POST', '/memory/query', { query: 'harbour', profile: value, rerank: value, cut: value, token: value }),
  'a time': (value) => send('POST', '/memory/query', { query: 'harbour', as_of: value }),
  'an unknown field': (value) => send('POST', '/memory/query', { query: 'harbour', [value || 'x']: value }),
  'a path': (value) => send('GET', `/memory/${encodeURIComponent(value.toWellFormed() || 'x')}`),
  'the name of an entity': (value) => send('GET', `/entities/${encodeURIComponent(value.toWellFormed() || 'x')}`),
  'a query string': (value) => {
    const part = encodeURIComponent(value.toWellFormed());
    return send('GET', `/memory/all?user_id=${part}&tag=${part}&l=${part}&sector=${part}`);
  },
  'a delete': (value) => send('DELETE', '/memory', { user_id: `${value}#`, tags: [`${value}#`] }),
  'a document': (value) =>
    send('POST', '/memory/ingest', {
      text: value,
      title: value,
      file_name: value,
      content_type: 'txt',
      external_id: value,
    }),
  'a document’s type': (value) => send('POST', '/memory/ingest', { text: 'a', content_type: value, encoding: value }),
  'a URL': (value) => send('POST', '/memory/ingest/url', { url: `http://127.0.0.1/${value}` }),
  'the defaults of a tenant': (value) => send('PUT', '/settings/retrieval', { profile: value, min_score: value }),
};

const send = async (method: string, path: string, body?: object) =>
  (await api.request(method, path, body === undefined ? {} : { body })).status;

describe('whatever stands in', () => {
  test.each(Object.entries(PLACES))(
    '%s, it is taken as it is or refused, and is never more than a text',
    async (name, ask) => {
      const seed = chooseSeed();
      console.log(`${name}: seed ${seed}`);
      await fc.assert(
        fc.asyncProperty(text, async (value) => {
          expect(await ask(value)).toBeLessThan(500);
        }),
        { seed, numRuns: inputs(450), examples: NAUGHTY.map((value) => [value]) },
      );
    },
  );

  afterAll(async () => {
    const { body } = await api.request('POST', '/memory/query', { body: { query: 'lighthouse', user_id: 'ana' } });
    expect(body.matches).toHaveLength(1);
    await expectWell(api);
  });
});
