import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openControlFile } from '../../../src/engine/control/control-file.ts';
import { createKeyUses } from '../../../src/engine/control/key-uses.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test('a use that cannot be written ends nothing, and is written by the next attempt', () => {
  const file = openControlFile(path.join(tempFolder(), 'control.sqlite'));
  onTestFinished(() => file.close());
  const uses = createKeyUses(file, { now: () => 7 });
  uses.note('k');
  file.db.pragma('query_only = 1');
  uses.close();
  expect(uses.lastUse('k')).toBe(7);
  file.db.pragma('query_only = 0');
  uses.close();
  expect(uses.lastUse('k')).toBeNull();
});
