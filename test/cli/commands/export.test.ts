import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { exportData } from '../../../src/cli/commands/export.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test('an export leaves a file alone that has the name under which it would be written', async () => {
  const target = path.join(tempFolder(), 'all.ndjson');
  fs.writeFileSync(`${target}.partial`, 'mine');
  const message = `${target}.partial exists already: if it was left by an export that was killed, remove it`;
  const run = () => exportData(target, { url: 'http://127.0.0.1:1' });
  await expect(run()).rejects.toThrow(message);
  expect(fs.readFileSync(`${target}.partial`, 'utf8')).toBe('mine');

  // A link to a file that does not exist is not written through either.
  fs.rmSync(`${target}.partial`);
  fs.symlinkSync('nowhere', `${target}.partial`);
  await expect(run()).rejects.toThrow(message);
  expect(fs.readlinkSync(`${target}.partial`)).toBe('nowhere');

  // What this run opened is removed.
  fs.rmSync(`${target}.partial`);
  await expect(run()).rejects.toThrow('127.0.0.1:1');
  expect(fs.readdirSync(path.dirname(target))).toEqual([]);
});
