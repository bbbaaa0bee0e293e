import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findFiles } from '../../src/cli/find-files.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Makes files of two bytes, and a folder that is no part of what is expected of them. */
function folderWith(...names: readonly string[]): string {
  const folder = tempFolder();
  for (const name of names) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), 'hi');
  }
  return folder;
}

function found(folder: string, ...targets: readonly string[]) {
  const { files, skipped } = findFiles(targets.map((target) => `${folder}/${target}`));
  return { files: files.map((file) => path.posix.relative(folder, file.path)), skipped: Object.fromEntries(skipped) };
}

describe('a folder', () => {
  test('is walked to its ends in the order of names', () => {
    const folder = folderWith('b.md', 'a/z.PDF', 'a/b/c/d.txt', 'c.html', 'B.docx');
    expect(found(folder, '.')).toEqual({
      files: ['B.docx', 'a/b/c/d.txt', 'a/z.PDF', 'b.md', 'c.html'],
      skipped: {},
    });
    expect(findFiles([folder]).files.map((file) => file.bytes)).toEqual([2, 2, 2, 2, 2]);
  });

  test('is read without what is hidden, linked, installed or of no type that is known, and it is counted', () => {
    const folder = folderWith(
      'a.md',
      '.hidden.md',
      '.git/b.md',
      'node_modules/x/c.md',
      'd.png',
      'e.exe',
      'no-extension',
      'sub/.env',
    );
    fs.symlinkSync('a.md', path.join(folder, 'link.md'));
    fs.symlinkSync('.', path.join(folder, 'sub/round'));
    expect(found(folder, '.')).toEqual({
      files: ['a.md'],
      skipped: { hidden: 3, node_modules: 1, 'unknown type': 3, 'symbolic link': 2 },
    });
  });

  test.skipIf(process.platform !== 'linux')('says how many names it cannot read', () => {
    const folder = folderWith('a.md');
    fs.writeFileSync(Buffer.concat([Buffer.from(`${folder}/caf`), Buffer.from([0xe9]), Buffer.from('.md')]), 'hi');
    expect(found(folder, '.')).toEqual({ files: ['a.md'], skipped: { 'name that is not UTF-8': 1 } });
  });

  test.skipIf(process.getuid?.() === 0)('without permission is left out, and the others are not', () => {
    const folder = folderWith('a.md', 'closed/b.md');
    fs.chmodSync(path.join(folder, 'closed'), 0);
    onTestFinished(() => fs.chmodSync(path.join(folder, 'closed'), 0o700));
    expect(found(folder, '.')).toEqual({ files: ['a.md'], skipped: { 'folder without permission': 1 } });
  });
});

describe('what is named itself', () => {
  test('is taken whatever it is, and once', () => {
    const folder = folderWith('.hidden', 'b.png', 'sub/c.md');
    fs.symlinkSync('b.png', path.join(folder, 'link'));
    expect(found(folder, 'b.png', '.hidden', 'link', 'sub/c.md', 'sub', './sub/../b.png').files).toEqual([
      'b.png',
      '.hidden',
      'link',
      'sub/c.md',
    ]);
  });

  test('has its name as it was given, as messages show it', () => {
    const folder = path.relative(process.cwd(), folderWith('a.md'));
    expect(findFiles([folder]).files[0]!.path).toBe(`${folder}/a.md`);
    expect(findFiles([`./${folder}/./a.md`]).files[0]!.path).toBe(`${folder}/a.md`);
  });

  test('and is not there is an error', () => {
    expect(() => found(tempFolder(), 'none.md')).toThrow(/ENOENT/);
  });
});

describe('a pattern', () => {
  test('stands for the files that it matches, and for folders as a whole', () => {
    const folder = folderWith('a.md', 'b.txt', 'b.png', 'sub/c.md', 'sub/d/e.md', 'sub/node_modules/f.md', 'sub/.g.md');
    expect(found(folder, '**/*.md').files).toEqual(['a.md', 'sub/c.md', 'sub/d/e.md']);
    expect(found(folder, 's?b/*')).toMatchObject({ files: ['sub/c.md', 'sub/d/e.md'] });
    expect(found(folder, 'b.*')).toEqual({ files: ['b.txt'], skipped: { 'unknown type': 1 } });
  });

  test('that a file is called is that file', () => {
    expect(found(folderWith('a*.md', 'ab.md'), 'a*.md').files).toEqual(['a*.md']);
  });

  test('that matches nothing is an error', () => {
    expect(() => found(tempFolder(), '*.md')).toThrow(/nothing matches/);
  });
});
