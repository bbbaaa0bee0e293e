import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readJson, readNdjson } from '../../../../src/engine/documents/formats/json.ts';
import { jsonValue } from '../../../support/json-values.ts';

const OPTIONS = { charset: null, extension: 'json' };

async function read(value: unknown) {
  return readJson(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), OPTIONS);
}

test('values stand behind their paths, records in blocks of their own', async () => {
  const document = await read({
    title: 'Trips',
    from: { city: 'Graz', zip: null, notes: '' },
    tags: ['hike', 'hut', 3],
    trips: [
      { day: 1, text: 'up\nand down', stops: [{ at: 'hut' }, { at: 'top' }] },
      { day: 2, done: false },
    ],
    none: [],
  });
  expect(document.text).toBe(
    'title: Trips\nfrom.city: Graz\ntags: hike, hut, 3\n\n' +
      'trips[0].day: 1\ntrips[0].text:\nup\nand down\ntrips[0].stops[0].at: hut\ntrips[0].stops[1].at: top\n\n' +
      'trips[1].day: 2\ntrips[1].done: false',
  );
  expect(document.title).toBe('Trips');
});

test('line ends of values are those of the text', async () => {
  expect((await read({ a: 'q\r\nz', b: 'one\rtwo', c: ['x\r\n', 'y'] })).text).toBe('a:\nq\nz\nb:\none\ntwo\nc:\nx\ny');
});

test('control characters are counted as left out', async () => {
  const omissions = [{ reason: 'control_characters', count: 2, characters: 2 }];
  const twice = '{"a": "x\u0001y\u0002z"}';
  expect(await read(twice)).toMatchObject({ text: 'a: xyz', omissions });
  expect(await readNdjson(Buffer.from(`${twice}\n{"b": 1}`), OPTIONS)).toMatchObject({ omissions });
  expect(await read('\u0001 \u0002')).toMatchObject({ text: '', omissions });
});

test('long numbers keep their digits', async () => {
  expect((await read('{"id": 12345678901234567890, "n": 1.5}')).text).toBe('id: 12345678901234567890\nn: 1.5');
});

test('lines of one text stay lines', async () => {
  expect((await read({ source: ['import os\n', 'print(os)'] })).text).toBe('source:\nimport os\nprint(os)');
});

test('a long path keeps its end', async () => {
  const { text } = await read({ [`start${'x'.repeat(10_000)}`]: [{ a: 1 }, { a: 2 }] });
  expect(text).toMatch(/^…x+\[0\]\.a: 1\n\n…x+\[1\]\.a: 2$/);
  expect(text.length).toBeLessThan(500);
});

test.each(['{"a": 1', 'words', '{a: 1}', '"never closed', '[1,]'])('%j is no JSON', async (json) => {
  await expect(read(json)).rejects.toMatchObject({ code: 'corrupt_document' });
});

test('nesting beyond what is read is refused; brackets in strings do not count', async () => {
  for (const levels of [257, 1_000_000]) {
    await expect(read('['.repeat(levels) + ']'.repeat(levels))).rejects.toMatchObject({ code: 'document_too_complex' });
  }
  expect((await read({ a: `\\"${'['.repeat(1_000)}` })).text).toBe(`a: \\"${'['.repeat(1_000)}`);
  expect((await read(`${'['.repeat(256)}"deep"${']'.repeat(256)}`)).text).toContain('deep');
});

test('every value is found in the text', async () => {
  await fc.assert(
    fc.asyncProperty(jsonValue({ maxDepth: 5 }), async (value) => {
      const { text } = await read(JSON.stringify(value));
      const leaves: string[] = [];
      JSON.stringify(value, (_, leaf: unknown) => {
        if (typeof leaf === 'number' || typeof leaf === 'boolean') leaves.push(String(leaf));
        return leaf;
      });
      for (const leaf of leaves) expect(text).toContain(leaf);
    }),
  );
});

test('lists of any length are read, and a text that is too long is refused', async () => {
  const lines = (await read(Array.from({ length: 150_000 }, (_, index) => `${index} ${'x'.repeat(100)}`))).text;
  expect(lines).toContain('149999 x');
  const long = { key: Array.from({ length: 120_000 }, () => ({ [`k${'x'.repeat(180)}`]: 1 })) };
  await expect(read(long)).rejects.toMatchObject({ code: 'document_too_large' });
});

test('each line of JSON lines is a block; a line that is none is left out with a warning', async () => {
  const document = await readNdjson(Buffer.from('{"a":1}\n\nbroken\n{"b":{"c":"x"}}\r\n'), OPTIONS);
  expect(document.text).toBe('a: 1\n\nb.c: x');
  expect(document.warnings).toMatchObject([{ code: 'part_unreadable' }]);
  expect(document.warnings[0]!.message).not.toContain('broken');
});

test('JSON lines under the name of JSON are read', async () => {
  expect((await read('{"a":1}\n{"a":2}\n')).text).toBe('a: 1\n\na: 2');
});

test('lines of which none is JSON are no JSON lines; no lines are no text', async () => {
  await expect(readNdjson(Buffer.from('x\ny'), OPTIONS)).rejects.toMatchObject({ code: 'corrupt_document' });
  expect((await readNdjson(Buffer.from('\n \n'), OPTIONS)).text).toBe('');
  expect((await read('')).text).toBe('');
});
