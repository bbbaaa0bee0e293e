import fs from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import yazl from 'yazl';
import { CliError } from '../../src/cli/cli-error.ts';
import type { ForeignLine } from '../../src/cli/importers/format.ts';
import { formatNamed, formatOf } from '../../src/cli/importers/formats.ts';
import { jsonItems, type ItemPlace } from '../../src/cli/json-items.ts';
import { openSource } from '../../src/cli/open-source.ts';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { tempFolder } from '../support/temp-folder.ts';

const DAMAGES = 120;
const ITEMS = 12;
const seed = chooseSeed();
const folder = tempFolder();

/** The token of an item stands in its text and nowhere else. */
const tokenOf = (no: number) => `token${String(no).padStart(3, '0')}`;
const saidBy = (no: number) => `The "älteste" keeper said: ${tokenOf(no)} \\ 🪿.`;
const AT = '2025-01-01T00:00:00Z';

/** A file of another program, as pieces: what comes first, the items, and what comes last. */
interface Source {
  readonly format: string;
  readonly file: string;
  readonly head: string;
  readonly between: string;
  readonly tail: string;
  readonly item: (no: number) => object;
}

const LIST = { head: '[', between: ',', tail: ']' };
const LINES = { head: '', between: '\n', tail: '\n' };
const memoryOfMem0 = (no: number) => ({ id: `m${no}`, memory: saidBy(no), user_id: 'ana', metadata: { no } });
const entity = (no: number) => ({
  ...{ type: 'entity', name: `Keeper ${no}`, entityType: 'person' },
  observations: [saidBy(no)],
});

const SOURCES: readonly Source[] = [
  {
    ...{ format: 'chatgpt', file: 'conversations.json', ...LIST },
    item: (no) => ({
      ...{ id: `c${no}`, title: `Chat ${no}`, create_time: 1.7e9, current_node: 'b' },
      mapping: {
        a: { id: 'a', parent: null, message: null },
        b: {
          ...{ id: 'b', parent: 'a' },
          message: { id: `b${no}`, author: { role: 'user' }, content: { content_type: 'text', parts: [saidBy(no)] } },
        },
      },
    }),
  },
  {
    ...{ format: 'claude', file: 'conversations.json', ...LIST },
    item: (no) => ({
      ...{ uuid: `c${no}`, name: `Chat ${no}` },
      chat_messages: [{ uuid: `m${no}`, sender: 'human', text: saidBy(no), created_at: AT }],
    }),
  },
  { format: 'mem0', file: 'mem0.json', ...LIST, item: memoryOfMem0 },
  {
    ...{ format: 'mem0', file: 'page.json', between: ',\n', item: memoryOfMem0 },
    ...{ head: '{"count":12,"next":null,"results":[', tail: ']}' },
  },
  { format: 'mem0', file: 'mem0.jsonl', ...LINES, item: memoryOfMem0 },
  {
    ...{ format: 'zep', file: 'zep.json', ...LIST },
    item: (no) => ({ session_id: `s${no}`, messages: [{ uuid: `z${no}`, role: 'user', content: saidBy(no) }] }),
  },
  {
    ...{ format: 'langgraph', file: 'store.jsonl', ...LINES },
    item: (no) => ({ namespace: ['users', 'ana'], key: `k${no}`, value: { note: saidBy(no) }, created_at: AT }),
  },
  { format: 'server-memory', file: 'memory.jsonl', ...LINES, item: entity },
];

interface Outcome {
  readonly texts: string;
  readonly told: readonly string[];
  readonly read: number;
  readonly ids: readonly unknown[];
}

/** Reads a source as `cairn import` does. */
async function readSource(format: string, target: string): Promise<Outcome> {
  const lines: ForeignLine[] = [];
  const told: string[] = [];
  let read = 0;
  let source: Awaited<ReturnType<typeof openSource>> | undefined;
  const tell = (message: string) => void told.push(message);
  try {
    source = await openSource(target);
    const context = {
      source,
      userId: undefined,
      read: () => void (read += 1),
      skip: tell,
      passOver: tell,
      damaged: tell,
    };
    for await (const line of formatNamed(format).lines(context)) lines.push(line);
  } catch (error) {
    // Any other error would be a crash of the command line.
    if (!(error instanceof CliError)) throw error;
    told.push(error.message);
  } finally {
    source?.close();
  }
  return { texts: lines.map(({ content }) => String(content)).join('\n'), told, read, ids: lines.map(({ id }) => id) };
}

test.for(SOURCES.map((source) => [`${source.format}: ${source.file}`, source] as const))(
  `%s, damaged at random (seed ${seed})`,
  async ([, { format, file, head, between, tail, item }]) => {
    const random = createRandom(seed);
    const target = path.join(folder, file);
    const items = Array.from({ length: ITEMS }, (_, no) => JSON.stringify(item(no)));
    const whole = Buffer.from(head + items.join(between) + tail);
    /** Offset behind each item. */
    const ends = items.map((_, no) => Buffer.byteLength(head + items.slice(0, no + 1).join(between)));
    const missing = ({ texts }: Outcome) => items.flatMap((_, no) => (texts.includes(tokenOf(no)) ? [] : [no]));

    fs.writeFileSync(target, whole);
    const sound = await readSource(format, target);
    expect([missing(sound), sound.told]).toEqual([[], []]);
    const opened = await openSource(target);
    expect(formatOf(opened)?.name).toBe(format);
    opened.close();

    for (let no = 0; no < DAMAGES; no += 1) {
      const at = Math.floor(random() * (whole.length - 1));
      const isCut = no % 2 === 0;
      const damaged = isCut ? whole.subarray(0, at) : Buffer.from(whole);
      if (!isCut) damaged[at] = (damaged[at]! + 1 + Math.floor(random() * 250)) % 256;
      fs.writeFileSync(target, damaged);
      const outcome = await readSource(format, target);
      const lost = missing(outcome);
      const name = `${isCut ? 'cut' : `${damaged[at]} for ${whole[at]}`} at ${at}`;
      // A file of lines that ends behind one of them is whole, as far as anyone can tell.
      const looksWhole = isCut && between === '\n' && (at === 0 || ends.includes(at) || ends.includes(at - 1));
      if (isCut && (!looksWhole || at === 0)) {
        expect({ name, told: outcome.told.some((message) => message.includes(file)) }).toEqual({ name, told: true });
        const before = ends.filter((end) => end <= at).length;
        expect({ name, lost: lost.filter((one) => one < before) }).toEqual({ name, lost: [] });
      }
      // Damage inside a token changes the text, and nothing says so; then the item is there without its token.
      const inToken = ends.findIndex((end) => at < end);
      const unexplained = lost.filter((one) => isCut || one !== inToken);
      if (unexplained.length > 0 && !looksWhole)
        expect({ name, told: outcome.told.length > 0 }).toEqual({ name, told: true });
      if (!isCut && lost.length > 0)
        expect({ name, isThere: outcome.ids.length >= ITEMS || outcome.told.length > 0 }).toEqual({
          name,
          isThere: true,
        });
      expect((await readSource(format, target)).ids).toEqual(outcome.ids);
    }
  },
);

test(`an archive or a gzip file that is damaged at random is whole, or says so (seed ${seed})`, async () => {
  const random = createRandom(seed);
  const { item } = SOURCES[1]!;
  const json = JSON.stringify(Array.from({ length: ITEMS }, (_, no) => item(no)));
  const zip = new yazl.ZipFile();
  zip.addBuffer(Buffer.from(json), 'conversations.json');
  zip.addBuffer(Buffer.from('[]'), 'memories.json');
  zip.end();
  const wholes = { 'claude.zip': await buffer(zip.outputStream), 'conversations.json.gz': gzipSync(json) };
  for (const [name, whole] of Object.entries(wholes)) {
    const target = path.join(folder, name);
    fs.writeFileSync(target, whole);
    const sound = await readSource('claude', target);
    expect({ name, ids: sound.ids.length, told: sound.told }).toEqual({ name, ids: ITEMS, told: [] });
    for (let no = 0; no < DAMAGES; no += 1) {
      const at = Math.floor(random() * (whole.length - 1));
      const damaged = no % 2 === 0 ? whole.subarray(0, at) : Buffer.from(whole);
      if (no % 2 === 1) damaged[at] = (damaged[at]! + 1 + Math.floor(random() * 250)) % 256;
      fs.writeFileSync(target, damaged);
      const { texts, ids, told } = await readSource('claude', target);
      const isWhole = texts === sound.texts && ids.join(' ') === sound.ids.join(' ');
      const damage = `${name}: ${no % 2 === 0 ? 'cut' : `${damaged[at]} for ${whole[at]}`} at ${at}`;
      expect({ damage, isTold: isWhole || told.length > 0 }).toEqual({ damage, isTold: true });
    }
  }
});

test.for(['mem0', 'zep', 'langgraph', 'server-memory', 'claude', 'chatgpt'])(
  'a file that is not JSON, or empty, is no %s',
  async (format) => {
    for (const content of ['not json at all\n', '', '{"a":', '42', '[1, "two"]']) {
      const target = path.join(folder, 'other.json');
      fs.writeFileSync(target, content);
      const { told, ids } = await readSource(format, target);
      expect({ content, ids, told: told.some((message) => message.includes('other.json')) }).toEqual({
        ...{ content, ids: [], told: true },
      });
    }
  },
);

test('items are cut out of any pieces, and damaged ones cost no others', async () => {
  const read = async (text: string, place: ItemPlace, size: number) => {
    const pieces = async function* () {
      for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
    };
    const damages: string[] = [];
    const items: object[] = [];
    const onDamage = (message: string) => void damages.push(message);
    for await (const item of jsonItems(pieces(), { name: 'x', place, onDamage })) items.push(item);
    return { items, damages };
  };
  const list = [{ a: '"[{' }, { b: [{ c: '\\' }], d: 'results' }, {}];
  const wrapped = JSON.stringify({ next: 'results":[', count: 3, results: list, tail: [{ no: 1 }] });
  const sequence = `{"a":1}\n{"b":"open\n{"c":[1,\n{"d":{"e":2}}\n\n{\n "f": 3\n}\n7\n{"g":4}`;
  for (const size of [1, 2, 7, 1_000]) {
    expect(await read(JSON.stringify(list), 'list', size)).toEqual({ items: list, damages: [] });
    expect(await read(JSON.stringify(list, null, 2), 'list', size)).toEqual({ items: list, damages: [] });
    expect(await read(wrapped, ['results'], size)).toEqual({ items: list, damages: [] });
    expect(await read('[{"a":1}, nothing, {"b":2}, [3]]', 'list', size)).toEqual({
      items: [{ a: 1 }, { b: 2 }],
      damages: ['x: item 2, on line 1, is no JSON', 'x: item 4, on line 1, is no object'],
    });
    const { items, damages } = await read(sequence, 'sequence', size);
    expect(items).toEqual([{ a: 1 }, { d: { e: 2 } }, { f: 3 }, { g: 4 }]);
    expect(damages.map((message) => message.replace(/^.*on line /, ''))).toEqual([
      '2, is no JSON',
      '3, is no JSON',
      '9, is no object',
    ]);
    await expect(read('{"other":[{}]}', ['results'], size)).rejects.toThrow('a list in results');
    await expect(read('[{"a":1},{"b"', 'list', size)).rejects.toThrow('x was cut: it ends after 1 items');
  }
});
