import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { jsonLines } from '../support/portable.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const DAMAGES = 12;
const seed = chooseSeed();
const random = createRandom(seed);
let source: TestApi;
let whole: Buffer;

beforeAll(async () => {
  source = await startApi({ folder: tempFolder() });
  const ids: string[] = [];
  for (let no = 0; no < 12; no += 1) {
    const said = { content: `The keeper of lamp ${no} likes the älteste gull.`, user_id: `user-${no % 2}` };
    ids.push((await source.add({ ...said, ...(no % 3 === 0 ? { external_id: `lamp-${no}` } : {}) })).id);
  }
  const call = (method: string, path: string, body: object) => source.request(method, path, { body });
  await call('PATCH', `/memory/${ids[0]}`, { content: 'The keeper of lamp 0 has left.' });
  await call('POST', '/memory/supersede', { old_id: ids[2], new_id: ids[4] });
  await call('POST', '/memory/contradict', { a: ids[1], b: ids[3], winner: ids[3] });
  await call('POST', '/memory/link', { src: ids[6], dst: ids[8], type: 'supports' });
  await call('PUT', '/items', { user_id: 'user-1', namespace: 'a.b', key: 'k', value: { size: 14 } });
  whole = Buffer.from((await source.request('GET', '/export')).text);
});
afterAll(() => source.stop());

interface Summary {
  readonly stored: Readonly<Record<string, number>>;
  readonly known: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
  readonly complete: boolean;
  readonly checksum: string;
}

async function importInto(
  api: TestApi,
  body: Buffer,
  query = '',
): Promise<{ summary: Summary; refusedLines: unknown[] }> {
  const { text } = await api.request('POST', `/import${query}`, {
    body: body as unknown as string,
    headers: { 'content-type': 'application/x-ndjson' },
  });
  const replies = jsonLines(text);
  return {
    summary: replies.at(-1) as unknown as Summary,
    refusedLines: replies.filter((reply) => 'error' in reply).map(({ line }) => line),
  };
}

const total = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((sum, one) => sum + one, 0);

/** Returns the lines of an export before its last one; all of a file that lacks the last one. */
function contentOf(file: Buffer): Buffer {
  const end = file.lastIndexOf('{"type":"end"');
  return end === -1 ? file : file.subarray(0, end);
}

/** A copy that is cut at a random byte, of which some bytes are others, or that has a line twice or not at all. */
function damagedCopy(): { readonly name: string; readonly body: Buffer } {
  const at = Math.floor(random() * (whole.length - 2));
  const kind = Math.floor(random() * 4);
  if (kind === 0) return { name: `cut at ${at}`, body: whole.subarray(0, at) };
  if (kind === 1) {
    const body = Buffer.from(whole);
    body[at] = (body[at]! + 1 + Math.floor(random() * 250)) % 256;
    return { name: `another byte at ${at}`, body };
  }
  const lines = whole.toString().split('\n');
  const no = 1 + Math.floor(random() * (lines.length - 3));
  const changed = kind === 2 ? lines.toSpliced(no, 0, lines[no]!) : lines.toSpliced(no, 1);
  return { name: `line ${no + 1} ${kind === 2 ? 'twice' : 'missing'}`, body: Buffer.from(changed.join('\n')) };
}

test(`a damaged export is told line by line, the same in a dry run, and the rest is stored once (seed ${seed})`, async () => {
  for (let no = 0; no < DAMAGES; no += 1) {
    const { name, body } = damagedCopy();
    const api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
    try {
      const lines = body
        .toString('latin1')
        .split('\n')
        .filter((line) => line.trim() !== '');
      const dry = await importInto(api, body, '?dry_run=true');
      const real = await importInto(api, body);
      expect({ name, ...real.summary }).toEqual({ name, ...dry.summary, dry_run: false });
      expect({ name, lines: real.refusedLines }).toEqual({ name, lines: dry.refusedLines });
      const { stored, known, refused, complete, checksum } = real.summary;
      const ends = Number(complete) + lines.filter((line) => line.startsWith('{"type":"cairn.export"')).length;
      const isHeadRefused = real.refusedLines.includes(1) && lines[0]!.startsWith('{"type":"cairn.export"');
      const counted = total(stored) + total(known) + total(refused) + ends - Number(isHeadRefused);
      expect({ name, counted }).toEqual({ name, counted: lines.length });
      // The last line is not a part of what its checksum covers: its counts may be other ones.
      const isWhole = contentOf(body).equals(contentOf(whole));
      expect({ name, isWhole: isWhole || (complete && checksum === 'match') }).toEqual({ name, isWhole });

      const again = await importInto(api, body);
      expect({ name, stored: again.summary.stored, refused: again.refusedLines }).toEqual({
        ...{ name, stored: {} },
        refused: real.refusedLines,
      });
    } finally {
      await api.stop();
    }
  }
}, 240_000);

test('a dry run refuses a link that would join two users, as the import does', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const [src, dst] = ['01a1fe30-e25b-7576-a0c2-3c4e3646bd01', '01a1fe30-e25b-7576-a0c2-3c4e3646bd02'];
  const lines = [
    { type: 'memory', id: src, content: 'The lamp is lit.', user_id: 'ana' },
    { type: 'memory', id: dst, content: 'The lamp is out.', user_id: 'bo' },
    ...['supersedes', 'supports'].map((link_type) => ({ type: 'link', src, dst, link_type })),
  ];
  const body = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'));
  const dry = await importInto(api, body, '?dry_run=true');
  const real = await importInto(api, body);
  expect([dry.refusedLines, real.refusedLines]).toEqual([[3], [3]]);
  expect(dry.summary.stored).toEqual(real.summary.stored);
});

test('a text of more than 1 MiB is refused alone, as one commit would take seconds to index it', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const most = 1024 * 1024;
  const lines = [most, most + 1, 9].map((bytes, no) =>
    JSON.stringify({ type: 'memory', id: `01a1fe30-e25b-7576-a0c2-3c4e3646bd0${no}`, content: 'a'.repeat(bytes) }),
  );
  const { summary, refusedLines } = await importInto(api, Buffer.from(lines.join('\n')));
  expect(refusedLines).toEqual([2]);
  expect(summary.stored).toEqual({ memory: 2 });
});
