import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { openErasureSearch, type Searched } from '../../../src/engine/admin/verify-erasure.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

async function collect(places: AsyncIterable<Searched>): Promise<Searched[]> {
  const list: Searched[] = [];
  for await (const place of places) list.push(place);
  return list;
}

test.each(['.sqlite', '.sqlite3', '.db', '.store', ''])(
  'a sealed file beside a file *%s is told as unread',
  async (ending) => {
    const folder = tempFolder();
    const file = path.join(folder, `cairn${ending}`);
    openStore(file, { role: 'worker', create: true }).close();
    const search = openErasureSearch(file, { receipts: [], words: ['quillfeather'] });
    const ends = ['.sqlite', '.sqlite3', ending === '' ? '.db' : ending];
    const sealed = [...ends, ...ends.map((end) => `${end}.before-restore-2026-01-05`)].map((end) => `other${end}`);
    const others = ['notes.txt', 'other.sqlite.key', 'picture'];
    const noteOf = async (name: string) => {
      fs.writeFileSync(path.join(folder, name), Buffer.alloc(8_192, 0xa7));
      return (await collect(search.searchPath(path.join(folder, name)))).map(({ note }) => note !== null);
    };
    expect(await Promise.all(sealed.map(noteOf))).toEqual(sealed.map(() => [true]));
    expect(await Promise.all(others.map(noteOf))).toEqual(others.map(() => [false]));
    expect((await collect(search.searchTenant())).filter(({ note }) => note !== null)).toEqual([]);
  },
);

test('a packed file is searched as far as it unpacks, and what cannot be read keeps no other place from being told', async () => {
  const folder = tempFolder();
  const file = path.join(folder, 'cairn.sqlite');
  openStore(file, { role: 'worker', create: true }).close();
  const shown = path.join(folder, 'shown');
  fs.mkdirSync(shown);
  const filler = randomBytes(600_000).toString('hex').replaceAll(/.{16}/g, '$& ');
  const packed = gzipSync(`lighthouse ${filler}quillfeather${filler} quillfeather`);
  fs.writeFileSync(path.join(shown, 'a-cut.gz'), packed.subarray(0, packed.length / 2));
  fs.writeFileSync(path.join(shown, 'b-short.gz'), Buffer.from([0x1f, 0x8b]));
  fs.writeFileSync(
    path.join(shown, 'c-no-gzip'),
    Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.from(' lighthouse ')]),
  );
  fs.writeFileSync(path.join(shown, 'd-whole.gz'), packed);
  // Each word is looked for as it is and by its stem.
  const search = openErasureSearch(file, { receipts: [], words: ['lighthouse', 'quillfeather'] });
  const places = await collect(search.searchPath(shown));
  const damaged = expect.stringContaining('damaged') as string;
  expect(places.map(({ place, found, note }) => [path.basename(place), found, note])).toEqual([
    ['a-cut.gz', 2, damaged],
    ['b-short.gz', 0, damaged],
    ['c-no-gzip', 2, damaged],
    ['d-whole.gz', 4, null],
  ]);
});
