import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkJson, checkJsonInSteps, MAX_JSON_NAMES, MAX_JSON_VALUES } from '../../src/api/check-json-text.ts';
import { JsonOutline, LONG_BYTES } from '../../src/api/json-outline.ts';
import { fromBase64, readLongText } from '../../src/api/long-text.ts';
import { parseJson, parseJsonInSteps } from '../../src/api/read-body.ts';
import { hostileBodies } from '../support/attacks/hostile-json.ts';
import { jsonText } from '../support/json-values.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MIB = 1024 * 1024;
const folder = tempFolder();
let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none' }, workers: true });
});
afterAll(() => api.stop());

const ingest = (body: unknown, target = '/memory/ingest') => api.request('POST', target, { body });

async function* piecesOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('the outline of a body', () => {
  test('names every long text, wherever the chunks are cut, and reads it back', async () => {
    const short = fc.string({ unit: 'grapheme', maxLength: 60 });
    const edge = fc.integer({ min: LONG_BYTES - 2, max: LONG_BYTES + 2 }).map((length) => 'x'.repeat(length));
    const long = fc.tuple(short, edge).map((parts) => parts.join(''));
    const text = fc.oneof(short, edge, long);
    const document = fc.record({ text, title: text, metadata: fc.record({ text, data: text }) });
    const body = fc.oneof(document, fc.record({ items: fc.array(document, { maxLength: 3 }) }));
    await fc.assert(
      fc.asyncProperty(body, fc.integer({ min: 1, max: 40 }), fc.boolean(), async (value, size, isAscii) => {
        const jsonOf = (some: unknown) => {
          const json = JSON.stringify(some);
          if (!isAscii) return json;
          return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
        };
        const bytes = Buffer.from(jsonOf(value));
        const outline = new JsonOutline(MIB);
        for (let at = 0; at < bytes.length; at += size) outline.push(bytes.subarray(at, at + size));
        const rest = JSON.parse(outline.rest().toString()) as typeof value;
        const documents = 'items' in rest ? rest.items : [rest];
        const sent = 'items' in value ? value.items : [value];
        const lengths = sent.map((item) => Buffer.byteLength(jsonOf(item.text)) - 2);
        expect(outline.places.size).toBe(lengths.filter((length) => length >= LONG_BYTES).length);
        for (const [no, item] of documents.entries()) {
          const place = outline.places.get(item.text);
          expect(place !== undefined).toBe(lengths[no]! >= LONG_BYTES);
          if (place === undefined) continue;
          const { start, end } = place;
          let whole = '';
          for await (const piece of readLongText(piecesOf(bytes.subarray(start, end), size))) whole += piece;
          Object.assign(item, { text: whole });
        }
        expect(rest).toEqual(value);
      }),
      { numRuns: 200 },
    );
  });

  test('refuses what is left over its bound, and what is nested too deep', () => {
    expect(() => new JsonOutline(10).push(Buffer.from('{"title":"12345"}'))).toThrow('over 10 bytes beside');
    expect(() => new JsonOutline(MIB).push(Buffer.from('['.repeat(300)))).toThrow('nested too deep');
  });
});

test('base64 is decoded wherever its pieces are cut', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), fc.integer({ min: 1, max: 9 }), async (bytes, size) => {
      const text = Buffer.from(bytes).toString('base64');
      const pieces = text.match(new RegExp(`.{1,${size}}`, 'g')) ?? [];
      const decoded: Buffer[] = [];
      for await (const piece of fromBase64(pieces)) decoded.push(piece);
      expect(Buffer.concat(decoded)).toEqual(Buffer.from(bytes));
    }),
  );
});

describe('a large body', () => {
  test('brings its text and its data to disk unchanged, escapes and pairs of surrogates included', async () => {
    const text = '# Größe\n\n"quoted" \\ 🙂 line\n\n'.repeat(60_000);
    const whole = await ingest({ text, content_type: 'txt', user_id: 'large' });
    expect(whole.status, whole.text).toBe(202);
    const sha256 = createHash('sha256').update(text).digest('hex');
    const stored = async () => (await api.request('GET', `/documents?sha256=${sha256}`)).body.total;
    expect(await stored()).toBe(1);
    const again = await ingest({ data: text, encoding: 'utf8', content_type: 'txt', user_id: 'large' });
    expect([again.status, again.body['outcome']], again.text).toEqual([200, 'unchanged']);
    const data = Buffer.from(text).toString('base64');
    expect((await ingest({ data, encoding: 'base64', content_type: 'txt', user_id: 'other' })).status).toBe(202);
    expect(await stored()).toBe(2);
    const batch = await ingest(
      { items: [{ text: `${text}.`, content_type: 'txt' }, { text: 'short', content_type: 'txt' }, { text: 1 }] },
      '/documents/batch',
    );
    expect([batch.status, batch.body['accepted'], batch.body['rejected']], batch.text).toEqual([202, 2, 1]);
  });

  test.each([
    ['a broken escape', `{"text":"${'a'.repeat(2 * MIB)}\\x"}`, 'malformed JSON'],
    ['a lone surrogate', `{"text":"${'a'.repeat(2 * MIB)}\\ud800"}`, 'surrogate'],
    ['no base64', `{"encoding":"base64","data":"${'a'.repeat(2 * MIB)}!"}`, 'expected base64'],
    ['a second text', `{"text":"${'a'.repeat(2 * MIB)}","text":"b"}`, 'twice'],
    ['no end', `{"text":"${'a'.repeat(2 * MIB)}`, 'malformed JSON'],
  ])('with %s is refused, and nothing of it stays', async (_name, body, detail) => {
    const reply = await ingest(body);
    expect([reply.status, reply.body.detail], reply.text).toEqual([400, expect.stringContaining(detail)]);
  });

  test.each(Object.entries(hostileBodies(6 * MIB)))(
    'of %s is refused before all of it is read',
    async (_name, body) => {
      const reply = await ingest(body);
      expect([400, 413], reply.text).toContain(reply.status);
    },
  );
});

describe('a body of JSON', () => {
  test('that names a field twice in one object is refused, with the name', async () => {
    const add = (body: string) => api.request('POST', '/memory/add', { body });
    for (const body of [
      '{"content":"a","user_id":"ana","user_id":"ben"}',
      '{"content":"a","user_id":"ana","user\\u005fid":"ben"}',
      '{"content":"a","metadata":{"x":[{"user_id" : 1,"b":2,"user_id":3}]}}',
    ]) {
      const reply = await add(body);
      expect([reply.status, reply.body.detail], reply.text).toEqual([400, expect.stringContaining('"user_id" twice')]);
    }
    const good = '{"content":"say \\"a\\": \\\\","tags":["tags","tags"],"metadata":{"a":{"a":1},"b":{"a":1}}}';
    expect((await add(good)).status).toBe(202);
  });

  test('agrees with JSON.parse about every value that has no name twice', () => {
    fc.assert(fc.property(jsonText(), (text) => checkJson(text)));
  });

  test('gives the value of a long object as JSON.parse does, field by field', () => {
    const long = `"long":${JSON.stringify('x'.repeat(70_000))}`;
    const parsed = (text: string) => parseJson(Buffer.from(text));
    const fields = fc.array(jsonText(), { maxLength: 4 });
    fc.assert(
      fc.property(fields, (values) => {
        const text = `\n { ${[long, ...values.map((value, no) => `"k${no}" : ${value}`)].join(' ,\t')} } `;
        expect(parsed(text)).toEqual(JSON.parse(text));
      }),
    );
    expect(Object.keys(parsed(`{${long},"__proto__":{"a":1}}`) as object)).toEqual(['long', '__proto__']);
    for (const wrong of [
      ...[`{${long},}`, `{${long},"a":1}x`, `x{${long},"a":1}`, `{${long},"a":1},{"b":2}`, `{${long},"a":1`],
      ...[`{${long},"a":1}{"b":2,"c":3}`, `{${long},"a":[1},"b":2}`, `{${long},,"a":1}`, `"{",{${long},"a":1}`],
      ...[`{${long},"a":1]`, `{${long},"a"}`, `{${long},"a":1}}`, `{${long},"a":1 "b":2}`],
    ]) {
      expect(() => parsed(wrong), wrong.slice(70_000)).toThrow('malformed JSON');
    }
  });

  test('is done in steps, of which none parses more than a field of a long object', () => {
    const value = Object.fromEntries(Array.from({ length: 9_000 }, (_, no) => [`k${no}`, no]));
    const bytes = Buffer.from(JSON.stringify({ a: value, b: value }));
    let steps = 0;
    for (const parsing = parseJsonInSteps(bytes); parsing.next().done !== true;) steps++;
    expect(steps).toBeGreaterThan(10);
  });

  test('that has neither values nor names to count is checked in steps, too', () => {
    const inSteps = (text: string) => {
      let steps = 1;
      const checking = checkJsonInSteps(text);
      while (checking.next().done !== true) steps += 1;
      return steps;
    };
    for (const part of ['0', '-123456789012345', '"', '"" ', ' ', 'x']) {
      const text = part.repeat(MIB / part.length);
      expect(inSteps(text), part).toBeGreaterThanOrEqual(16);
      expect(inSteps(`{${text}`), part).toBeGreaterThanOrEqual(16);
    }
    expect(inSteps(`"${'\\"'.repeat(MIB / 2)}"`)).toBeGreaterThanOrEqual(16);
    expect(inSteps('{"text":"\\"","other":[0,"x"]}')).toBe(1);
  });

  test('holds only whole numbers that come back as they were sent', () => {
    const kept = [
      '0',
      '-0.5',
      '1e21',
      '9007199254740991',
      '-9007199254740992',
      '123456789012345680000',
      '1000000000000000000000',
      '1e308',
      '0.1',
    ];
    for (const number of kept) checkJson(`{"n":[${number}]}`);
    // The third and the fourth are doubles exactly, but JavaScript writes them with other digits.
    for (const number of [
      '9007199254740993',
      '-9007199254740993',
      '-90501323849469808',
      '1180591620717411303424',
      '1234567890123456789',
    ])
      expect(() => checkJson(`{"n":[${number}]}`), number).toThrow('number at character 7 of the body cannot be kept');
    for (const number of ['1e309', '-1E400', `1${'0'.repeat(400)}`])
      expect(() => checkJson(`{"n":[${number}]}`), number).toThrow(
        'number at character 7 of the body is too large: numbers reach from -1.7976931348623157e+308 to 1.797',
      );
    checkJson('{"n":["9007199254740993",1e-400]}');
    const whole = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n });
    fc.assert(
      fc.property(whole, (number) => {
        const isKept = BigInt(JSON.stringify(JSON.parse(String(number)))) === number;
        if (isKept) checkJson(String(number));
        else expect(() => checkJson(String(number))).toThrow('cannot be kept exactly');
      }),
    );
  });

  test('with a number of many zeros takes no longer than another', () => {
    for (const number of [`${'0'.repeat(1_000_000)}1`, `1${'0'.repeat(1_000_000)}1`, `-${'0'.repeat(1_000_000)}`])
      expect(() => parseJson(Buffer.from(`[${number}]`))).toThrow(/malformed JSON|too large/);
  });

  test('of too many values is refused', () => {
    const list = (count: number) => `[${'0,'.repeat(count - 2)}0]`;
    expect(() => checkJson(list(MAX_JSON_VALUES))).not.toThrow();
    expect(() => checkJson(list(MAX_JSON_VALUES + 2))).toThrow('over 100000 values');
  });

  test('of too many names is refused, in one object and in all together', () => {
    const named = (count: number) => Array.from({ length: count }, (_, no) => `"k${no}":0`).join(',');
    expect(() => checkJson(`{${named(MAX_JSON_NAMES)}}`)).not.toThrow();
    expect(() => checkJson(`{${named(MAX_JSON_NAMES + 1)}}`)).toThrow('over 20000 names');
    const half = `{${named(MAX_JSON_NAMES / 2)}}`;
    expect(() => checkJson(`[${half},${half}]`)).not.toThrow();
    expect(() => checkJson(`[${half},${half},{"k":0}]`)).toThrow('over 20000 names');
  });

  test('is counted before it is parsed, and one that breaks off is malformed or over a bound', () => {
    const parse = (text: string) => () => parseJson(Buffer.from(text));
    for (const start of ['[],', '{},', '0,']) {
      expect(parse(`[${start.repeat(MAX_JSON_VALUES)}`)).toThrow('over 100000 values');
    }
    expect(parse(`[${'[],'.repeat(100)}`)).toThrow('malformed JSON');
    expect(parse('{"\\x":1}')).toThrow('malformed JSON');
    for (const text of ['{"a":1,"a"', '[-]', '[--1]', '-']) expect(parse(text)).toThrow('malformed JSON');
  });
});
