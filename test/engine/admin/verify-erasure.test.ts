import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { openErasureSearch } from '../../../src/engine/admin/verify-erasure.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test.each(['.sqlite', '.sqlite3', '.db', '.store', ''])(
  'a sealed file beside a file *%s is told as unread',
  (ending) => {
    const folder = tempFolder();
    const file = path.join(folder, `cairn${ending}`);
    openStore(file, { role: 'worker', create: true }).close();
    const search = openErasureSearch(file, { receipts: [], words: ['quillfeather'] });
    const ends = ['.sqlite', '.sqlite3', ending === '' ? '.db' : ending];
    const sealed = [...ends, ...ends.map((end) => `${end}.before-restore-2026-01-05`)].map((end) => `other${end}`);
    const others = ['notes.txt', 'other.sqlite.key', 'picture'];
    const noteOf = (name: string) => {
      fs.writeFileSync(path.join(folder, name), Buffer.alloc(8_192, 0xa7));
      return [...search.searchPath(path.join(folder, name))].map(({ note }) => note !== null);
    };
    expect(sealed.map(noteOf)).toEqual(sealed.map(() => [true]));
    expect(others.map(noteOf)).toEqual(others.map(() => [false]));
    expect([...search.searchTenant()].filter(({ note }) => note !== null)).toEqual([]);
  },
);
