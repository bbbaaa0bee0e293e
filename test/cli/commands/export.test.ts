import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { exportData } from '../../../src/cli/commands/export.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test('an export leaves a file alone that has the name under which it would be written', async () => {
  const target = path.join(tempFolder(), 'all.ndjson');
  fs.writeFileSync(`${target}.partial`, 'mine');
  await expect(exportData(target, { url: 'http://127.0.0.1:1' })).rejects.toThrow(`${target}.partial exists already`);
  expect(fs.readFileSync(`${target}.partial`, 'utf8')).toBe('mine');
});
